"""One function per verb of the command line: simulate, check, train, forecast, evaluate, report.

Each takes a recipe or folders, returns a record and writes files; together they are the whole way
from physical parameters to a page with curves.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..data import CheckReport, Normalization, Store, check_store, generate
from ..errors import InputError
from ..evaluation import Cases, Score
from ..evaluation.claims import plain_peaks, read_peaks
from ..evaluation.comparison import Comparison
from ..evaluation.suite import evaluate_model, refuse_other_system, rollout_rmse
from ..files import read_json, write_json
from ..forecast import Forecast, forecast
from ..methods import Method
from ..models import MacroModel, load_model
from ..seeding import ambient_seed
from ..training import Trainer
from ..training.frames import Frames
from ..training.loop import History, run_training
from .provenance import provenance
from .recipes import Recipe, find_system
from .report.archive import load_runs, save_run
from .report.comparisons import compare_runs
from .report.names import in_reading_order
from .report.runs import RunRecord, write_report
from .runs import RunFolder

__all__ = [
    "Run",
    "check_data",
    "data_facts",
    "evaluate_run",
    "forecast_file",
    "is_evaluated",
    "make_trainer",
    "read_history",
    "read_provenance",
    "read_records",
    "read_results",
    "record_runs",
    "refuse_absent_device",
    "report_runs",
    "run_identity",
    "simulate",
    "train",
]

AnyPath = str | Path


@dataclass(frozen=True)
class Run:
    """A training run on disk.

    Attributes:
        folder: Its files.
        method: Name of the method.
        recipe: The resolved recipe, as tables; a forecast does not need it.
    """

    folder: RunFolder
    method: str
    recipe: Mapping[str, Any]

    @classmethod
    def open(cls, path: AnyPath) -> "Run":
        """Opens the folder of a run."""
        folder = RunFolder(Path(path))
        identity = folder.read_identity()
        try:
            return cls(folder, identity["method"], identity["recipe"])
        except (KeyError, TypeError) as error:
            raise InputError(f"{folder.identity} is damaged; train again elsewhere") from error

    def model(self, device: str = "cpu") -> MacroModel:
        """The best model of the run on validation data."""
        return load_model(self.folder.best, device=device)


def simulate(
    recipe: Recipe, out: AnyPath, *, workers: int | None = None, device: str = "cpu"
) -> Store:
    """Makes the data of a recipe, or what is missing of it, with the kernels of a device."""
    return generate(recipe.system.on(device), recipe.data, out, workers=workers)


def check_data(data: AnyPath) -> CheckReport:
    """Checks a store: format, checksums and physical sanity."""
    return check_store(data, find_system(Store.open(data).description))


def train(
    recipe: Recipe,
    data: AnyPath,
    out: AnyPath,
    *,
    method: str = "tampl",
    device: str = "cpu",
    deadline: float | None = None,
) -> History:
    """Trains a method of a recipe on a store; takes up an interrupted run in the same folder.

    Arguments:
        recipe: The recipe; its system must be the store's.
        data: The store.
        out: The folder of the run.
        method: Name of the method.
        device: Where to train.
        deadline: Time on `time.monotonic`'s clock after which the run is saved and left.
    """
    chosen, store, folder = recipe.method(method), Store.open(data), RunFolder(Path(out))
    refuse_absent_device(device)
    refuse_other_system(recipe.system.description, store.description, whose="the recipe")
    normalization, valid = _normalization(store), store.trajectories("valid", verify=True)
    trainer = make_trainer(chosen, recipe, store, device=device)
    with folder.claimed(run_identity(recipe, store, method)):
        recipe.write(folder.recipe)
        if not folder.has_learnt:  # later calls keep the machine and command that began it
            write_json(folder.provenance, provenance(device))
        return run_training(
            trainer,
            folder,
            make_model=lambda trained: MacroModel(
                store.description, normalization=normalization, modules=trained
            ),
            validate=lambda model: rollout_rmse(
                model, valid, members=recipe.training.validation_members
            ),
            deadline=deadline,
        )


def make_trainer(method: Method, recipe: Recipe, store: Store, *, device: str = "cpu") -> Trainer:
    """A trainer at its first epoch: frames on the device, weights from the recipe's seed."""
    kind, train_split = store.description.microstate, store.trajectories("train", verify=True)
    frames = Frames.load(train_split, kind, _normalization(store), device=device)
    with ambient_seed(recipe.training.seed, "weights"):
        modules = method.modules(recipe.model, store.description).to(device)
    turns = method.turns(recipe.training)
    return Trainer(turns, modules, frames=frames, training=recipe.training)


