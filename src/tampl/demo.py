"""The whole way on a laptop: a 32 x 32 lattice, two cores, a few minutes, one page at the end."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from .config import Recipe, read_recipe
from .evaluate import Score
from .pipeline import check_data, evaluate_run, report_runs, simulate, train

__all__ = ["Demo", "run_demo"]

RECIPE = "sirs-mini.toml"

T = TypeVar("T")


@dataclass(frozen=True)
class Demo:
    """Where the page is and what the model scored."""

    page: Path
    scores: Mapping[str, Score]


def run_demo(out: str | Path, *, seed: int | None = None, recipe: Recipe | None = None) -> Demo:
    """Simulates, checks, trains, evaluates and reports; goes on where an earlier call stopped.

    Arguments:
        out: Folder for `data/`, the run, `report.html` and `metrics.json`.
        seed: Training seed; None for the recipe's.
        recipe: What to run; the mini recipe by default.
    """
    recipe = (recipe or read_recipe(str(files("tampl") / "recipes" / RECIPE))).with_seed(seed)
    out = Path(out)
    data, run = out / "data", out / f"tampl-{recipe.training.seed}"
    clock, resumed = _Clock(), run.exists()
    clock.time("simulate", lambda: simulate(recipe, data))
    clock.time("check", lambda: check_data(data).refuse_problems())
    clock.time("train", lambda: train(recipe, data, run))
    scores = clock.time("evaluate", lambda: evaluate_run(run, data))
    # The clock of a demo that found its run half done would tell too little.
    page = report_runs([run], out, wall_times=None if resumed else clock.seconds)
    return Demo(page, scores)


class _Clock:
    """Seconds by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, part: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = work()
        self.seconds[part] = time.perf_counter() - start
        return result
