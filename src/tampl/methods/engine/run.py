"""A training run in a folder: checkpoints, log, best model, resume.

    run.json             what the run is; another run is refused in the same folder
    recipe.toml          the resolved recipe
    provenance.json      hardware, versions, commit and command that started it
    state.safetensors    everything to resume from, at the end of an epoch
    history.json         one record per epoch
    best.safetensors     the model with the lowest validation error
    last.safetensors     the model after the last epoch
    evaluation.json      scores of the best model, where it was evaluated
    cases.npz            the cases that figures show

Every file appears by rename, complete or not at all.
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...atomic import claimed, is_temporary, replacing, sweep
from ...data.metadata import first_difference
from ...errors import InputError
from ...models import MacroModel, Modules, save_model
from ...models.checkpoint import load_tensors, save_tensors
from ...progress import bar, say
from ...records import read_json
from .latents import LatentScale, has_collapsed
from .trainer import EpochRecord, Trainer

__all__ = ["History", "RunFolder", "fit"]

STATE_FORMAT = "tampl-state-1"

Validate = Callable[[MacroModel], float]
MakeModel = Callable[[Modules], MacroModel]


@dataclass
class History:
    """The log of a run: one plain record per epoch, and the best validation error so far."""

    epochs: list[dict[str, Any]] = field(default_factory=list)
    best: float | None = None
    best_epoch: int = 0
    finished: bool = False

    def add(self, record: EpochRecord, validation: float | None) -> bool:
        """Adds an epoch; returns whether the latent scale collapsed in it."""
        earlier = [LatentScale(**epoch["latent"]) for epoch in self.epochs]
        collapsed = has_collapsed([*earlier, record.latent])
        before = bool(self.epochs) and self.epochs[-1]["collapsed"]
        log = {**record.as_dict(), "validation": validation, "collapsed": collapsed}
        self.epochs.append(log)
        return collapsed and not before


class RunFolder:
    """The files of one run.

    Arguments:
        path: The folder; it is made if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity = path / "run.json"
        self.recipe = path / "recipe.toml"
        self.provenance = path / "provenance.json"
        self.state = path / "state.safetensors"
        self.history = path / "history.json"
        self.best = path / "best.safetensors"
        self.last = path / "last.safetensors"
        self.evaluation = path / "evaluation.json"
        self.cases = path / "cases.npz"

    @property
    def has_learnt(self) -> bool:
        """Whether there is anything to lose: a start that was refused leaves nothing."""
        return any(path.exists() for path in (self.state, self.best, self.last))

    @contextmanager
    def claimed(self, identity: dict[str, Any]) -> Iterator[None]:
        """Starts a run or takes up the same one, alone; refuses a folder that holds another.

        Arguments:
            identity: What makes the run what it is, as JSON.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with claimed(self.path):
            self._refuse_other(identity)
            sweep(self.path)
            write_json(self.identity, identity)
            yield

    def read_identity(self) -> dict[str, Any]:
        """What the run in this folder is."""
        if not self.identity.exists():
            raise InputError(f"{self.path} holds no run; train one with `tampl train`")
        return read_json(self.identity, "train again elsewhere")

    def _refuse_other(self, identity: dict[str, Any]) -> None:
        if not self.identity.exists():
            if not all(is_temporary(path) for path in self.path.iterdir()):
                raise InputError(f"{self.path} is not empty and holds no run; give another folder")
            return
        if not self.has_learnt:
            return
        difference = first_difference(self.read_identity(), identity)
        if difference is not None:
            key, there, here = difference
            raise InputError(
                f"{self.path} holds another run (`{key}` is {there} there, {here} here): give "
                "another folder or remove that one"
            )

    def save(self, trainer: Trainer, history: History) -> None:
        """Saves the state at the end of an epoch."""
        header = {"format": STATE_FORMAT, "epoch": trainer.epoch, "history": vars(history)}
        save_tensors(self.state, trainer.tensors(), header)
        write_json(self.history, history.epochs)

    def resume(self, trainer: Trainer) -> History:
        """Puts the trainer where the run was left, and returns its log."""
        if not self.state.exists():
            return History()
        tensors, header = load_tensors(self.state, STATE_FORMAT)
        history = History(**header["history"])
        if history.best_epoch and not self.best.exists():
            raise InputError(f"{self.best} is lost; restore it, or train again in a new folder")
        trainer.load(header["epoch"], tensors)
        return history


def fit(
    trainer: Trainer,
    folder: RunFolder,
    *,
    make_model: MakeModel,
    validate: Validate,
    deadline: float | None = None,
    progress: bool = True,
) -> History:
    """Trains to the end of the schedule, from wherever the folder left off.

    Arguments:
        trainer: The loop.
        folder: Where the run lives.
        make_model: Makes a model of trained modules.
        validate: The error of a model on validation data; the lowest is kept as the best.
        deadline: Time on `time.monotonic`'s clock after which the run is saved and left.
        progress: Whether to show a bar.
    """
    history, total = folder.resume(trainer), len(trainer.schedule)
    history.finished = trainer.epoch == total
    with bar("training", total, visible=progress) as advance:
        for _ in range(trainer.epoch):
            advance("resumed")
        over = False
        while trainer.epoch < total and not over:
            record = trainer.run_epoch()
            due = _validation_is_due(trainer)
            model = make_model(trainer.averaged())
            error = _validate(model, validate, folder, history, record) if due else None
            if history.add(record, error):
                say(_collapse_line(record))
            # Looked at after an epoch: a run that is begun gets on, however late it is.
            over = deadline is not None and time.monotonic() >= deadline
            history.finished = trainer.epoch == total
            if history.finished:
                save_model(model, folder.last)
            # Saved with every validation: a best model is never newer than the state beside it.
            if due or over or trainer.epoch % trainer.training.save_every == 0:
                folder.save(trainer, history)
            advance(_note(record, history))
    if not history.finished:
        return history
    if not (folder.last.exists() and folder.history.exists()):  # a finished run that lost them
        save_model(make_model(trainer.averaged()), folder.last)
        write_json(folder.history, history.epochs)
    return history


def _validation_is_due(trainer: Trainer) -> bool:
    epoch, total = trainer.epoch, len(trainer.schedule)
    return epoch == total or (2 * epoch > total and epoch % trainer.training.validate_every == 0)


def _validate(
    model: MacroModel, validate: Validate, folder: RunFolder, history: History, record: EpochRecord
) -> float | None:
    error = validate(model)
    # A rollout that blows up is no number to compare with, but the first model is kept anyway.
    known = error if math.isfinite(error) else None
    if history.best_epoch == 0 or _better(known, history.best):
        history.best, history.best_epoch = known, record.epoch
        save_model(model, folder.best)
    return known


def _better(error: float | None, best: float | None) -> bool:
    return error is not None and (best is None or error < best)


def _collapse_line(record: EpochRecord) -> str:
    latent = record.latent
    line = f"the latent scale collapsed in epoch {record.epoch}: std {latent.std_mean:.2g}"
    if latent.transition_ratio is not None:
        line += f", transition loss {latent.transition_ratio:.2g} times the variance"
    return line


def _note(record: EpochRecord, history: History) -> str:
    losses = " ".join(f"{parts['total']:.3g}" for parts in record.losses.values())
    best = "" if history.best is None else f", best {history.best:.3g}"
    return f"loss {losses}, latent std {record.latent.std_mean:.2g}{best}"


def write_json(path: Path, content: object) -> None:
    """Writes JSON, complete or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")
