"""Many training runs under one budget: each is trained and evaluated, in the order of the plans.

    OUT/data/        the data, unless another store is given
    OUT/runs/        one folder for each run
    OUT/plan.json    the ledger: [{"system", "method", "seed", "folder", "state", "epochs",
                     "total_epochs", "seconds", "estimated_s"}, ...]

A campaign can be stopped at any time: finished runs are kept, and the same call resumes an
interrupted run. Where one run does not fill the machine, several can be trained side by side, each
in its own process, or on the workers of a Dask cluster, on machines that see the folders.

The ledger is written again after each run. A state is read from the files in the run's folder:
`waiting`, `begun`, `trained` or `done`; `failed` is a run that this campaign saw fail. The time of
a training is estimated from its own epochs, or else from those of other runs of the same method.
"""

import os
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from statistics import mean
from threading import Lock, Thread
from typing import Any

import torch

from ..data import Store
from ..data.store import MANIFEST
from ..description import Description
from ..errors import InputError
from ..evaluation.comparison import Trial
from ..files import write_json
from ..models import resolve_device
from ..progress import say
from ..seeding import ambient_seed
from ..training import ALONE, DivergenceError, Ranks
from ..training.frames import refuse_other_symmetries
from .cluster import connected
from .pipeline import evaluate_run, run_identity, simulate, train
from .recipes import Recipe
from .report.grids import name_of
from .runs import Run

__all__ = ["DEFAULTS", "Campaign", "Resources", "RunPlan", "estimate_times", "make_data"]


@dataclass(frozen=True)
class Resources:
    """Data, time, device and processes, common to all runs of a campaign.

    Attributes:
        data: A store; None for `data/` in the campaign's folder. An absent store is simulated.
        budget_s: Seconds after which no more work is begun; None for no limit.
        device: Where to train and evaluate; "auto" takes a GPU where torch has one.
        side_by_side: How many runs are trained at once, each in its own process.
        memory: Bytes that the training data may take in memory, as for `train`.
        dask: The cluster that simulates, trains and evaluates: the address or the file of a Dask
            scheduler, or "local"; None for this process.
        ranks: Processes that share every training; all else is done by this one, which leads them.
    """

    data: str | Path | None = None
    budget_s: float | None = None
    device: str = "auto"
    side_by_side: int = 1
    memory: float | None = None
    dask: str | None = None
    ranks: Ranks = ALONE

    def __post_init__(self) -> None:
        # So written, NaN is refused too.
        if self.budget_s is not None and not self.budget_s >= 0:
            raise InputError(
                f"`budget_s` is {self.budget_s}; it must be a number of seconds, at least 0"
            )
        if self.side_by_side < 1:
            raise InputError(f"`side_by_side` is {self.side_by_side}; it must be at least 1")
        if self.dask is not None and self.side_by_side > 1:
            raise InputError(
                f"`side_by_side` is {self.side_by_side} and `dask` is {self.dask!r}: give one of "
                "them; a cluster trains a run on every worker"
            )
        if self.ranks.size > 1 and (self.side_by_side > 1 or self.dask is not None):
            raise InputError(
                f"{self.ranks.size} ranks share every training, one run after another: leave "
                "`side_by_side` and `dask` out, or start one process"
            )

    def deadline(self) -> float | None:
        """When the budget is spent if it starts now, on `time.monotonic`'s clock."""
        return None if self.budget_s is None else time.monotonic() + self.budget_s


DEFAULTS = Resources()
"""One run after another, without limit, on data in the campaign's folder."""


@dataclass(frozen=True)
class RunPlan:
    """A run to be trained.

    Attributes:
        recipe: The recipe, with the run's seed.
        method: Name of the method.
        folder: The folder of the run.
        choice: What the run stands for in its comparison: a method, or the value of a setting.
    """

    recipe: Recipe
    method: str
    folder: Path
    choice: str

    @property
    def seed(self) -> int:
        """The training seed."""
        return self.recipe.training.seed

    @property
    def run(self) -> Run:
        """The run, whose folder need not exist yet."""
        return Run(self.folder)

    @property
    def total_epochs(self) -> int:
        """Epochs of the whole training."""
        turns = self.recipe.method(self.method).turns(self.recipe.training)
        return sum(turn.epochs for turn in turns)

    def describe(self) -> dict[str, Any]:
        """The run's line in the ledger, without an estimate."""
        log = self.run.read_history()
        return {
            "system": self.recipe.system_name,
            "method": self.method,
            "seed": self.seed,
            "folder": self.folder.name,
            "state": self.run.read_stage(self.total_epochs),
            "epochs": len(log),
            "total_epochs": self.total_epochs,
            "seconds": self.run.read_seconds(),
        }

    def refuse_unbuildable(self, description: Description) -> None:
        """Refuses a model that lacks a module of the method, and unknown symmetries.

        Arguments:
            description: What the data are of.
        """
        refuse_other_symmetries(description.microstate, self.recipe.training)
        with ambient_seed(self.seed, "weights"):
            self.recipe.method(self.method).modules(self.recipe.model, description)

    def refuse_other_run(self, store: Store) -> None:
        """Refuses a folder that holds another run or is in use by another process."""
        if self.folder.exists():
            with self.run.claim(run_identity(self.recipe, store, self.method)):
                pass


