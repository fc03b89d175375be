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
from .pipeline import check_data, simulate
from .recipes import Recipe, read_recipe

__all__ = ["Demo", "run_demo"]

RECIPE = "sirs-mini.toml"
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
