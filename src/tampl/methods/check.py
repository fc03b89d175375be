"""The contract of a method as a function that anyone who writes one can run.

`check_method` trains for two epochs on a small data set and holds the method against what the
trainer promises to users: stages move what they name and nothing else, losses are pure, the same
seed gives the same bytes also after a resume, and what comes out is a model by itself.
"""

from dataclasses import replace

import torch

from ..data.dataset import Dataset
from ..models import MacroModel, ModelSpec, check_model
from ..training import Trainer
from ..training.settings import OptimiserSpec, TrainingSpec
from ..training.stages import Stage
from .base import Method, make_trainer

__all__ = ["check_method"]

_AVERAGED = OptimiserSpec(average=0.9)
_TRAINING = TrainingSpec(
    epochs=2, batch_size=8, seed=0, representation=_AVERAGED, transition=_AVERAGED
)


def check_method(method: Method, spec: ModelSpec, data: Dataset) -> None:
    """Raises `AssertionError` or `InputError`, naming the rule, where a method breaks one.

    Arguments:
        method: The method.
        spec: A small architecture that fits the data.
        data: A few short trajectories.
    """
    again = type(method).model_validate_json(method.model_dump_json())
    _require(again == method, "its settings survive a round trip through JSON")
    _check_moves(_trainer(method, spec, data))
    _check_losses(_trainer(method, spec, data))
    trained = _check_bytes(method, spec, data)
    check_model(_model(trained, data), data.x[:, 0])


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise AssertionError(f"a method must meet this rule and does not: {rule}")


def _trainer(method: Method, spec: ModelSpec, data: Dataset) -> Trainer:
    return make_trainer(method, data, architecture=spec, training=_TRAINING)


def _model(trainer: Trainer, data: Dataset) -> MacroModel:
    modules = trainer.averaged()
    return MacroModel(data.description, statistics=data.statistics, modules=modules)


def _stages(trainer: Trainer) -> list[Stage]:
    """Every stage once, in the order of the schedule."""
    return list({stage.name: stage for stages in trainer.schedule for stage in stages}.values())


def _check_moves(trainer: Trainer) -> None:
    for stage in _stages(trainer):
        state = trainer.modules.state_dict()
        before = {name: value.clone() for name, value in state.items()}
        # A closing step may copy weights elsewhere, as that of a target encoder does.
        trainer.run_stage(replace(stage, finish=None))
        moved = [name for name, value in state.items() if not torch.equal(value, before[name])]
        _require(bool(moved), f"stage `{stage.name}` moves something")
        for name in moved:
            allowed = any(name.startswith(f"{module}.") for module in stage.moves)
            _require(allowed, f"stage `{stage.name}` does not move `{name}`")


def _check_losses(trainer: Trainer) -> None:
    for stage in _stages(trainer):
        batch = trainer.first_batch(stage)
        with torch.no_grad():
            totals = [stage.loss(trainer.modules, batch).total for _ in range(2)]
        _require(totals[0].shape == (), f"the loss of stage `{stage.name}` is one number")
        _require(torch.equal(*totals), f"the loss of stage `{stage.name}` draws nothing itself")


def _check_bytes(method: Method, spec: ModelSpec, data: Dataset) -> Trainer:
    whole, resumed = _trainer(method, spec, data), _trainer(method, spec, data)
    for epoch in range(len(whole.schedule)):
        whole.run_epoch()
        resumed.run_epoch()
        state = {name: value.clone() for name, value in resumed.tensors().items()}
        resumed = _trainer(method, spec, data)
        resumed.load(epoch + 1, state)
    ours, theirs = whole.tensors(), resumed.tensors()
    _require(
        all(torch.equal(ours[name], theirs[name]) for name in ours),
        "a run that was interrupted after every epoch ends with the same bytes",
    )
    return whole
