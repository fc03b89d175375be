"""The demo: from simulation to report on a 32 x 32 lattice, in a few minutes on two cores.

TAMPL+, the method that we recommend, and TAMPL stand beside joint training, whose latent scale
collapses, and beside VAMP, whose transition is linear and has no spread.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from ..evaluation import Score
from ..files import strict_json, write_texts
from .comparisons import Compared, compare
from .pipeline import check_data, simulate, train
from .recipes import Recipe, read_recipe
from .runs import Run

__all__ = ["DEMO", "Demo", "prepare_demo", "run_demo"]

DEMO = Path("runs") / "demo"
"""The folder of the demo."""

RECIPE = "sirs-mini.toml"
STUDIED = "tampl+"
"""The method that the studio shows where nothing was trained: its forecasts cost the least."""

SHOWN = ("tampl+", "tampl", "jld", "vamp")
"""Four of the ten methods; `tampl compare` trains them all."""


@dataclass(frozen=True)
class Demo:
    """The comparison behind the page, and the score of each row."""

    compared: Compared
    scores: Mapping[str, Score]

    @property
    def page(self) -> Path:
        """The page."""
        return self.compared.page


def run_demo(out: str | Path, *, seed: int | None = None, recipe: Recipe | None = None) -> Demo:
    """Simulates, checks, trains, evaluates and reports; resumes an earlier call in the folder.

    Arguments:
        out: Folder for `data/`, `runs/`, `report.html`, `scores.*` and `metrics.json`.
        seed: Training seed; None for the recipe's.
        recipe: The recipe to run; the mini recipe by default.
    """
    recipe = (recipe or read_recipe(str(files("tampl") / "recipes" / RECIPE))).with_seed(seed)
    out = Path(out)
    simulate(recipe, out / "data")
    check_data(out / "data").refuse_problems()
    compared = compare(recipe, out, methods=SHOWN)
    scores = {  # of the one seed
        name: Score(row.error, None if row.mmd is None else row.mmd.mean)
        for name, row in compared.comparison.scores.items()
    }
    plain = {name: asdict(score) for name, score in scores.items()}
    write_texts(out, {"metrics.json": strict_json({"scores": plain}, indent=1) + "\n"})
    return Demo(compared, scores)


def prepare_demo(out: str | Path, *, recipe: Recipe | None = None) -> Path:
    """Trains a model of the demo's data where there is none yet; returns the demo's folder.

    Arguments:
        out: Folder of the demo.
        recipe: The recipe to train by; the mini recipe by default.
    """
    out = Path(out)
    if any(Run(run.parent).is_complete() for run in out.glob("runs/*/run.json")):
        return out
    recipe = recipe or read_recipe(str(files("tampl") / "recipes" / RECIPE))
    simulate(recipe, out / "data")
    train(recipe, out / "data", out / "runs" / f"{STUDIED}-{recipe.training.seed}", method=STUDIED)
    return out
