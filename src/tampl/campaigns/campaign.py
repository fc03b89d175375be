"""Many runs under one budget: trains and evaluates what is missing, in the order of the plans.

A campaign has a folder with `data/`, unless its data lie elsewhere, and `runs/`, one folder each.
It can be stopped at any time: a run that is done is kept, one that was interrupted is taken up.
Where one run does not fill the machine, several are made side by side, each in a process of its
own. How far every run is stands in `plan.json`, written anew after each.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import torch

from ..config import Recipe
from ..data import Store
from ..data.store import MANIFEST
from ..evaluate.suite import refuse_other_system
from ..methods import DivergenceError
from ..pipeline import evaluate_run, is_evaluated, refuse_absent_device, simulate, train
from ..progress import say
from ..report.names import name_of
from .ledger import write_ledger
from .plan import Outcome, RunPlan
from .resources import DEFAULTS, Resources

__all__ = ["Campaign", "make_data"]


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
