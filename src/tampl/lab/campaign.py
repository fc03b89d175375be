"""What the runs of a campaign are made with: data, time, a device and processes.

What a campaign has done and what it still costs: one line for each run, as a file.

    OUT/plan.json    [{"system", "method", "seed", "folder", "state", "epochs", "total_epochs",
                       "seconds", "estimated_s"}, ...]

The state is read from the run's folder, so a ledger is never wrong about what is there: `waiting`,
`begun`, `trained`, `done`, or `failed` where this campaign saw it fail. A run's time is estimated
from its own epochs, or else from those of other runs of the same method.

A run to be made, what became of it, and the seeds to make runs with.

Many runs under one budget: trains and evaluates what is missing, in the order of the plans.

A campaign has a folder with `data/`, unless its data lie elsewhere, and `runs/`, one folder each.
It can be stopped at any time: a run that is done is kept, one that was interrupted is taken up.
Where one run does not fill the machine, several are made side by side, each in a process of its
own. How far every run is stands in `plan.json`, written anew after each.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from ..data import Store
from ..data.store import MANIFEST
from ..errors import InputError
from ..evaluation.suite import refuse_other_system
from ..files import write_json
from ..progress import say
from ..seeding import ambient_seed
from ..training import DivergenceError
from ..training.frames import refuse_other_symmetries
from .pipeline import (
    evaluate_run,
    is_evaluated,
    read_history,
    refuse_absent_device,
    run_identity,
    simulate,
    train,
)
from .recipes import Recipe
from .report.names import name_of
from .runs import RunFolder

__all__ = [
    "DEFAULTS",
    "Campaign",
    "Entry",
    "Outcome",
    "Resources",
    "RunPlan",
    "choose_seeds",
    "estimate",
    "make_data",
    "read_entry",
    "write_ledger",
]


@dataclass(frozen=True)
class Resources:
    """Data, time, device and processes, common to all runs of a campaign.

    Attributes:
        data: A store; None for `data/` in the campaign's folder. It is made where it is absent.
        budget_s: Seconds after which no more work is begun; None for no limit.
        device: Where to train and evaluate.
        side_by_side: How many runs are made at once, each in a process of its own.
    """

    data: str | Path | None = None
    budget_s: float | None = None
    device: str = "cpu"
    side_by_side: int = 1

    def __post_init__(self) -> None:
        # So written, NaN is refused too.
        if self.budget_s is not None and not self.budget_s >= 0:
            raise InputError(
                f"`budget_s` is {self.budget_s}; it must be a number of seconds, at least 0"
            )
        if self.side_by_side < 1:
            raise InputError(f"`side_by_side` is {self.side_by_side}; it must be at least 1")

    def deadline(self) -> float | None:
        """When the budget is spent if it starts now, on `time.monotonic`'s clock."""
        return None if self.budget_s is None else time.monotonic() + self.budget_s


DEFAULTS = Resources()
"""One run after another on the CPU, without limit, on data in the campaign's folder."""


@dataclass(frozen=True)
class Entry:
    """One run.

    Attributes:
        system: Name of the system.
        method: Name of the method.
        seed: The training seed.
        folder: Name of the run's folder.
        state: `waiting`, `begun`, `trained`, `done` or `failed`.
        epochs: Epochs that were saved.
        total_epochs: Epochs of the whole training.
        seconds: What these epochs took.
        estimated_s: What the whole training takes; None where nothing tells.
    """

    system: str
    method: str
    seed: int
    folder: str
    state: str
    epochs: int
    total_epochs: int
    seconds: float
    estimated_s: float | None = None


def read_entry(folder: Path, origin: Mapping[str, Any], *, total_epochs: int) -> Entry:
    """Reads from a run's folder how far it is.

    Arguments:
        folder: The folder, which need not exist.
        origin: `system`, `method` and `seed`.
        total_epochs: Epochs of the whole training.
    """
    files = RunFolder(folder)
    log = read_history(folder) if files.history.is_file() else []
    trained = len(log) == total_epochs and files.best.is_file() and files.last.is_file()
    state = "trained" if trained else "begun" if log else "waiting"
    if trained and files.evaluation.is_file():
        state = "done"
    seconds = sum(sum(epoch["seconds"].values()) for epoch in log)
    return Entry(
        **origin,
        folder=folder.name,
        state=state,
        epochs=len(log),
        total_epochs=total_epochs,
        seconds=seconds,
    )


def estimate(entries: Sequence[Entry]) -> list[Entry]:
    """Entries with the time that each training takes, where anything tells."""
    return [replace(entry, estimated_s=_estimate(entry, entries)) for entry in entries]


def _estimate(entry: Entry, entries: Sequence[Entry]) -> float | None:
    same = [other for other in entries if other.method == entry.method and other.epochs]
    known = [entry] if entry.epochs else same
    if not known:
        return None
    return entry.total_epochs * mean(other.seconds / other.epochs for other in known)