def run_identity(recipe: Recipe, store: Store, method: str) -> dict[str, Any]:
    """What makes a run what it is; the folder of another one is refused."""
    return {
        "method": method,
        "recipe": recipe.as_tables(only=method) | {"data": data_facts(store)},
        "data": store.manifest.identity,
    }


def data_facts(store: Store) -> dict[str, int]:
    """What the store really holds, whatever the recipe says of data."""
    splits = store.manifest.splits
    counts = {name: split.count for name, split in splits.items()}
    # One run is left out, as in the store itself: what was trained earlier stays the same run.
    runs = {f"{name}_runs": split.runs for name, split in splits.items() if split.runs > 1}
    members = max(split.members for split in splits.values())
    return {"seed": store.manifest.seed, **counts, "members": members, **runs}


def _normalization(store: Store) -> Normalization:
    names = [observable.name for observable in store.description.observables]
    return Normalization.fit(store.macrostates("train"), names=names)


def forecast_file(
    run: AnyPath,
    initial: AnyPath,
    out: AnyPath,
    *,
    horizon: int,
    members: int = 64,
    seed: int = 0,
    device: str = "cpu",
) -> Forecast:
    """Forecasts from microstates in an .npy file and writes the ensemble to an .npz file."""
    initial, out = Path(initial), Path(out)
    refuse_absent_device(device)
    if out.suffix != ".npz":
        raise InputError(f"`out` is {out}; a forecast is an .npz file")
    if not out.parent.is_dir():
        raise InputError(f"`out` is {out}, but the folder {out.parent} does not exist; make it")
    model = Run.open(run).model(device)
    states = model.description.microstate.check(_read_array(initial), str(initial))
    result = forecast(
        model,
        states,
        macrostates=_observed(model, states),
        horizon=horizon,
        members=members,
        seed=seed,
    )
    result.save(out)
    return result


def _observed(model: MacroModel, states: NDArray[Any]) -> NDArray[np.float64] | None:
    """What the system observes of microstates, where the model starts from that."""
    if not model.needs_macrostates:
        return None
    system = find_system(model.description)
    if system is None:
        raise InputError(
            f"the model starts from macrostates, and {model.description.system!r} is no system "
            "that can observe them; call `tampl.forecast.forecast` with `macrostates`"
        )
    axes = len(model.description.microstate.shape)
    return system.observe(states.reshape(-1, *states.shape[-axes:]))


def evaluate_run(run: AnyPath, data: AnyPath, *, device: str = "cpu") -> dict[str, Score]:
    """Scores a run on the test split of a store and keeps scores and cases beside the model."""
    refuse_absent_device(device)
    opened, store = Run.open(run), Store.open(data)
    model = opened.model(device)
    refuse_other_system(model.description, store.description, whose="the model")
    evaluation = evaluate_model(
        model,
        opened.method,
        train=store.macrostates("train"),
        test=store.references(verify=True),
        system=find_system(store.description),
    )
    evaluation.cases.save(opened.folder.cases)
    record = {
        "scores": {name: asdict(score) for name, score in evaluation.scores.items()},
        "peaks": plain_peaks(evaluation.peaks),
        "spread": dict(evaluation.spread),
        "microstate": model.description.microstate.kind,
        "model": _digest(opened.folder.best),
        "data": store.manifest.identity,
        "provenance": provenance(device),
    }
    write_json(opened.folder.evaluation, record)
    return dict(evaluation.scores)


def report_runs(
    runs: Sequence[AnyPath], out: AnyPath, *, wall_times: Mapping[str, float] | None = None
) -> Path:
    """Writes page, figures and scores of evaluated runs into a folder; returns the page."""
    records, out = read_records(runs), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    return write_report(records, out, wall_times=wall_times)


