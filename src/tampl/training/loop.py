"""A whole training: epochs to the end of the schedule, validations, the best model.

The loop opens no file. What is kept on the way goes through a `Keeper`: in memory for a notebook,
in a folder for the laboratory, which can then take up a training that was interrupted. Validations
begin in the second half of the training. Until then the model of the last checkpoint stands for
the best one, so that a training that is left early has a model too.

A training that is interrupted, or whose loss is no longer finite, keeps the state at the end of
the epoch before, which is in memory until the next one ends.

Where several ranks train, all of them run the epochs. Only the leader has a keeper, resumes,
validates, logs and decides; the others get its state at the start and its log at the end.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from torch import Tensor

from ..models import MacroModel, Modules
from ..progress import bar, say
from .latents import LatentScale, has_collapsed
from .trainer import DivergenceError, EpochRecord, Trainer

__all__ = ["History", "Keeper", "MemoryKeeper", "run_training"]

Validate = Callable[[MacroModel], float]
MakeModel = Callable[[Modules], MacroModel]


@dataclass
class History:
    """The log of a training: a plain record per epoch, and the lowest validation error so far."""

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


class Keeper(Protocol):
    """Keeps what a training yields on its way."""

    def resume(self, trainer: Trainer) -> History:
        """Puts a trainer where an earlier training was left, and returns the log until there."""
        ...

    def keep_best(self, model: MacroModel) -> None:
        """Keeps the model with the lowest validation error so far.

        Before the first validation, this is the model of the present epoch.
        """
        ...

    def keep_last(self, model: MacroModel) -> None:
        """Keeps the model of the last epoch."""
        ...

    def keep_state(self, trainer: Trainer, history: History) -> None:
        """Keeps what a later call of `resume` needs, at the end of an epoch."""
        ...

    def is_complete(self) -> bool:
        """Whether nothing is missing of a finished training."""
        ...

    def best_model(self) -> MacroModel | None:
        """The model that `keep_best` kept last, also in an earlier call; None if there is none."""
        ...


class MemoryKeeper:
    """Keeps the best and the last model in memory; there is nothing to resume."""

    def __init__(self) -> None:
        self._best: MacroModel | None = None
        self._last: MacroModel | None = None

    def resume(self, trainer: Trainer) -> History:
        return History()

    def keep_best(self, model: MacroModel) -> None:
        self._best = model

    def keep_last(self, model: MacroModel) -> None:
        self._last = model

    def keep_state(self, trainer: Trainer, history: History) -> None:
        pass

    def is_complete(self) -> bool:
        return self._last is not None

    def best_model(self) -> MacroModel | None:
        return self._best


def run_training(
    trainer: Trainer,
    keeper: Keeper,
    *,
    make_model: MakeModel,
    validate: Validate,
    deadline: float | None = None,
    progress: bool = True,
) -> History:
    """Trains to the end of the schedule, from wherever the keeper left off.

    Arguments:
        trainer: The trainer.
        keeper: Where models and states go.
        make_model: Makes a model of trained modules.
        validate: The error of a model on validation data; the model with the lowest is the best.
        deadline: Time on `time.monotonic`'s clock after which the training is kept and left.
        progress: Whether to show a bar.
    """
    ranks, total = trainer.ranks, len(trainer.schedule)
    history = ranks.lead(lambda: keeper.resume(trainer))
    trainer.copy_state()
    history.finished = trainer.epoch == total
    resumed, last = trainer.epoch, _Last()

    def end_epoch(record: EpochRecord) -> bool:
        """Validates, logs and keeps what is due; says whether the time is over."""
        # Looked at after an epoch: a training that is begun gets on, however late it is.
        over = deadline is not None and time.monotonic() >= deadline
        due, error = _validation_is_due(trainer), None
        history.finished = trainer.epoch == total
        if due:
            model = make_model(trainer.averaged())
            error = _validate(model, validate, keeper, history, record)
            if history.finished:
                keeper.keep_last(model)
        if history.add(record, error):
            say(_describe_collapse(record))
        last.moment = _remember(trainer, history)
        # Kept with every validation: a best model is never newer than the state beside it.
        if due or over or trainer.epoch % trainer.training.save_every == 0:
            _keep_unvalidated(trainer, keeper, history, make_model)
            keeper.keep_state(trainer, history)
        return over

    def end_training() -> History:
        if trainer.epoch > resumed and history.finished and (ended := _find_recovery(history)):
            say(ended)
        if trainer.epoch > resumed and history.finished and history.best is None:
            say(
                "no validation gave a finite error: the rollouts of this model run away, and its "
                "forecasts are of no use; train in a new folder with lower learning rates"
            )
        if history.finished and not keeper.is_complete():  # a finished training that lost its end
            keeper.keep_last(make_model(trainer.averaged()))
            keeper.keep_state(trainer, history)
        return history

    try:
        with bar("training", total, visible=progress and ranks.leads) as advance:
            for _ in range(trainer.epoch):
                advance("resumed")
            over = False
            while trainer.epoch < total and not over:
                record = trainer.run_epoch()
                over = ranks.lead(partial(end_epoch, record))
                if ranks.leads:
                    advance(_describe_epoch(record, history))
    except (KeyboardInterrupt, DivergenceError):
        if last.moment is not None:
            last.moment.restore(trainer, history)
            _keep_unvalidated(trainer, keeper, history, make_model)
            keeper.keep_state(trainer, history)
        raise
    return ranks.lead(end_training)


@dataclass(frozen=True)
class _Moment:
    """The end of an epoch: a copy of all that a training is resumed from."""

    epoch: int
    tensors: Mapping[str, Tensor]
    history: History

    def restore(self, trainer: Trainer, history: History) -> None:
        trainer.load(self.epoch, self.tensors)
        vars(history).update(vars(self.history))


@dataclass
class _Last:
    """The end of the last epoch; only the leader has it."""

    moment: _Moment | None = None


def _remember(trainer: Trainer, history: History) -> _Moment:
    tensors = {name: value.clone() for name, value in trainer.tensors().items()}
    return _Moment(trainer.epoch, tensors, replace(history, epochs=[*history.epochs]))


def _keep_unvalidated(
    trainer: Trainer, keeper: Keeper, history: History, make_model: MakeModel
) -> None:
    """Keeps a model where none was validated yet, once all of its parts are being trained."""
    if history.best_epoch == 0 and trainer.in_last_turn:
        keeper.keep_best(make_model(trainer.averaged()))


def _validation_is_due(trainer: Trainer) -> bool:
    epoch, total = trainer.epoch, len(trainer.schedule)
    late = 2 * epoch > total and epoch % trainer.training.validate_every == 0
    # Before the last turn some part of the model has not been trained at all.
    return epoch == total or (late and trainer.in_last_turn and trainer.is_settled)


def _validate(
    model: MacroModel, validate: Validate, keeper: Keeper, history: History, record: EpochRecord
) -> float | None:
    error = validate(model)
    # A rollout that blows up is no number to compare with, but the first model is kept anyway.
    known = error if math.isfinite(error) else None
    better = known is not None and (history.best is None or known < history.best)
    if history.best_epoch == 0 or better:
        history.best, history.best_epoch = known, record.epoch
        keeper.keep_best(model)
    return known


def _describe_collapse(record: EpochRecord) -> str:
    latent = record.latent
    line = f"the latent scale collapsed in epoch {record.epoch}: std {latent.std_mean:.2g}"
    if latent.transition_ratio is not None:
        line += f", transition loss {latent.transition_ratio:.2g} times the variance"
    return line


def _find_recovery(history: History) -> str | None:
    """Takes back what was said about a collapse that had ended before the training did."""
    collapsed = [record["epoch"] for record in history.epochs if record["collapsed"]]
    if not collapsed or history.epochs[-1]["collapsed"]:
        return None
    std = history.epochs[-1]["latent"]["std_mean"]
    return (
        f"the latent scale recovered: its collapse ended after epoch {collapsed[-1]}, and at the "
        f"end its std is {std:.2g}"
    )


def _describe_epoch(record: EpochRecord, history: History) -> str:
    losses = " ".join(f"{parts['total']:.3g}" for parts in record.losses.values())
    best = "" if history.best is None else f", best {history.best:.3g}"
    return f"loss {losses}, latent std {record.latent.std_mean:.2g}{best}"
