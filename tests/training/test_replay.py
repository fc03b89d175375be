"""Recorded steps: on a CPU the function itself; on a GPU the same numbers as plain calls."""

import pytest
import torch

from tampl.methods import METHODS, Tampl
from tampl.training.replay import Replay

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_on_a_cpu_the_function_is_called():
    calls = []

    def function(a, b):
        calls.append(a)
        return (a + b,)

    replay = Replay(function, torch.device("cpu"))
    for number in range(5):
        (total,) = replay(torch.tensor(number), torch.tensor(1))
        assert total == number + 1
    assert len(calls) == 5


@needs_gpu
def test_a_recording_changes_tensors_in_place_and_follows_its_arguments():
    state = torch.zeros(3, device="cuda")

    def function(step):
        state.add_(step)
        return (state * 2,)

    replay = Replay(function, torch.device("cuda"))
    for number in range(8):
        (doubled,) = replay(torch.full((3,), float(number), device="cuda"))
        assert doubled[0] == number * (number + 1)
    (other,) = replay(torch.ones(1, device="cuda"))
    assert other[0] == 2 * (28 + 1)


@needs_gpu
@pytest.mark.parametrize("name", [*METHODS, "several lags"])
def test_recorded_training_gives_the_numbers_of_plain_training(bench, name):
    """Several epochs, so that refreshed caches and later turns are read by recorded steps."""
    if bench.frames.stored.device.type != "cuda":
        pytest.skip("run with --device cuda")
    training = bench.training(epochs=3, batch_size=4, transition={"average": 0.9})
    method = METHODS.get(name, Tampl(lags=(1, 2)))
    recorded, plain = (bench.trainer(method, training) for _ in range(2))
    for stepper in plain.steppers.values():
        stepper._replay.records = False
    plain._encode._replay.records = False
    for _ in recorded.schedule:
        ours, theirs = recorded.run_epoch(), plain.run_epoch()
        for stage, parts in theirs.losses.items():
            assert ours.losses[stage] == pytest.approx(parts, rel=1e-6)
