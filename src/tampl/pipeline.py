"""One function per verb of the command line: simulate, check, train, forecast, evaluate, report.

Each takes a recipe or folders, returns a record and writes files; together they are the whole way
from physical parameters to a page with curves.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .config import Recipe, find_system, read_recipe
from .data import CheckReport, Normalization, Store, check_store, generate
from .data.frames import Frames
from .errors import InputError
from .evaluate import Cases, Score
from .evaluate.suite import evaluate_model, refuse_other_system, rollout_rmse
from .forecast import Forecast, forecast
from .methods import Trainer
from .methods.run import History, RunFolder, fit, write_json
from .models import MacroModel, load_model
from .provenance import provenance
from .report.runs import RunRecord, write_report
from .seeding import ambient_seed

__all__ = [
    "Run",
    "check_data",
    "evaluate_run",
    "forecast_file",
    "report_runs",
    "simulate",
    "train",
]


AnyPath = str | Path


@dataclass(frozen=True)
class Run:
    """A training run on disk."""

    path: Path
    recipe: Recipe
    method: str

    @classmethod
    def open(cls, path: AnyPath) -> "Run":
        """Opens the folder of a run."""
        folder = RunFolder(Path(path))
        if not folder.identity.is_file():
            raise InputError(f"{path} holds no run; train one with `tampl train`")
        identity = json.loads(folder.identity.read_text())
        return cls(folder.path, read_recipe(folder.recipe), identity["method"])

    def model(self, device: str = "cpu") -> MacroModel:
        """The best model of the run on validation data."""
        return load_model(RunFolder(self.path).best, device=device)


def simulate(recipe: Recipe, out: AnyPath, *, workers: int | None = None) -> Store:
    """Makes the data of a recipe, or what is missing of it."""
    return generate(recipe.system, recipe.data, out, workers=workers)


def check_data(data: AnyPath) -> CheckReport:
    """Checks a store: format, checksums and physical sanity."""
    return check_store(data, find_system(Store.open(data).description))


def train(
    recipe: Recipe, data: AnyPath, out: AnyPath, *, method: str = "tampl", device: str = "cpu"
) -> History:
    """Trains a method of a recipe on a store; takes up an interrupted run in the same folder.

    Arguments:
        recipe: The recipe; its system must be the store's.
        data: The store.
        out: The folder of the run.
        method: Name of the method.
        device: Where to train.
    """
    chosen, store, folder = recipe.method(method), Store.open(data), RunFolder(Path(out))
    refuse_absent_device(device)
    refuse_other_system(recipe.system.description, store.description, whose="the recipe")
    trajectories, valid = store.trajectories("train"), store.trajectories("valid")
    normalization = Normalization.fit(trajectories.macrostates)
    frames = Frames.load(trajectories, store.description.microstate, normalization, device=device)
    with ambient_seed(recipe.training.seed, "weights"):
        modules = chosen.modules(recipe.model, store.description).to(device)
    turns = chosen.turns(recipe.training)
    trainer = Trainer(turns, modules, frames=frames, training=recipe.training)
    identity = {
        "method": method,
        "recipe": recipe.as_tables(only=method),
        "data": store.manifest.identity,
    }
    with folder.claimed(identity):
        recipe.write(folder.recipe)
        _write_once(folder.provenance, provenance(device))
        return fit(
            trainer,
            folder,
            make_model=lambda trained: MacroModel(
                recipe.model, store.description, normalization=normalization, modules=trained
            ),
            validate=lambda model: rollout_rmse(
                model, valid, members=recipe.training.validation_members
            ),
        )


def _write_once(path: Path, record: dict[str, object]) -> None:
    # A finished run that is called again keeps the machine and command that made it.
    if not path.exists():
        write_json(path, record)


def forecast_file(
    run: AnyPath,
    initial: AnyPath,
    out: AnyPath,
    *,
    horizon: int,
    samples: int = 64,
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
    result = forecast(model, states, horizon=horizon, members=samples, seed=seed)
    result.save(out)
    return result


def evaluate_run(run: AnyPath, data: AnyPath, *, device: str = "cpu") -> dict[str, Score]:
    """Scores a run on the test split of a store and keeps scores and cases beside the model."""
    refuse_absent_device(device)
    opened, store = Run.open(run), Store.open(data)
    model = opened.model(device)
    refuse_other_system(model.description, store.description, whose="the model")
    evaluation = evaluate_model(
        model,
        opened.method,
        train=store.trajectories("train"),
        test=store.references(),
        system=find_system(store.description),
    )
    evaluation.cases.save(opened.path / "cases.npz")
    record = {
        "scores": {name: asdict(score) for name, score in evaluation.scores.items()},
        "seed": opened.recipe.training.seed,
        "provenance": provenance(device),
    }
    write_json(opened.path / "evaluation.json", record)
    return dict(evaluation.scores)


def report_runs(
    runs: Sequence[AnyPath], out: AnyPath, *, wall_times: Mapping[str, float] | None = None
) -> Path:
    """Writes page, figures and scores of evaluated runs into a folder; returns the page."""
    opened = [Run.open(path) for path in runs]
    names = _distinct_names(opened)
    records = [_record(run, name) for run, name in zip(opened, names, strict=True)]
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    return write_report(records, out, wall_times=wall_times)


def _distinct_names(runs: Sequence[Run]) -> list[str]:
    if len({run.method for run in runs}) == len(runs):
        return [run.method for run in runs]
    return [f"{run.method} {run.recipe.training.seed} {run.path.name}" for run in runs]


def _record(run: Run, name: str) -> RunRecord:
    evaluation = run.path / "evaluation.json"
    if not evaluation.is_file():
        raise InputError(f"{run.path} is not evaluated; run `tampl evaluate` on it first")
    record = json.loads(evaluation.read_text())
    return RunRecord(
        name=name,
        kind=run.recipe.system.description.microstate.kind,
        recipe=run.recipe.as_tables(),
        scores={key: Score(**values) for key, values in record["scores"].items()},
        cases=Cases.load(run.path / "cases.npz"),
        history=json.loads(RunFolder(run.path).history.read_text()),
        provenance=record["provenance"],
    )


def refuse_absent_device(device: str) -> None:
    """Refuses a device that torch does not know or that is not there."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"`device` is {device!r}, which is not available here: {error}"
        ) from error


def _read_array(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise InputError(f"{path} does not exist; save microstates with numpy.save")
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} is not an .npy file of numbers: {error}") from error