def read_records(runs: Sequence[AnyPath]) -> list[RunRecord]:
    """What evaluated runs left behind; runs that were evaluated on different data are refused."""
    opened = [Run.open(path) for path in runs]
    evaluations = [_read_evaluation(run) for run in opened]
    if len({evaluation["data"] for evaluation in evaluations}) > 1:
        raise InputError("the runs were evaluated on different data; report them one by one")
    return [
        RunRecord(
            name=name,
            method=run.method,
            kind=evaluation["microstate"],
            recipe=run.recipe,
            scores={key: Score(**values) for key, values in evaluation["scores"].items()},
            cases=Cases.load(run.folder.cases),
            data=evaluation["data"],
            history=read_history(run.folder.path),
            provenance=evaluation["provenance"],
            training_provenance=read_provenance(run.folder.path),
            # A run that was evaluated before these were kept has none.
            peaks=read_peaks(evaluation.get("peaks", {})),
            spread=evaluation.get("spread", {}),
        )
        for run, evaluation, name in zip(opened, evaluations, _names(opened), strict=True)
    ]


def record_runs(runs: Sequence[AnyPath], out: AnyPath) -> list[Path]:
    """Keeps evaluated runs in a folder of measured results, without their weights."""
    return [save_run(record, Path(out)) for record in read_records(runs)]


def read_results(folder: AnyPath) -> dict[str, Comparison]:
    """Every measured score, by experiment: the folders of `folder` that keep runs.

    Arguments:
        folder: Where experiments lie, such as `results`.
    """
    if not Path(folder).is_dir():
        raise InputError(f"{folder} does not exist; give a folder of measured results")
    kept = {path.name: load_runs(path) for path in sorted(Path(folder).iterdir()) if path.is_dir()}
    return {name: _compare_kept(runs) for name, runs in kept.items() if runs}


def _compare_kept(runs: Sequence[RunRecord]) -> Comparison:
    methods, seeds = {run.method for run in runs}, {run.seed for run in runs}
    return compare_runs(runs, methods=in_reading_order(methods), seeds=sorted(seeds))


def read_history(run: AnyPath) -> list[dict[str, Any]]:
    """The log of a run, one record per epoch."""
    return read_json(RunFolder(Path(run)).history, "run `tampl train` on it again")


def read_provenance(run: AnyPath) -> dict[str, Any]:
    """Hardware, versions, commit and command that a run began with."""
    return read_json(RunFolder(Path(run)).provenance, "train again in a new folder")


def is_evaluated(run: AnyPath, store: Store) -> bool:
    """Whether a run keeps the scores of its present best model on the data of a store."""
    opened = Run.open(run)
    try:
        record = _read_evaluation(opened)
    except InputError:
        return False
    return record.get("data") == store.manifest.identity and opened.folder.cases.is_file()


def _names(runs: Sequence[Run]) -> list[str]:
    """The method where it says enough, with seed and number where several runs share it."""
    if len({run.method for run in runs}) == len(runs):
        return [run.method for run in runs]
    seeds = [f"{run.method} seed {run.recipe['training']['seed']}" for run in runs]
    folders = [f"{run.method} {run.folder.path.resolve().name}" for run in runs]
    numbered = [f"{seed} run {number}" for number, seed in enumerate(seeds, start=1)]
    return next(names for names in (seeds, folders, numbered) if len(set(names)) == len(runs))


def _read_evaluation(run: Run) -> dict[str, Any]:
    path, remedy = run.folder.evaluation, "run `tampl evaluate` on it"
    if not path.is_file():
        raise InputError(f"{run.folder.path} is not evaluated; {remedy} first")
    record = read_json(path, f"{remedy} again")
    if not run.folder.best.is_file() or record.get("model") != _digest(run.folder.best):
        raise InputError(
            f"the best model in {run.folder.path} is not the one evaluated there; {remedy} again"
        )
    return record


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refuse_absent_device(device: str) -> None:
    """Refuses a device that torch does not know or that is not there."""
    try:
        torch.empty(0, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"`device` is {device!r}, which is not available here: {error}"
        ) from error


def _read_array(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise InputError(f"{path} does not exist or is a folder; give a file of numpy.save")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} is not an .npy file of numbers") from error
    if not isinstance(array, np.ndarray):
        array.close()  # an archive stays open until it is told
        raise InputError(f"{path} holds several arrays; give an .npy file with one")
    return array
