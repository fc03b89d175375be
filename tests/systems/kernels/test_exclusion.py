"""Neighbour lists of chains against a search tree, and pushes against their definition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rods_twin import pushes, string
from scipy.spatial import cKDTree

from tampl.systems.kernels.exclusion import SKIN, list_pairs, moved_far, push_apart


def random_chain(beads, seed):
    """A random walk of unit steps with some persistence, which makes dense and open parts."""
    rng = np.random.default_rng(seed)
    rods = rng.normal(size=(beads - 1, 3)) + rng.normal(size=3) * rng.integers(0, 2)
    return string(rods / np.linalg.norm(rods, axis=1, keepdims=True))


def listed(beads):
    pairs = np.empty((len(beads) * (len(beads) - 1) // 2, 2), np.int32)
    return pairs[: list_pairs(np.ascontiguousarray(beads.T), pairs)]


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 80), st.integers(0, 2**32))
def test_list_holds_the_pairs_within_reach(beads, seed):
    chain = random_chain(beads, seed)
    expected = cKDTree(chain).query_pairs(1 + SKIN)
    assert {(int(i), int(j)) for i, j in listed(chain)} == {p for p in expected if p[1] > p[0] + 1}


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 20), st.integers(0, 2**32))
def test_pushes_equal_the_slow_twins_and_keep_the_centre(beads, seed):
    chain = random_chain(beads, seed)
    moves = np.zeros((3, beads))
    push_apart(np.ascontiguousarray(chain.T), listed(chain), moves)
    np.testing.assert_allclose(moves.T, pushes(chain), atol=1e-12)
    np.testing.assert_allclose(moves.sum(axis=1), 0, atol=1e-12)


def test_a_push_ends_the_overlap_of_two_beads():
    beads = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.3, 0.2]]).T.copy()
    moves = np.zeros((3, 3))
    push_apart(beads, np.array([[0, 2]], np.int32), moves)
    after = (beads + moves).T
    assert abs(np.linalg.norm(after[2] - after[0]) - 1) < 1e-12
    assert np.array_equal(after[1], beads[:, 1])


def test_a_list_is_old_when_a_bead_has_moved_half_the_skin():
    beads = np.ascontiguousarray(random_chain(9, 1).T)
    shift = np.zeros((3, 9))
    shift[:, 4] = 0.49 * SKIN / np.sqrt(3)
    assert not moved_far(beads + shift, beads)
    shift[:, 4] = 0.5 * SKIN / np.sqrt(3)
    assert moved_far(beads + shift, beads)
    assert moved_far(beads, np.full((3, 9), np.inf))