def write_ledger(entries: Sequence[Entry], path: Path) -> None:
    """Writes the ledger, complete or not at all; its folder is made where it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, [asdict(entry) for entry in estimate(entries)])


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


@dataclass(frozen=True)
class Campaign:
    """Plans, and what they are carried out with.

    Attributes:
        plans: The runs, most wanted first.
        store: The data.
        device: Where to train and evaluate.
        deadline: Time on `time.monotonic`'s clock after which no more work is begun.
        test: Whether to score the runs on the test split.
        side_by_side: How many runs are made at once.
        ledger: Where the ledger is written.
    """

    plans: tuple[RunPlan, ...]
    store: Store
    ledger: Path
    device: str = "cpu"
    deadline: float | None = None
    test: bool = True
    side_by_side: int = 1

    @classmethod
    def prepare(
        cls,
        plans: Sequence[RunPlan],
        out: Path,
        *,
        resources: Resources = DEFAULTS,
        test: bool = True,
    ) -> "Campaign":
        """Refuses what can never work, then makes the data where they are absent.

        Arguments:
            plans: The runs, one at least, all of one system.
            out: The campaign's folder.
            resources: What the runs are made with; the budget starts now.
            test: Whether to score the runs on the test split.
        """
        deadline = resources.deadline()
        refuse_absent_device(resources.device)
        for plan in plans:
            plan.refuse_unbuildable()
        store = make_data(plans[0].recipe, out, resources.data)
        for plan in plans:
            plan.refuse_other_run(store)
        return cls(
            tuple(plans),
            store,
            out / "plan.json",
            device=resources.device,
            deadline=deadline,
            test=test,
            side_by_side=resources.side_by_side,
        )

    def run(self) -> list[Outcome]:
        """Carries out the plans; a training that diverges does not stop the others."""
        found: dict[Path, Outcome] = {}
        self._write_ledger(found)
        for outcome in self._one_by_one() if self.side_by_side == 1 else self._at_once():
            found[outcome.plan.folder] = outcome
            self._write_ledger(found)
        return [found[plan.folder] for plan in self.plans]

    def finish(self, plan: RunPlan) -> Outcome:
        """Does what is missing of a run, until the deadline."""
        try:
            return Outcome(plan, self._is_finished(plan))
        except DivergenceError as error:
            return Outcome(plan, False, str(error))

    def _one_by_one(self) -> Iterator[Outcome]:
        return (self.finish(plan) for plan in self.plans)

    def _at_once(self) -> Iterator[Outcome]:
        context = get_context("spawn")  # a forked process cannot use the parent's GPU
        threads = max(1, torch.get_num_threads() // self.side_by_side)
        with ProcessPoolExecutor(
            self.side_by_side, context, torch.set_num_threads, (threads,)
        ) as pool:
            apart = replace(self, side_by_side=1)
            for done in as_completed([pool.submit(apart.finish, plan) for plan in self.plans]):
                yield done.result()

    def _is_finished(self, plan: RunPlan) -> bool:
        trained = plan.is_trained
        scored = not self.test or (trained and is_evaluated(plan.folder, self.store))
        if trained and scored:
            return True
        if self._is_over:
            return False
        place = f"run {self.plans.index(plan) + 1} of {len(self.plans)}"
        say(f"{place}: {name_of(plan.method)}, seed {plan.seed}, in {plan.folder}")
        return (trained or self._train(plan)) and (scored or self._score(plan))

    def _write_ledger(self, found: Mapping[Path, Outcome]) -> None:
        failed = {folder for folder, outcome in found.items() if outcome.failure is not None}
        entries = [plan.entry for plan in self.plans]
        write_ledger(
            [
                replace(entry, state="failed") if plan.folder in failed else entry
                for plan, entry in zip(self.plans, entries, strict=True)
            ],
            self.ledger,
        )

    def _train(self, plan: RunPlan) -> bool:
        history = train(
            plan.recipe,
            self.store.path,
            plan.folder,
            method=plan.method,
            device=self.device,
            deadline=self.deadline,
        )
        return history.finished

    def _score(self, plan: RunPlan) -> bool:
        if self._is_over:
            return False
        evaluate_run(plan.folder, self.store.path, device=self.device)
        return True

    @property
    def _is_over(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline


def make_data(recipe: Recipe, out: Path, data: str | Path | None = None) -> Store:
    """The campaign's data, made where they are absent.

    Arguments:
        recipe: The recipe.
        out: The campaign's folder; without `data` the store is its `data/`.
        data: A store elsewhere. One that exists and is complete may hold more or less than the
            recipe says, but must be of its system.
    """
    if data is None:
        return simulate(recipe, out / "data")
    if not (Path(data) / MANIFEST).exists():
        return simulate(recipe, data)
    store = Store.open(data)
    refuse_other_system(recipe.system.description, store.description, whose="the recipe")
    return simulate(recipe, data) if store.missing() else store
