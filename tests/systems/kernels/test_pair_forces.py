"""Lennard-Jones forces against LAMMPS, gradients, closed forms."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tampl.errors import InputError
from tampl.systems.kernels.neighbours import empty_list, list_pairs
from tampl.systems.kernels.pair_forces import (
    closest_pair,
    energy_scale,
    forces,
    listed_energy,
    listed_forces,
    pair_table,
)

LAMMPS = json.loads(Path(__file__).with_name("lammps_reference.json").read_text())
CUTOFF = LAMMPS["cutoff"]
EPSILON, SIGMA = np.array(LAMMPS["epsilon"]), np.array(LAMMPS["sigma"])
PAIRS = pair_table(EPSILON, SIGMA, CUTOFF)


@pytest.fixture
def fluid():
    """Sixty particles on a jittered grid in a box of 10, and their types."""
    generator = np.random.default_rng(5)
    grid = np.stack(np.meshgrid(*2 * [np.arange(8)]), axis=-1).reshape(-1, 2)[:60] * 1.25 + 0.6
    positions = grid + generator.uniform(-0.15, 0.15, grid.shape)
    return positions, generator.integers(0, 2, len(grid)).astype(np.uint8)


@pytest.mark.parametrize("reference", LAMMPS["configurations"])
def test_energy_and_forces_are_those_of_lammps(reference):
    types = np.array(reference["types"], np.uint8)
    energy, force = forces(np.array(reference["positions"]), types, PAIRS, CUTOFF)
    expected = np.array(reference["forces"])
    assert energy == pytest.approx(reference["energy"], rel=1e-9)
    assert np.allclose(force, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_listed_forces_are_those_of_all_pairs(fluid):
    positions, types = fluid
    near = empty_list(len(positions), 10.0, CUTOFF + 0.3)
    assert list_pairs(positions, 10.0, CUTOFF + 0.3, near)
    energy, expected = forces(positions, types, PAIRS, CUTOFF)
    force = np.full_like(positions, np.nan)
    listed_forces(positions, types, PAIRS, CUTOFF, near, force)
    assert np.allclose(force, expected, rtol=0, atol=1e-12)
    assert listed_energy(positions, types, PAIRS, CUTOFF, near) == pytest.approx(energy, rel=1e-12)


def test_forces_are_the_negative_gradient_of_the_energy(fluid):
    positions, types = fluid
    _, force = forces(positions, types, PAIRS, CUTOFF)
    for i, k in [(0, 0), (17, 1), (44, 0), (59, 1)]:
        shift = np.zeros_like(positions)
        shift[i, k] = 1e-6
        up, down = (forces(positions + s, types, PAIRS, CUTOFF)[0] for s in (shift, -shift))
        assert force[i, k] == pytest.approx((down - up) / 2e-6, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 1), (1, 1)])
def test_two_particles_have_their_closed_form(a, b):
    types = np.array([a, b], np.uint8)
    e, s = EPSILON[a, b], SIGMA[a, b]
    shift = 4 * e * ((s / CUTOFF) ** 12 - (s / CUTOFF) ** 6)

    def at(r):
        energy, force = forces(np.array([[0.0, 0.0], [0.6 * r, 0.8 * r]]), types, PAIRS, CUTOFF)
        assert np.array_equal(force[0], -force[1])
        return energy, force[1]

    energy, force = at(2 ** (1 / 6) * s)
    assert energy == pytest.approx(-e - shift, rel=1e-12)
    assert np.allclose(force, 0, atol=1e-12)
    energy, force = at(s)
    assert energy == pytest.approx(-shift, rel=1e-9)
    assert np.allclose(force, 24 * e / s * np.array([0.6, 0.8]), rtol=1e-12)
    assert at(CUTOFF * (1 - 1e-9))[0] == pytest.approx(0, abs=1e-9)
    assert at(CUTOFF * (1 + 1e-9))[0] == 0


def test_energy_ignores_order_turns_and_shifts(fluid):
    positions, types = fluid
    energy, force = forces(positions, types, PAIRS, CUTOFF)
    order = np.random.default_rng(0).permutation(len(types))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved = (positions[order] + [3.0, -7.0]) @ turn.T
    same_energy, same_force = forces(moved, types[order], PAIRS, CUTOFF)
    assert same_energy == pytest.approx(energy, rel=1e-12)
    assert np.allclose(same_force, force[order] @ turn.T, atol=1e-10)
    assert np.allclose(force.sum(axis=0), 0, atol=1e-10)


def test_closest_pair_is_the_closest_in_units_of_sigma(fluid):
    positions, types = fluid
    distances = cdist(positions, positions) / SIGMA[types[:, None], types[None]]
    np.fill_diagonal(distances, np.inf)
    i, j, distance = closest_pair(positions, types, PAIRS)
    assert distance == pytest.approx(distances.min(), rel=1e-14)
    assert distances[i, j] == pytest.approx(distances.min(), rel=1e-14)


def test_energy_scale_is_the_larger_of_temperature_and_depth():
    assert energy_scale(PAIRS, 0.1) == 0.7
    assert energy_scale(PAIRS, 3.0) == 3.0


@pytest.mark.parametrize("wrong", [[[1.0, 0.9], [1.0, 0.9]], [[1.0, np.nan], [np.nan, 0.9]]])
def test_table_refuses_pairs_of_types_with_two_values_or_none(wrong):
    with pytest.raises(InputError, match=r"`sigma` is .*one finite value"):
        pair_table(EPSILON, wrong, CUTOFF)
