"""One function per verb of the command line: simulate, check, train, forecast, evaluate, report.

Each takes a recipe or folders, returns a record and writes files; together they lead from physical
parameters to a page with curves.
"""

import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import CheckReport, Store, check_store, generate
from ..data.dataset import Dataset, References
from ..description import match_interval
from ..errors import InputError
from ..evaluation import evaluate
from ..evaluation.comparison import Comparison, compare_trials, summarize, summarize_known
from ..evaluation.health import never_validated
from ..evaluation.markov import chapman_kolmogorov
from ..evaluation.metrics import Score
from ..evaluation.trust import Trust
from ..files import write_json
from ..forecast import Forecast
from ..memory import available_memory
from ..models import Ensemble, MacroModel, load_model, resolve_device
from ..progress import say
from ..training import ALONE, DivergenceError, History, MemoryKeeper, Ranks, join
from ..training.partitions import Partitions
from ..training.streaming import BUFFERS, count_bytes_beside
from .cluster import connected
from .provenance import provenance
from .recipes import Recipe, find_system
from .report.grids import in_reading_order
from .report.outputs import write_report
from .runs import Run, RunRecord, load_records, read_records

__all__ = [
    "Results",
    "check_data",
    "data_facts",
    "evaluate_run",
    "follow",
    "forecast_file",
    "joined",
    "read_results",
    "record_runs",
    "report_runs",
    "run_identity",
    "simulate",
    "train",
]

AnyPath = str | Path


def simulate(
    recipe: Recipe,
    out: AnyPath,
    *,
    workers: int | None = None,
    device: str = "cpu",
    dask: str | None = None,
) -> Store:
    """Simulates the data of a recipe, or the part of it that is missing.

    Arguments:
        recipe: The recipe.
        out: The folder of the store.
        workers: Threads, or processes of a local cluster; as many as cores by default.
        device: Whose kernels to use. There is no automatic choice: kernels of another device give
            other bytes, so that the kernel is part of a store's identity.
        dask: The cluster that simulates: the address or the file of a Dask scheduler, or "local".
    """
    system, plan = recipe.find_plan()
    system = system.on(device)
    if dask is None:
        return generate(system, plan, out, workers=workers)
    with connected(dask, workers=workers) as executor:
        return generate(system, plan, out, workers=workers, executor=executor)


def check_data(data: AnyPath) -> CheckReport:
    """Checks a store: format, checksums and physical sanity."""
    return check_store(data, find_system(Store.open(data).description))


def train(
    recipe: Recipe,
    data: AnyPath,
    out: AnyPath,
    *,
    method: str = "tampl",
    device: str = "auto",
    deadline: float | None = None,
    memory: float | None = None,
    ranks: Ranks = ALONE,
) -> History:
    """Trains a method of a recipe on a store; resumes an interrupted run in the same folder.

    A run of the same recipe with fewer epochs is trained further: its learning rate then follows
    the cosine schedule of the new length. A training that is left says what is saved.

    Arguments:
        recipe: The recipe; its system must be the store's. One of own data takes any store.
        data: The store.
        out: The folder of the run.
        method: Name of the method.
        device: Where to train.
        deadline: Time on `time.monotonic`'s clock after which the run is saved and left.
        memory: Bytes that the data may take in memory, half of what is available by default. The
            microstates of a larger training set stay on disk and are read as they are needed,
            which changes no weight. Ranks on one machine share it.
        ranks: The processes that train together. The leader calls this, the others `follow`.
    """
    task = _Training(recipe.of(method), Path(data), Path(out), method, device, memory)
    ranks.lead(lambda: task)
    return task.carry_out(ranks, deadline=deadline)


def follow(ranks: Ranks) -> None:
    """What ranks other than the leader do: their part of each training, until there is no more.

    Arguments:
        ranks: The processes that train together.
    """
    while (task := ranks.lead(_tell_nothing)) is not None:
        # The leader has met the same error and says so.
        with suppress(InputError, KeyboardInterrupt):
            task.carry_out(ranks)


@contextmanager
def joined(device: str = "auto") -> Iterator[Ranks]:
    """The ranks that torchrun has started, which follow the block of the first one.

    The others never enter the block. They leave the process with it.

    Arguments:
        device: Where to train.
    """
    with join(device) as ranks:
        if not ranks.leads:
            follow(ranks)
            raise SystemExit(0)
        try:
            yield ranks
        finally:
            if ranks.at_one:
                ranks.lead(_tell_nothing)


def _tell_nothing() -> "_Training | None":
    return None


