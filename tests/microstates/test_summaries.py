"""Summaries of microstates, and the likeness to a training set that they are made for."""

import numpy as np
import pytest
import torch

from tampl.microstates import Chain, Image, Lattice, Particles, Vector
from tampl.models.envelope import Likeness

RNG = np.random.default_rng(0)


def test_a_lattice_is_summarised_by_states_and_pairs():
    lattice = np.zeros((1, 4, 4), np.uint8)
    lattice[0, 1] = 1  # a row: every site of it has its like to the right and none above
    found = Lattice(height=4, width=4, states=2).summarise(lattice)[0]
    np.testing.assert_allclose(found, [12 / 16, 8 / 16, 12 / 16, 1, 4 / 16, 0, 4 / 16, 1])


def test_summaries_of_a_lattice_ignore_where_things_are():
    kind = Lattice(height=6, width=6, states=3)
    x = RNG.integers(3, size=(5, 6, 6)).astype(np.uint8)
    np.testing.assert_allclose(kind.summarise(np.roll(x, (2, 3), (1, 2))), kind.summarise(x))


def test_particles_are_counted_by_type_whatever_the_rows():
    kind = Particles(count=4, types=2, box=1.0)
    stored = np.zeros((2, 6, 3), np.uint16)
    stored[0, :4, 2], stored[1, :5, 2] = [1, 1, 2, 2], [1, 1, 1, 2, 2]
    np.testing.assert_array_equal(kind.summarise(stored), [[2, 2], [3, 2]])


def test_a_picture_and_a_chain_and_a_vector():
    picture = np.zeros((1, 2, 4), np.uint8)
    picture[:, :, 2:] = 100
    found = Image(height=2, width=4).summarise(picture)
    np.testing.assert_allclose(found, [[50, 50, 0, 100 / 3]])
    chain = np.array([[[-1.0, 0, 0], [0, 0, 0], [1, 0, 0]]], np.float32)
    found = Chain(beads=3, height=5, width=5).summarise(chain)
    np.testing.assert_allclose(found, [[2, 0, 0, np.sqrt(2 / 3), 0, 0]])
    short, long = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 100))
    assert Vector(size=4).summarise(short) is short
    found = Vector(size=100).summarise(long)
    np.testing.assert_allclose(found[:, 0] ** 2, (long**2).sum(axis=1))


def fit(summaries, per_trajectory=5):
    trajectory = torch.arange(len(summaries)) // per_trajectory
    return Likeness.fit(torch.from_numpy(summaries), trajectory)


def test_training_summaries_are_known_and_far_ones_are_not():
    summaries = RNG.normal(size=(500, 3)) * [1, 100, 1e-3]
    likeness = fit(summaries)
    assert likeness.know(torch.from_numpy(summaries)).all()
    fresh = RNG.normal(size=(500, 3)) * [1, 100, 1e-3]
    assert likeness.know(torch.from_numpy(fresh)).double().mean() > 0.97
    for axis in range(3):
        far = summaries.copy()
        far[:, axis] += 12 * summaries[:, axis].std()
        assert not likeness.know(torch.from_numpy(far)).any()


@pytest.mark.parametrize("others", [0, 2])
def test_another_value_of_a_constant_is_not_known(others):
    """As the number of particles, alone or beside summaries that vary."""
    numbers = np.full((200, 1), 400.0)
    summaries = np.concatenate([numbers, RNG.normal(size=(200, others))], axis=1)
    likeness = fit(summaries)
    assert likeness.know(torch.from_numpy(summaries)).all()
    for number in (399.0, 401.0, 0.0, 1e6):
        other = summaries.copy()
        other[:, 0] = number
        assert not likeness.know(torch.from_numpy(other)).any()


def test_what_is_not_finite_is_not_known():
    likeness = fit(RNG.normal(size=(100, 2)))
    assert not likeness.know(torch.tensor([[np.nan, 0.0], [np.inf, 0.0]])).any()
