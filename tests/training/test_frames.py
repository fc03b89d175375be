"""The training view: pairs inside trajectories, one-hot inputs, standardised macrostates."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.data import Dataset, Normalization, Statistics, write_miniature
from tampl.description import Description, Observable
from tampl.microstates import Vector
from tampl.systems import SIRS
from tampl.training.frames import Frames

DESCRIPTION = Description(
    system="numbers",
    parameters={},
    microstate=Vector(size=2),
    observables=tuple(Observable(name=name, symbol=name) for name in "abc"),
    interval=1.0,
    frames=2,
)


def numbered(runs, frames):
    """Trajectories whose microstates are (trajectory, frame), so that a frame says who it is."""
    x = np.stack(np.meshgrid(np.arange(runs), np.arange(frames), indexing="ij"), axis=-1)
    y = np.random.default_rng(0).random((runs, frames, 3))
    return Dataset.described(DESCRIPTION, x.astype(np.float64), y, np.array(["K=1"] * runs))


@settings(max_examples=40, deadline=None)
@given(runs=st.integers(1, 7), length=st.integers(1, 9))
def test_pairs_are_all_steps_and_never_cross_trajectories(runs, length):
    unit = Normalization(np.zeros(3), np.ones(3))
    frames = Frames.load(numbered(runs, length), Statistics(unit))
    first, second = frames.x(frames.pairs), frames.x((frames.pairs + 1) % len(frames))
    assert torch.equal(first[:, 0], second[:, 0])
    assert torch.equal(first[:, 1] + 1, second[:, 1])
    steps = [(run, t) for run in range(runs) for t in range(length - 1)]
    assert [tuple(map(int, pair)) for pair in first] == steps
    assert len(frames) == runs * length


@pytest.fixture(scope="module")
def sirs(tmp_path_factory):
    """A store of SIRS trajectories on 8 x 8 sites."""
    system = SIRS(size=8, frames=4, coverage=0.2, clusters=(1, 2))
    return write_miniature(system, tmp_path_factory.mktemp("sirs") / "store")


@pytest.fixture
def view(sirs, device, dtype):
    train = sirs.dataset("train")
    return train, Frames.load(train, train.statistics, device=device, dtype=dtype)


def test_inputs_are_one_hot_lattices(view, dtype, device):
    train, frames = view
    index = torch.tensor([0, 3, 4, 15], device=device)
    x = frames.x(index)
    assert x.shape == (4, 3, 8, 8) and x.dtype == dtype
    sites = train.x.reshape(16, 8, 8)[index.cpu()]
    np.testing.assert_array_equal(x.cpu().numpy(), np.eye(3)[sites].transpose(0, 3, 1, 2))


def test_frames_stay_in_stored_form(view):
    train, frames = view
    assert frames.stored.dtype == torch.uint8
    assert frames.stored.numel() == train.x.size


def test_macrostates_are_standardised(view, dtype, device):
    train, frames = view
    y = frames.y(torch.arange(16, device=device)).double().cpu().numpy()
    np.testing.assert_allclose(y.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(y.std(axis=0), 1, atol=1e-6)
    flat = train.y.reshape(16, 3)
    np.testing.assert_allclose(y * flat.std(axis=0) + flat.mean(axis=0), flat, atol=1e-6)
    assert frames.macrostates.dtype == dtype


def test_a_frame_and_its_macrostate_belong_together(view, device):
    train, frames = view
    everything = torch.arange(16, device=device)
    fractions = frames.x(everything).double().mean(dim=(-2, -1)).cpu().numpy()
    np.testing.assert_allclose(fractions, train.y.reshape(16, 3), atol=1e-12)