@dataclass(frozen=True)
class _Training:
    """What ranks have to know of a training; `train` says what it is."""

    recipe: Recipe
    data: Path
    out: Path
    method: str
    device: str
    memory: float | None

    def carry_out(self, ranks: Ranks, *, deadline: float | None = None) -> History:
        """Trains together with all ranks."""
        with ExitStack() as stack:
            stack.enter_context(ranks.postponing_interrupts())
            chosen = self.recipe.method(self.method)
            turns, run = chosen.turns(self.recipe.training), Run(self.out)
            total = sum(turn.epochs for turn in turns)
            device, train_set, valid_set = ranks.agree(lambda: self._prepare(ranks))
            ranks.lead(
                lambda: self._open(run, len(turns), total, device=device, ranks=ranks, stack=stack)
            )
            try:
                chosen.fit(
                    train_set,
                    valid_set,
                    training=self.recipe.training,
                    architecture=self.recipe.model,
                    device=device,
                    keeper=run if ranks.leads else MemoryKeeper(),
                    deadline=deadline,
                    ranks=ranks,
                )
            except KeyboardInterrupt:
                say(run.describe_saved(total))
                raise
            except DivergenceError as error:
                kept = run.list_saved(total) or "nothing, the first epoch did not end"
                raise DivergenceError(f"{error}; kept: {kept}") from error
            if not run.log.finished:
                say(f"the time is over; {run.describe_saved(total)}")
            return run.log

    def _prepare(self, ranks: Ranks) -> tuple[str, Dataset, Dataset]:
        """Device and data."""
        store = Store.open(self.data)
        device = resolve_device(self.device)
        self.recipe.refuse_other_data(store.description)
        split = store.manifest.splits["train"]
        # Before anything is read: the data may be large.
        Partitions.cut(split.count * split.runs, self.recipe.training.partitions, ranks)
        return (device, *_read_training_data(self.recipe, store, self.memory, ranks))

    def _open(
        self, run: Run, turns: int, total: int, *, device: str, ranks: Ranks, stack: ExitStack
    ) -> None:
        """Claims the folder of the run and notes there what is trained, where and how.

        Arguments:
            run: The run.
            turns: How many turns the method has.
            total: Epochs of all of them.
            device: Where to train.
            ranks: The processes that train.
            stack: Holds the claim.
        """
        identity = run_identity(self.recipe, Store.open(self.data), self.method)
        before = run.find_shorter(identity)
        if before is not None and turns > 1:
            raise InputError(
                f"{run.path} holds this run with {before} epochs, and {self.method} trains in "
                f"{turns} turns, one after the other, of which the first is over: train in "
                "another folder"
            )
        stack.enter_context(run.claim(identity, extend=True))
        self.recipe.write(run.recipe_file)
        if not run.has_learnt:  # later calls keep the machine and command that began the run
            known = provenance(device) | ({"ranks": ranks.size} if ranks.size > 1 else {})
            write_json(run.provenance_file, known)
        if before is not None:
            say(
                f"{run.path} is extended from {before} to {total} epochs: from now on the "
                f"learning rate follows the cosine schedule of {total} epochs"
            )
            run.note_extension(before, total)


def _read_training_data(
    recipe: Recipe, store: Store, memory: float | None, ranks: Ranks
) -> tuple[Dataset, Dataset]:
    """The splits to train and validate on, in memory as far as they fit there.

    Of several ranks each reads its own partitions and leaves the others on disk; one of them
    verifies the checksums.
    """
    memory = (available_memory() / 2 if memory is None else memory) / ranks.local_size
    description, split = store.description, store.manifest.splits["train"]
    kind, frames = description.microstate, split.count * split.runs * description.frames
    beside = count_bytes_beside(frames, len(description.observables), recipe.model.latent_dim)
    # Standardised microstates and those that symmetries have moved are there twice.
    copies = 1 + kind.standardised + bool(recipe.training.symmetries)
    whole = frames * prod(kind.shape) * kind.dtype.itemsize / ranks.size
    fits = copies * whole + beside <= memory
    given = f"`memory` is {memory / 2**30:.2f} GiB{' for each rank' * (ranks.size > 1)}"
    if not fits and beside + BUFFERS > memory:
        raise InputError(
            f"the training set of {store.path} has {frames:,} frames, which need "
            f"{(beside + BUFFERS) / 2**30:.2f} GiB of memory even with the microstates on disk; "
            f"{given}: allow more, or train on fewer frames"
        )
    if not fits:
        say(
            f"{whole / 2**30:.2f} GiB of microstates stay on disk and are read as they are "
            f"needed; {given}"
        )
    alone = ranks.size == 1
    train_set = store.dataset(
        "train",
        verify=ranks.leads,
        memory=None if fits and alone else 0,
        # The partitions of one rank may have a few trajectories more than those of another.
        part=2 * whole if fits and not alone else 0,
    )
    # Of a validation set the training reads the first frames.
    return train_set, store.dataset("valid", verify=ranks.leads, memory=memory / 8)