def estimate_times(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of the ledger with `estimated_s`, the time of each whole training, where known."""
    estimated = []
    for line in lines:
        same = [other for other in lines if other["method"] == line["method"] and other["epochs"]]
        rates = [
            other["seconds"] / other["epochs"] for other in ([line] if line["epochs"] else same)
        ]
        seconds = line["total_epochs"] * mean(rates) if rates else None
        estimated.append({**line, "estimated_s": seconds})
    return estimated


@dataclass(frozen=True)
class Campaign:
    """Plans, and the resources to carry them out.

    Attributes:
        plans: The runs, most wanted first.
        store: The data.
        ledger: The file of the ledger.
        resources: Device and processes.
        deadline: Time on `time.monotonic`'s clock after which no more work is begun.
        test: Whether to score the runs on the test split.
    """

    plans: tuple[RunPlan, ...]
    store: Store
    ledger: Path
    resources: Resources
    deadline: float | None = None
    test: bool = True

    @classmethod
    def prepare(
        cls,
        plans: Sequence[RunPlan],
        out: Path,
        *,
        resources: Resources = DEFAULTS,
        test: bool = True,
    ) -> "Campaign":
        """Refuses plans that can never work, then simulates the data where they are absent.

        Arguments:
            plans: The runs, one at least, all of one system.
            out: The campaign's folder.
            resources: What the runs are trained with; the budget starts now.
            test: Whether to score the runs on the test split.
        """
        deadline = resources.deadline()
        if resources.dask is None:  # the workers of a cluster may have another device
            resources = replace(resources, device=resolve_device(resources.device))
        description = _describe_data(plans[0].recipe, resources.data)
        for plan in plans:
            plan.refuse_unbuildable(description)
        store = make_data(plans[0].recipe, out, resources.data, dask=resources.dask)
        for plan in plans:
            plan.refuse_other_run(store)
        return cls(tuple(plans), store, out / "plan.json", resources, deadline, test)

    def run(self) -> list[Trial | None]:
        """Carries out the plans: the trial of each finished or failed run, None for the others.

        A training that diverges does not stop the others.
        """
        found: dict[Path, Trial | None] = {}
        self._write_ledger([])
        for folder, trial in self._finish_all():
            found[folder] = trial
            failed = [path for path, trial in found.items() if trial and trial.failure]
            self._write_ledger(failed)
        return [found[plan.folder] for plan in self.plans]

    def finish(self, plan: RunPlan) -> tuple[Path, Trial | None]:
        """Trains and scores a run until the deadline; returns its folder and its trial."""
        trial = None
        try:
            if self._is_finished(plan):
                trial = plan.run.read_trial(plan.choice, test=self.test)
        except DivergenceError as error:
            trial = Trial(plan.choice, plan.seed, failure=str(error))
        return plan.folder, trial

    def _finish_all(self) -> Iterator[tuple[Path, Trial | None]]:
        if self.resources.dask is not None:
            yield from self._finish_on_cluster(self.resources.dask)
            return
        if self.resources.side_by_side == 1:
            yield from map(self.finish, self.plans)
            return
        for plan in (yield from self._finish_side_by_side()):
            say(f"{plan.folder}: the device was too full beside other runs; trained on alone")
            yield self.finish(plan)

    def _finish_side_by_side(
        self,
    ) -> Generator[tuple[Path, Trial | None], None, list[RunPlan]]:
        """Returns the runs for which the device had no memory beside the others."""
        processes, crowded = self.resources.side_by_side, []
        context = get_context("spawn")  # a forked process cannot use the parent's GPU
        threads = max(1, torch.get_num_threads() // processes)
        with ProcessPoolExecutor(processes, context, _start_worker, (threads,)) as pool:
            try:
                plans = {pool.submit(self.finish, plan): plan for plan in self.plans}
                for done in as_completed(plans):
                    if isinstance(done.exception(), torch.OutOfMemoryError):
                        crowded.append(plans[done])
                    else:
                        yield done.result()
            except BrokenProcessPool as error:
                raise InputError(
                    "a process that trained was ended from outside, perhaps because the memory "
                    "was full: the same command resumes; ask for fewer runs side by side"
                ) from error
            except KeyboardInterrupt:
                # A signal to this process alone does not reach the workers, which save and end.
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in active_children():
                    worker.terminate()
                raise
        return crowded

    def _finish_on_cluster(self, address: str) -> Iterator[tuple[Path, Trial | None]]:
        # The clock of a deadline begins anew with each machine; that of the day is common.
        until = None if self.deadline is None else time.time() + self.deadline - time.monotonic()
        moved = replace(
            self,
            plans=tuple(replace(plan, folder=plan.folder.resolve()) for plan in self.plans),
            store=replace(self.store, path=self.store.path.resolve()),
            ledger=self.ledger.resolve(),
        )
        with connected(address) as executor:
            folders = {
                executor.submit(_finish_elsewhere, moved, plan, until): own.folder
                for own, plan in zip(self.plans, moved.plans, strict=True)
            }
            try:
                for future in as_completed(folders):
                    _, trial = future.result()
                    yield folders[future], trial
            except BaseException:
                for future in folders:
                    future.cancel()
                raise

    def _is_finished(self, plan: RunPlan) -> bool:
        run, data, device = plan.run, self.store.path, self.resources.device
        trained = run.read_stage(plan.total_epochs) in ("trained", "done")
        scored = not self.test or (trained and run.is_evaluated(self.store.manifest.identity))
        if trained and scored:
            return True
        if self._is_over:
            return False
        place = f"run {self.plans.index(plan) + 1} of {len(self.plans)}"
        say(f"{place}: {name_of(plan.method)}, seed {plan.seed}, in {plan.folder}")
        if not trained:
            history = train(
                plan.recipe,
                data,
                plan.folder,
                method=plan.method,
                device=device,
                deadline=self.deadline,
                memory=self.resources.memory,
                ranks=self.resources.ranks,
            )
            if not history.finished:
                return False
        if not scored:
            if self._is_over:
                return False
            evaluate_run(plan.folder, data, device=device)
        return True

    @property
    def _is_over(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _write_ledger(self, failed: Sequence[Path]) -> None:
        lines = [
            plan.describe() | ({"state": "failed"} if plan.folder in failed else {})
            for plan in self.plans
        ]
        self.ledger.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.ledger, estimate_times(lines))


_ONE_AT_A_TIME = Lock()
"""A worker with several threads trains one run after another: a run sets torch's own state."""


def _finish_elsewhere(
    campaign: Campaign, plan: RunPlan, until: float | None
) -> tuple[Path, Trial | None]:
    """Finishes a run on the worker of a cluster; `until` is on the clock of the day."""
    with _ONE_AT_A_TIME:
        deadline = None if until is None else time.monotonic() + until - time.time()
        return replace(campaign, deadline=deadline).finish(plan)


def _start_worker(threads: int) -> None:
    """Sets a worker's threads, and ends the worker as soon as its parent is gone.

    A parent that is killed cannot tell its workers, which would train on and hold their folders.
    A worker that is told to end saves first, as it does on Ctrl-C.
    """
    torch.set_num_threads(threads)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end_with_parent, name="end with the parent", daemon=True).start()


def _describe_data(recipe: Recipe, data: str | Path | None) -> Description:
    """What the data of a campaign are of: the recipe's system, or what the store says."""
    if recipe.system is None and data is not None:
        return Store.open(data).description
    return recipe.find_plan()[0].description


def make_data(
    recipe: Recipe, out: Path, data: str | Path | None = None, *, dask: str | None = None
) -> Store:
    """The campaign's data, simulated where they are absent.

    Arguments:
        recipe: The recipe.
        out: The campaign's folder; without `data` the store is its `data/`.
        data: Another store. A complete store may hold more or fewer trajectories than the recipe
            says, but must be of its system.
        dask: The cluster that simulates, as for `simulate`.
    """
    if data is None:
        return simulate(recipe, out / "data", dask=dask)
    if not (Path(data) / MANIFEST).exists():
        return simulate(recipe, data, dask=dask)
    store = Store.open(data)
    recipe.refuse_other_data(store.description)
    return simulate(recipe, data, dask=dask) if store.missing() else store
