"""The whole way on a laptop: a 32 x 32 lattice, two cores, a few minutes, one page at the end.

TAMPL stands beside joint training, whose latent scale collapses, and beside VAMP, whose transition
is linear and has no spread.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from ..evaluation import Score
from ..files import strict_json
from .comparisons import Compared, compare
from .pipeline import check_data, simulate
from .recipes import Recipe, read_recipe
from .report.runs import write_texts

__all__ = ["Demo", "run_demo"]

RECIPE = "sirs-mini.toml"


SHOWN = ("tampl", "jld", "vamp")
"""Three of the ten methods; `tampl compare` trains them all."""


@dataclass(frozen=True)
class Demo:
    """The comparison behind the page, and what each row scored."""

    compared: Compared
    scores: Mapping[str, Score]

    @property
    def page(self) -> Path:
        """The page."""
        return self.compared.page


def run_demo(out: str | Path, *, seed: int | None = None, recipe: Recipe | None = None) -> Demo:
    """Simulates, checks, trains, evaluates and reports; goes on where an earlier call stopped.

    Arguments:
        out: Folder for `data/`, `runs/`, `report.html`, `scores.*` and `metrics.json`.
        seed: Training seed; None for the recipe's.
        recipe: What to run; the mini recipe by default.
    """
    recipe = (recipe or read_recipe(str(files("tampl") / "recipes" / RECIPE))).with_seed(seed)
    out = Path(out)
    simulate(recipe, out / "data")
    check_data(out / "data").refuse_problems()
    compared = compare(recipe, out, methods=SHOWN)
    scores = _single_scores(compared)
    plain = {name: asdict(score) for name, score in scores.items()}
    write_texts(out, {"metrics.json": strict_json({"scores": plain}, indent=1) + "\n"})
    return Demo(compared, scores)


def _single_scores(compared: Compared) -> dict[str, Score]:
    """The scores of the one seed."""
    rows = compared.comparison.scores.items()
    return {
        name: Score(row.rmse.mean, None if row.mmd is None else row.mmd.mean) for name, row in rows
    }