def run_identity(recipe: Recipe, store: Store, method: str) -> dict[str, Any]:
    """What identifies a run: method, resolved recipe and data."""
    return {
        "method": method,
        "recipe": recipe.as_tables(only=method) | {"data": data_facts(store)},
        "data": store.manifest.identity,
    }


def data_facts(store: Store) -> dict[str, int]:
    """The sizes and the seed of a store, which may differ from those of the recipe."""
    splits = store.manifest.splits
    counts = {name: split.count for name, split in splits.items()}
    # A single trajectory is left out, as in the store itself, so that older runs stay the same.
    runs = {f"{name}_runs": split.runs for name, split in splits.items() if split.runs > 1}
    members = max(split.members for split in splits.values())
    return {"seed": store.manifest.seed, **counts, "members": members, **runs}


def forecast_file(
    runs: Sequence[AnyPath],
    initial: AnyPath,
    out: AnyPath,
    *,
    horizon: int,
    members: int = 64,
    seed: int = 0,
    device: str = "auto",
    y0: AnyPath | None = None,
) -> Forecast:
    """Forecasts from initial microstates and writes the ensemble to an .npz file.

    Arguments:
        runs: Folders of runs, or files of models; of several the members are pooled.
        initial: The microstates, an .npy file, or a store, whose test split they then are with
            their macrostates.
        out: The file of the forecast.
        horizon: Frames ahead.
        members: Members of each ensemble, of all models together.
        seed: Governs the ensemble.
        device: Where to forecast.
        y0: The macrostates of the microstates, an .npy file; by default the system observes them
            where it is known.
    """
    initial, out, device = Path(initial), Path(out), resolve_device(device)
    if out.suffix != ".npz":
        raise InputError(f"`out` is {out}; a forecast is an .npz file")
    if not out.parent.is_dir():
        raise InputError(f"`out` is {out}, but the folder {out.parent} does not exist; make it")
    models = [_load(run, device) for run in runs]
    model = models[0] if len(models) == 1 else Ensemble(models)
    states, known = _read_initial(model, initial)
    if y0 is not None:
        known = _read_array(Path(y0))
    elif known is None:
        known = _observe(model, states)
    result = model.forecast(states, y0=known, horizon=horizon, members=members, seed=seed)
    result.save(out)
    return result


def _warn_of_runaway(run: Run) -> None:
    if never_validated(run.read_history()):
        say(
            f"no validation of the training in {run.path} gave a finite error: do not rely on its "
            "model"
        )


def _load(run: AnyPath, device: str) -> MacroModel:
    """The best model of a run, or the model in a file."""
    if Path(run).is_file():
        return load_model(run, device=device)
    opened = Run.open(run)
    _warn_of_runaway(opened)
    return opened.load_model(device)


