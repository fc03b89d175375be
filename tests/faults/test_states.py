"""A trainer takes up its own state and no other: shapes, types and names are checked before."""

import pytest
import torch

from tampl.errors import InputError
from tampl.methods import Tampl

MOMENT = "stages/transition/optimiser/transition."


@pytest.fixture
def state(bench):
    trainer = bench.trainer(Tampl(), bench.training(transition={"average": 0.9}))
    trainer.run_epoch()
    return {name: value.clone() for name, value in trainer.tensors().items()}


def find(state, start, end=""):
    return next(name for name in state if name.startswith(start) and name.endswith(end))


def refuses(bench, state, words, epoch=1):
    trainer = bench.trainer(Tampl(), bench.training(transition={"average": 0.9}))
    with pytest.raises(InputError, match=words) as caught:
        trainer.load(epoch, state)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["exp_avg", "exp_avg_sq", "step"])
@pytest.mark.parametrize(
    "change",
    [
        lambda value: torch.zeros(1, dtype=value.dtype),
        lambda value: value.reshape(-1)[:1].expand(*value.shape, 2).contiguous(),
        lambda value: value.bfloat16(),
        lambda value: value.long(),
    ],
    ids=["smaller", "larger", "bfloat16", "int64"],
)
def test_moments_of_other_shapes_and_types_are_refused(bench, state, key, change):
    name = find(state, MOMENT, f"/{key}")
    refuses(bench, {**state, name: change(state[name])}, "stage `transition` has `optimiser/")


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (MOMENT, "stage `transition` lacks `optimiser/"),
        ("stages/transition/average/", "stage `transition` lacks `average/"),
        ("stages/transition/steps", "stage `transition` lacks `steps`"),
        ("modules/encoder.", "the checkpoint lacks `encoder."),
    ],
)
def test_what_is_missing_is_named(bench, state, start, words):
    state.pop(find(state, start))
    refuses(bench, state, words)


def test_unknown_tensors_are_refused(bench, state):
    extra = torch.zeros(1, dtype=torch.float64)
    refuses(bench, {**state, "stowaway": extra}, "unknown tensor `stowaway`")
    refuses(bench, {**state, "modules/x": extra}, "unknown tensor `x`")
    refuses(bench, {**state, "stages/transition/x": extra}, "unknown tensor `x`")


def test_weights_of_another_type_are_refused(bench, state):
    name = find(state, "modules/encoder.")
    refuses(bench, {**state, name: state[name].float()}, "the checkpoint has `encoder")
    refuses(bench, {**state, name: state[name].long()}, "the checkpoint has `encoder")


@pytest.mark.parametrize("epoch", [-1, 4, 10**12, None, 1.0, "1", True])
def test_an_epoch_outside_of_the_schedule_is_refused(bench, state, epoch):
    refuses(bench, state, "`epoch` is .* in the checkpoint", epoch=epoch)


def test_negative_steps_are_refused(bench, state):
    refuses(bench, {**state, "stages/transition/steps": torch.tensor(-1)}, "has -1 steps")
