"""Pair lists against a k-d tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from tampl.systems.kernels.neighbours import empty_list, list_pairs


def listed(positions, box, reach):
    """The list as a sorted array of pairs (i, j) with i < j."""
    near = empty_list(len(positions), box, reach)
    assert list_pairs(positions, box, reach, near)
    i = np.repeat(np.arange(len(positions)), np.diff(near.first))
    found = np.sort(np.column_stack([i, near.partners[: near.first[-1]]]), axis=1)
    return found[np.lexsort(found.T[::-1])]


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(0, 40),
    box=st.floats(1.0, 20.0),
    reach=st.floats(0.3, 25.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_list_holds_the_pairs_of_a_tree(n, box, reach, seed):
    generator = np.random.default_rng(seed)
    positions = generator.uniform(0, box, (n, 2))
    # Walls and corners are where a cell index could run over.
    edge = generator.random((n, 2)) < 0.2
    positions[edge] = generator.choice([0.0, box], edge.sum())
    expected = cKDTree(positions).query_pairs(reach, output_type="ndarray") if n else []
    found = listed(positions, box, reach)
    # Pairs at the very reach may go either way.
    distances = np.hypot(*(positions[found[:, 0]] - positions[found[:, 1]]).T)
    assert (distances < reach * (1 + 1e-12)).all()
    assert len(np.unique(found, axis=0)) == len(found)
    assert {tuple(pair) for pair in expected} - {tuple(pair) for pair in found} <= {
        tuple(pair)
        for pair in expected
        if np.hypot(*(positions[pair[0]] - positions[pair[1]])) > reach * (1 - 1e-12)
    }


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1e-9, 4.0 + 1e-9])
def test_list_refuses_what_is_not_in_the_box(wrong):
    near = empty_list(2, 4.0, 1.0)
    assert not list_pairs(np.array([[1.0, 1.0], [1.0, wrong]]), 4.0, 1.0, near)
