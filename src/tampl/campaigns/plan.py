"""A run to be made, what became of it, and the seeds to make runs with."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..config import Recipe
from ..data import Store
from ..errors import InputError
from ..methods.engine.run import RunFolder
from ..methods.engine.views import refuse_other_symmetries
from ..pipeline import run_identity
from ..seeding import ambient_seed
from .ledger import Entry, read_entry

__all__ = ["Outcome", "RunPlan", "choose_seeds"]


@dataclass(frozen=True)
class RunPlan:
    """A run to be made.

    Attributes:
        recipe: The recipe, with the run's seed.
        method: Name of the method.
        folder: Where the run lives.
    """

    recipe: Recipe
    method: str
    folder: Path

    @property
    def seed(self) -> int:
        """The training seed."""
        return self.recipe.training.seed

    @property
    def entry(self) -> Entry:
        """How far the run is."""
        turns = self.recipe.method(self.method).turns(self.recipe.training)
        system = self.recipe.system.description.system
        origin = {"system": system, "method": self.method, "seed": self.seed}
        total = sum(turn.epochs for turn in turns)
        return read_entry(self.folder, origin, total_epochs=total)

    @property
    def is_trained(self) -> bool:
        """Whether the run has gone through all its epochs and nothing of it is lost."""
        return self.entry.state in ("trained", "done")

    def refuse_unbuildable(self) -> None:
        """Refuses a model that lacks what the method is built from, and unknown symmetries."""
        kind = self.recipe.system.description.microstate
        refuse_other_symmetries(kind, self.recipe.training)
        with ambient_seed(self.seed, "weights"):
            self.recipe.method(self.method).modules(
                self.recipe.model, self.recipe.system.description
            )

    def refuse_other_run(self, store: Store) -> None:
        """Refuses a folder that holds another run or is in use by another process."""
        if self.folder.exists():
            with RunFolder(self.folder).claimed(run_identity(self.recipe, store, self.method)):
                pass


@dataclass(frozen=True)
class Outcome:
    """What became of a plan: done, failed for a reason, or neither and still to be done."""

    plan: RunPlan
    done: bool
    failure: str | None = None


def choose_seeds(recipe: Recipe, seeds: Sequence[int] | None) -> list[int]:
    """The seeds to train with: those given, each once, or else the recipe's own."""
    if seeds is None:
        return [recipe.training.seed]
    if not seeds:
        raise InputError("`seeds` is empty; give one seed at least")
    if min(seeds) < 0:
        raise InputError(f"`seeds` holds {min(seeds)}; a seed is an integer of at least 0")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"`seeds` is {', '.join(map(str, seeds))}; give each seed once")
    return list(seeds)
