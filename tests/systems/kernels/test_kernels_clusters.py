"""Clusters against scipy's graphs, and what no order or shift may change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from tampl.systems.kernels.clusters import find_clusters


def found_by_scipy(particles, types, reach):
    rows = []
    for kind in range(1, types + 1):
        points = particles[particles[:, 2] == kind, :2].astype(float)
        if not len(points):
            rows.append([0, 0])
            continue
        near = cKDTree(points).query_pairs(reach, output_type="ndarray")
        graph = coo_matrix((np.ones(len(near)), near.T), (len(points), len(points)))
        number, labels = connected_components(graph, directed=False)
        rows.append([np.bincount(labels).max(), number])
    return np.array(rows)


def find(microstates, types=2, reach=5120.0):
    found = np.full((len(microstates), types, 2), -1, np.int64)
    find_clusters(microstates, types, reach, found)
    return found


def gas(seed, count, particles, types=2):
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 65536, (count, particles, 3)).astype(np.uint16)
    x[..., 2] = generator.integers(0, types + 1, (count, particles))
    return x


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    particles=st.integers(1, 120),
    types=st.integers(1, 3),
    reach=st.floats(1.0, 2e5),
)
def test_clusters_are_scipys_components(seed, particles, types, reach):
    x = gas(seed, 3, particles, types)
    expected = [found_by_scipy(one, types, reach) for one in x]
    np.testing.assert_array_equal(find(x, types, reach), expected)


def test_the_papers_size():
    x = gas(0, 4, 512)
    np.testing.assert_array_equal(find(x), [found_by_scipy(one, 2, 5120) for one in x])


@pytest.mark.parametrize("gap, clusters", [(5120, 1), (5121, 2)])
def test_the_reach_itself_connects(gap, clusters):
    for along in (0, 1):
        pair = np.full((1, 2, 3), 100, np.uint16)
        pair[0, 1, along] += gap
        pair[..., 2] = 1
        assert find(pair)[0, 0].tolist() == [3 - clusters, clusters]


def test_a_row_of_particles_is_one_cluster_and_types_do_not_mix():
    row = np.zeros((1, 40, 3), np.uint16)
    row[0, :, 0] = np.arange(40) * 1600
    row[0, :, 2] = 1
    assert find(row, reach=1600.0)[0].tolist() == [[40, 1], [0, 0]]
    row[0, 20:, 2] = 2
    assert find(row, reach=1600.0)[0].tolist() == [[20, 1], [20, 1]]
    row[0, ::2, 2] = 0
    assert find(row, reach=1600.0)[0].tolist() == [[1, 10], [1, 10]]


@pytest.mark.parametrize("axis", [0, 1])
def test_order_mirrors_and_exchange_change_nothing(axis):
    x = gas(1, 2, 200)
    shuffled = x[:, np.random.default_rng(2).permutation(200)]
    mirrored = x.copy()
    mirrored[..., axis] = 65535 - mirrored[..., axis]
    turned = x[..., [1, 0, 2]]
    for other in (shuffled, mirrored, turned):
        np.testing.assert_array_equal(find(np.ascontiguousarray(other)), find(x))
