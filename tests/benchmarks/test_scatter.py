"""Sources of chance: each changes what it names and nothing else."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

from tampl.methods import Tampl

ROOT = Path(__file__).parents[2]

sys.path.append(str(ROOT / "benchmarks"))
scatter = importlib.import_module("scatter")


def draw_first(bench, source, seed):
    """Initial weights, first windows and first noise of a training."""
    with scatter.seeding(source, seed):
        trainer = bench.trainer(Tampl())
        stage = trainer.schedule[0][0]
        trainer._refresh(stage)
        starts, noise, _ = next(trainer._batches(stage))
        weights = torch.cat([p.detach().flatten() for p in trainer.modules.parameters()])
    return weights, starts, noise["epsilon"]


@pytest.mark.parametrize("source", scatter.STREAMS)
def test_a_stream_changes_by_itself(bench, source):
    kept, again, other = (
        draw_first(bench, *args) for args in (("none", 1), (source, 1), (source, 2))
    )
    for name, *drawn in zip(scatter.STREAMS, kept, again, other, strict=True):
        assert all(torch.equal(drawn[0], each) != (name == source) for each in drawn[1:])
    assert all(
        torch.equal(*pair) for pair in zip(again, draw_first(bench, source, 1), strict=True)
    )


def test_all_streams_change_together_and_rounding_changes_weights_alone(bench):
    kept, new, rounded = (draw_first(bench, name, 1) for name in ("none", "all", "rounding"))
    assert not any(torch.equal(*pair) for pair in zip(kept, new, strict=True))
    assert not torch.equal(kept[0], rounded[0])
    torch.testing.assert_close(kept[0], rounded[0], rtol=2e-7, atol=0)
    assert torch.equal(kept[1], rounded[1]) and torch.equal(kept[2], rounded[2])
