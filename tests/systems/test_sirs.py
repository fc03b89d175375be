"""The SIRS system: its patterns, its refusals, and bytes that follow from words alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.errors import InputError
from tampl.seeding import kernel_words, numpy_generator
from tampl.systems import SIRS, find_system_class

SMALL = SIRS(size=20, frames=6)


def words(*shape):
    n = int(np.prod(shape))
    return np.stack([kernel_words(0, k) for k in range(n)]).reshape(*shape, 4)


def patterns(system, n):
    return np.stack([system.initial(numpy_generator(0, k)).microstate for k in range(n)])


def brute_distance(size, centre):
    """Squared distance to the nearest of the nine nearest images of one centre."""
    grid = np.indices((size, size))
    images = [
        (grid[0] - centre[0] - a * size) ** 2 + (grid[1] - centre[1] - b * size) ** 2
        for a in (-1, 0, 1)
        for b in (-1, 0, 1)
    ]
    return np.min(images, axis=0)


def test_the_registry_knows_the_system_by_its_name():
    assert find_system_class("sirs") is SIRS
    assert SMALL.description.system == "sirs"


def test_parameters_make_the_system_again():
    system = SIRS(size=12, beta=3.5, clusters=(1, 3))
    assert SIRS(**system.description.parameters) == system


@pytest.mark.parametrize(
    "parameters",
    [
        {"size": 2},
        {"beta": -1.0},
        {"gamma": float("inf")},
        {"mu": float("nan")},
        {"interval": 0.0},
        {"frames": 1},
        {"coverage": 0.0},
        {"coverage": 1.0},
        {"clusters": ()},
        {"clusters": (0,)},
        {"clusters": (6,), "size": 10},
        {"unknown": 1},
    ],
)
def test_impossible_parameters_are_refused(parameters):
    with pytest.raises(InputError):
        SIRS(**parameters)


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(3, 25),
    coverage=st.floats(0.01, 0.9),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_patterns_infect_exactly_the_coverage(size, coverage, seed, data):
    system = SIRS(size=size, coverage=coverage)
    infected = max(1, round(coverage * size**2))
    K = data.draw(st.integers(1, infected))
    pattern = system.pattern(K, np.random.default_rng(seed))
    assert pattern.shape == (size, size)
    assert pattern.dtype == np.uint8
    assert pattern.max() == 1
    assert pattern.sum() == infected


@pytest.mark.parametrize("K", [-1, 0, 21])
def test_patterns_that_do_not_fit_are_refused(K):
    with pytest.raises(InputError, match="`clusters`"):
        SMALL.pattern(K, np.random.default_rng(0))


def test_one_cluster_is_a_disc_also_across_the_edges():
    for seed in range(20):
        pattern = SMALL.pattern(1, np.random.default_rng(seed)) == 1
        discs = [brute_distance(20, (i, j)) for i in range(20) for j in range(20)]
        assert any(d[pattern].max() <= d[~pattern].min() for d in discs)


def test_as_many_clusters_as_infected_sites_are_scattered_evenly():
    # All infected sites are centres, and every site is one with the same probability.
    generator, n = np.random.default_rng(0), 2000
    system = SIRS(size=5, coverage=0.2, clusters=(5,))
    mean = np.mean([system.pattern(5, generator) for _ in range(n)], axis=0)
    assert np.all(np.abs(mean - 0.2) < 4.5 * np.sqrt(0.2 * 0.8 / n))


def test_equally_near_sites_are_infected_equally_often():
    # Two sites: the centre and one of its four neighbours, two of which lie in its row.
    system, generator, n = SIRS(size=5, coverage=0.08), np.random.default_rng(0), 2000
    horizontal = 0
    for _ in range(n):
        rows = np.nonzero(system.pattern(1, generator))[0]
        horizontal += rows[0] == rows[1]
    assert abs(horizontal / n - 0.5) < 4 * np.sqrt(0.25 / n)


@pytest.mark.parametrize("size", [3, 8, 9])
def test_distances_are_periodic_and_move_with_the_centre(size):
    for centre in range(size**2):
        row, column = divmod(centre, size)
        distance = SMALL.model_copy(update={"size": size})._measure_distances(np.array([centre]))
        distance = distance.reshape(size, size)
        assert np.array_equal(distance, brute_distance(size, (row, column)))
        assert np.array_equal(
            distance, np.roll(brute_distance(size, (0, 0)), (row, column), (0, 1))
        )


def test_initial_states_are_labelled_and_draw_every_cluster_number_that_fits():
    states = [SMALL.initial(numpy_generator(0, n)) for n in range(200)]
    assert {state.label for state in states} == {"K=1", "K=2", "K=4", "K=8", "K=16"}
    assert all(state.microstate.max() == 1 for state in states)


def test_observables_are_fractions_of_sites():
    microstates = np.random.default_rng(0).integers(0, 3, (2, 3, 20, 20))
    expected = np.stack([(microstates == a).mean(axis=(-2, -1)) for a in range(3)], axis=-1)
    np.testing.assert_allclose(SMALL.observe(microstates), expected, atol=1e-15)
    # Layout in memory is no part of the meaning.
    turned = microstates.swapaxes(-1, -2)
    np.testing.assert_allclose(SMALL.observe(turned), expected, atol=1e-15)


def test_trajectories_have_the_same_bytes_on_threads_and_in_turn():
    microstates, seeds = patterns(SMALL, 8), words(8)
    together = SMALL.simulate(microstates, seeds)

    def alone(n):
        return SMALL.simulate(microstates[n : n + 1], seeds[n : n + 1]).microstates.tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert b"".join(pool.map(alone, range(8))) == together.microstates.tobytes()


def test_ensembles_are_the_macrostates_of_simulations():
    microstates, seeds = patterns(SMALL, 2), words(2, 3)
    members = SMALL.ensemble(microstates, seeds)
    assert members.shape == (2, 3, 6, 3)
    for m in range(3):
        runs = SMALL.simulate(microstates, seeds[:, m])
        assert np.array_equal(members[:, m], runs.macrostates)
        assert np.array_equal(runs.macrostates, SMALL.observe(runs.microstates))
    assert SMALL.faults(members) is None


def test_simulation_leaves_its_arguments_alone():
    microstates, seeds = patterns(SMALL, 2), words(2)
    copies = microstates.copy(), seeds.copy()
    microstates.flags.writeable = seeds.flags.writeable = False
    SMALL.simulate(microstates, seeds)
    assert np.array_equal(microstates, copies[0])
    assert np.array_equal(seeds, copies[1])


def test_no_trajectories_are_a_valid_batch():
    empty = np.empty((0, 20, 20), np.uint8)
    assert SMALL.simulate(empty, np.empty((0, 4), np.uint64)).macrostates.shape == (0, 6, 3)
    assert SMALL.ensemble(empty, np.empty((0, 5, 4), np.uint64)).shape == (0, 5, 6, 3)


@pytest.mark.parametrize(
    "seeds",
    [
        words(2).astype(np.int64),
        words(3),
        words(2, 1),
        words(2)[:, :3],
        words(2) * np.array([[0], [1]], np.uint64),
    ],
    ids=["signed", "too many", "for an ensemble", "three words", "zeros"],
)
def test_wrong_words_are_refused(seeds):
    with pytest.raises(InputError, match="`words`"):
        SMALL.simulate(patterns(SMALL, 2), seeds)


@pytest.mark.parametrize(
    "microstates",
    [np.zeros((2, 10, 10)), np.full((2, 20, 20), 3), np.zeros((20, 20)), np.zeros((1, 2, 20, 20))],
    ids=["size", "code", "one", "nested"],
)
def test_wrong_microstates_are_refused(microstates):
    with pytest.raises(InputError, match="`microstates`"):
        SMALL.simulate(microstates, words(2))
    if microstates.shape[-1] != 20 or microstates.ndim != 3:
        with pytest.raises(InputError, match="`microstates`"):
            SMALL.closures()["pair"](microstates)


@pytest.mark.parametrize(
    ("macrostate", "fault"),
    [
        ([0.5, 0.3, 0.2], None),
        ([0.5, 0.3, 0.2 + 1e-10], None),
        ([0.5, np.nan, 0.5], "finite"),
        ([np.inf, 0.0, 0.0], "finite"),
        ([1.2, -0.2, 0.0], "outside"),
        ([0.5, 0.3, 0.1], "differs from 1"),
    ],
)
def test_faults_name_what_is_wrong(macrostate, fault):
    found = SMALL.faults(np.array([[1.0, 0.0, 0.0], macrostate]))
    assert found is None if fault is None else fault in found
