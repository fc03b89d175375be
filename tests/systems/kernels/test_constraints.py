"""Constraint forces against a general root finder, and the tridiagonal solver against LAPACK."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rods_twin import constrain

from tampl.systems.kernels.constraints import TOLERANCE, _solve, make_room, project


def call(rods, trial):
    """Whether the constraints could be solved, the rods after it and the forces."""
    count = len(rods)
    padded, strength = np.zeros((3, count + 2)), np.full(count + 2, 7.0)
    padded[:, 1:-1] = rods.T
    moved = np.empty((3, count))
    solved = project(padded, np.ascontiguousarray(trial.T), strength, moved, make_room(count + 1))
    return solved, moved.T, strength


def random_step(count, size, seed):
    rng = np.random.default_rng(seed)
    rods = rng.normal(size=(count, 3))
    rods /= np.linalg.norm(rods, axis=1, keepdims=True)
    return rods, rods + np.diff(rng.uniform(-size, size, (count + 1, 3)), axis=0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 14), st.floats(0, 0.12), st.integers(0, 2**32))
def test_rods_equal_those_of_a_root_finder(count, size, seed):
    rods, trial = random_step(count, size, seed)
    solved, moved, strength = call(rods, trial)
    assert solved
    assert strength[0] == strength[-1] == 0
    assert np.abs((moved**2).sum(axis=1) - 1).max() <= TOLERANCE
    np.testing.assert_allclose(moved, constrain(rods, trial), atol=1e-5)


def test_rods_of_length_one_need_no_force():
    rods, _ = random_step(6, 0.0, seed=1)
    solved, moved, strength = call(rods, rods)
    assert solved
    assert np.array_equal(moved, rods)
    assert not strength.any()


def test_what_no_force_along_the_rod_can_mend_is_not_solved():
    # Pushed across itself by more than its length, a rod stays too long whatever pulls along it.
    rods = np.array([[1.0, 0.0, 0.0]])
    assert not call(rods, np.array([[1.0, 1.1, 0.0]]))[0]
    assert call(rods, np.array([[1.0, 0.9, 0.0]]))[0]


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_not_solved(broken):
    rods, trial = random_step(5, 0.05, seed=2)
    trial[2, 1] = broken
    assert not call(rods, trial)[0]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32))
def test_solver_equals_lapack(count, seed):
    rng = np.random.default_rng(seed)
    system, strength = make_room(count + 1), np.zeros(count + 2)
    system[0, 1:count], system[2, : count - 1] = rng.uniform(-1, 1, (2, count - 1))
    system[1, :count], system[3, :count] = -2.5 + rng.random(count), rng.normal(size=count)
    dense = np.diag(system[1, :count])
    dense += np.diag(system[0, 1:count], -1) + np.diag(system[2, : count - 1], 1)
    expected = np.linalg.solve(dense, system[3, :count])
    _solve(system, strength)
    np.testing.assert_allclose(strength[1:-1], expected, atol=1e-10)
    assert strength[0] == strength[-1] == 0