def _read_initial(
    model: MacroModel | Ensemble, path: Path
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Initial microstates; from a store those of its test split, with their macrostates."""
    if not path.is_dir():
        return model.description.microstate.check(_read_array(path), str(path)), None
    store = Store.open(path)
    match_interval(model.description, store.description, whose="the model")
    test = _read_test(store)
    references = test.references if isinstance(test, Dataset) else test
    return references.x, references.y[:, 0, 0]


def _observe(model: MacroModel | Ensemble, states: NDArray[Any]) -> NDArray[np.float64] | None:
    """The macrostates of microstates, where the model's state holds them and they can be had."""
    if not (model.needs_macrostates or model.carries_macrostate):
        return None
    system = find_system(model.description)
    if system is None:
        if model.carries_macrostate:
            return None
        raise InputError(
            f"the model starts from macrostates, and {model.description.system!r} is no system "
            "that can observe them: give them by `--y0`, or the microstates by a store"
        )
    axes = len(model.description.microstate.shape)
    return system.observe(states.reshape(-1, *states.shape[-axes:]))


def _read_array(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise InputError(f"{path} does not exist or is a folder; give a file of numpy.save")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, tokenize.TokenError, SyntaxError, MemoryError) as error:
        raise InputError(f"{path} is not an .npy file of numbers") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise InputError(f"{path} holds several arrays; give an .npy file with one")
    return array


def evaluate_run(run: AnyPath, data: AnyPath, *, device: str = "auto") -> dict[str, Score]:
    """Scores a run on the test split of a store and keeps the record beside the model."""
    opened, store, device = Run.open(run), Store.open(data), resolve_device(device)
    model = opened.load_model(device)
    _warn_of_runaway(opened)
    match_interval(model.description, store.description, whose="the model")
    system, test = find_system(store.description), _read_test(store)
    closures = {} if system is None else system.closures()
    evaluation = evaluate(model, test, closures=closures, name=opened.method)
    # The paper's plain algorithm, beside.
    plain = evaluate(model, test, limits=False)
    markov = chapman_kolmogorov(model, store.dataset("valid", verify=True))
    if evaluation.cases is None:
        raise InputError(f"the test split of {store.path} has one microstate; two are needed")
    description = model.description
    cases = replace(
        evaluation.cases,
        units=tuple(observable.unit for observable in description.observables),
        time_unit=description.time_unit,
    )
    opened.keep_record(
        RunRecord(
            method=opened.method,
            kind=description.microstate.kind,
            recipe=opened.recipe,
            scores=evaluation.scores,
            cases=cases,
            data=store.manifest.identity,
            history=opened.read_history(),
            provenance=provenance(device),
            training_provenance=opened.read_provenance(),
            peaks=evaluation.peaks,
            spread=evaluation.spread,
            crps=evaluation.crps,
            description=description.model_dump(mode="json"),
            trust=Trust(
                plain=Score(plain.rmse, plain.mmd),
                held=evaluation.held,
                warnings=evaluation.warnings,
                calibration=evaluation.calibration,
                markov=markov,
            ),
        )
    )
    return dict(evaluation.scores)


def _read_test(store: Store) -> Dataset | References:
    """The test split, which a store from outside may hold as whole trajectories."""
    split = store.manifest.splits.get("test")
    whole = split is not None and not split.members
    return (store.dataset if whole else store.references)("test", verify=True)


def report_runs(
    runs: Sequence[AnyPath], out: AnyPath, *, wall_times: Mapping[str, float] | None = None
) -> Path:
    """Writes page, figures and scores of evaluated runs into a folder; returns the page."""
    opened = [Run.open(path) for path in runs]
    records = dict(zip(_name_runs(opened), read_records(opened), strict=True))
    return write_report(records, Path(out), wall_times=wall_times)


def _name_runs(runs: Sequence[Run]) -> list[str]:
    """The method where it is unique; with seed, folder or number where several runs share it."""
    methods = [run.method for run in runs]
    seeds = [f"{run.method} seed {run.recipe['training']['seed']}" for run in runs]
    folders = [f"{run.method} {run.path.resolve().name}" for run in runs]
    numbered = [f"{seed} run {number}" for number, seed in enumerate(seeds, start=1)]
    choices = (methods, seeds, folders, numbered)
    return next(names for names in choices if len(set(names)) == len(runs))


def record_runs(runs: Sequence[AnyPath], out: AnyPath) -> list[Path]:
    """Copies the records of evaluated runs to a folder of measured results.

    Arguments:
        runs: Folders of the runs.
        out: The folder of an experiment, such as `results/sirs`; one that holds records of runs
            on other data is refused.
    """
    records, out, kept = read_records([Run.open(path) for path in runs]), Path(out), []
    if any(other.data != record.data for other in load_records(out) for record in records):
        raise InputError(
            f"`out` is {out}, which holds records of runs that were evaluated on other data: give "
            "another folder"
        )
    for record in records:
        kept.append(out / f"{record.method}-{record.seed}.json")
        record.save(kept[-1])
    return kept


@dataclass(frozen=True)
class Results:
    """The measured runs of an experiment.

    Attributes:
        comparison: Their scores.
        trusts: How far the forecasts of each method can be trusted, a record for each run that has
            one.
    """

    comparison: Comparison
    trusts: Mapping[str, Sequence[Trust]]

    def as_dict(self) -> dict[str, Any]:
        """Scores by name as plain data; those of methods with what is known beside them."""
        scores = self.comparison.as_dict()["scores"]
        for method, found in self.trusts.items():
            known = summarize_known(trust.plain.mmd for trust in found)
            scores[method]["plain"] = {
                "rmse": asdict(summarize(trust.plain.rmse for trust in found)),
                "mmd": None if known is None else asdict(known),
            }
            scores[method]["held"] = [trust.held for trust in found]
        return scores


def read_results(folder: AnyPath) -> dict[str, Results]:
    """Every measured score, by experiment: the subfolders of `folder` that hold records.

    Arguments:
        folder: The folder of all experiments, such as `results`.
    """
    if not Path(folder).is_dir():
        raise InputError(f"{folder} does not exist; give a folder of measured results")
    folders = [path for path in sorted(Path(folder).iterdir()) if path.is_dir()]
    found = {path.name: load_records(path) for path in folders}
    return {name: _summarize_records(records) for name, records in found.items() if records}


def _summarize_records(records: Sequence[RunRecord]) -> Results:
    methods = in_reading_order({record.method for record in records})
    comparison = compare_trials(
        [record.trial for record in records],
        records[0].baselines,
        choices=methods,
        seeds=sorted({record.seed for record in records}),
    )
    trusts = {
        method: [r.trust for r in records if r.method == method and r.trust is not None]
        for method in methods
    }
    return Results(comparison, {method: found for method, found in trusts.items() if found})
