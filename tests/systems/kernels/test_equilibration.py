"""Initial configurations: overlaps gone, patterns kept, the canonical distribution reached."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tampl.errors import InputError
from tampl.seeding import kernel_words, numpy_generator
from tampl.systems.kernels.equilibration import ANY, Bath, equilibrate, minimise
from tampl.systems.kernels.pair_forces import Fluid, closest_pair, forces, pair_table

CUTOFF, BOX = 2.5, 8.0
PAIRS = pair_table([[0.5, 0.7], [0.7, 0.6]], [[1.0, 0.9], [0.9, 0.9]], CUTOFF)
FLUID = Fluid(PAIRS, CUTOFF, BOX)
# Points that do not see each other cannot overlap.
NONE = Fluid(pair_table([[0.0]], [[1e-6]], 0.1), 0.1, BOX)
HALVES = np.repeat(np.array([[0], [1]], np.uint8), 6, axis=1)
BOARD = (np.indices((4, 4)).sum(axis=0) % 2).astype(np.uint8)


def scatter(owner, counts, seed=0):
    """Random positions in the regions of `owner`, counts[a] of type a, and their types."""
    generator = numpy_generator(seed, "scatter")
    types = np.repeat(np.arange(len(counts)), counts).astype(np.uint8)
    positions = np.empty((len(types), 2))
    for i, kind in enumerate(types):
        while True:
            positions[i] = generator.uniform(0, BOX, 2)
            if owner_at(positions[i], owner) in (kind, ANY):
                break
    return positions, types


def owner_at(positions, owner):
    shape = np.array(owner.shape)
    x, y = np.minimum((positions / BOX * shape).astype(int), shape - 1).T
    return owner[x, y]


def heat(positions, types, owner, *, steps=500, dt=0.002, friction=1.0, fluid=FLUID, seed=0):
    words, bath = kernel_words(seed, "heat"), Bath(1.0, dt, steps, friction)
    return equilibrate(positions, types, words, fluid, owner, bath)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), cells=st.integers(1, 9))
def test_any_pattern_is_kept(seed, cells):
    owner = numpy_generator(seed, "owner").choice([0, 1, ANY], (cells, cells)).astype(np.uint8)
    counts = [6 * bool(np.isin(owner, (kind, ANY)).any()) for kind in (0, 1)]
    positions, types = scatter(owner, counts, seed)
    try:
        positions = minimise(positions, types, FLUID, owner)
    except InputError:
        assume(False)  # a region may be too small for six particles
    for configuration in (positions, heat(positions, types, owner, steps=200)):
        cells = owner_at(configuration, owner)
        assert np.all((cells == types) | (cells == ANY))


@pytest.mark.parametrize("owner", [HALVES, BOARD], ids=["halves", "board"])
def test_minimise_takes_overlaps_away(owner):
    positions, types = scatter(owner, (16, 16))
    moved = minimise(positions, types, FLUID, owner)
    assert closest_pair(positions, types, PAIRS)[2] < 0.3
    assert closest_pair(moved, types, PAIRS)[2] > 0.9
    assert forces(moved, types, PAIRS, CUTOFF)[0] < 0
    assert np.array_equal(owner_at(moved, owner), types)
    assert np.array_equal(moved, minimise(positions, types, FLUID, owner))


def test_minimise_finds_the_distance_of_least_energy():
    positions, owner = np.array([[4.0, 4.0], [4.3, 4.4]]), np.full((1, 1), ANY)
    moved = minimise(positions, np.zeros(2, np.uint8), FLUID, owner)
    assert np.hypot(*(moved[1] - moved[0])) == pytest.approx(2 ** (1 / 6), abs=5e-3)


def test_minimise_refuses_more_particles_than_fit_and_two_in_one_place():
    positions, types = scatter(HALVES, (400, 16))
    with pytest.raises(InputError, match=r"still overlap.*larger `box`"):
        minimise(positions, types, FLUID, HALVES)
    with pytest.raises(InputError, match="still overlap"):
        minimise(np.ones((2, 2)), np.zeros(2, np.uint8), FLUID, HALVES)


def test_free_particles_fill_their_region_evenly():
    # An L of three cells of four: each holds a third of the particles, and evenly so.
    owner = np.array([[0, 0], [0, 1]], np.uint8)
    positions, types = np.ones((900, 2)) + np.arange(900)[:, None] * 1e-3, np.zeros(900, np.uint8)
    moved = heat(positions, types, owner, fluid=NONE, steps=2000, dt=0.02)
    cells = np.floor(moved / 4.0).astype(int)
    shares = [np.mean((cells == cell).all(axis=1)) for cell in ([0, 0], [0, 1], [1, 0])]
    assert np.allclose(shares, 1 / 3, atol=4 * np.sqrt(2 / 9 / 900))
    inside = moved % 4.0
    assert np.allclose(inside.mean(axis=0), 2.0, atol=4 * 4 / np.sqrt(12 * 900))
    assert np.allclose(inside.var(axis=0), 16 / 12, atol=4 * 16 / np.sqrt(180 * 900))


def test_a_corner_holds_nobody():
    # From a corner of its own cell each free particle goes straight on, mirrored into the cell.
    owner = np.array([[0, 1], [1, 1]], np.uint8)
    grid = np.stack(np.meshgrid(*2 * [np.arange(1, 21)]), axis=-1).reshape(-1, 2)
    positions, types = 4.0 - 1e-6 * grid, np.zeros(400, np.uint8)
    moved = heat(positions, types, owner, fluid=NONE, steps=100, dt=0.005, friction=1e-9)
    gone = 4.0 - moved
    np.testing.assert_allclose((gone**2).mean(axis=0), 0.5**2, rtol=4 * np.sqrt(2 / 400))
    assert (gone >= 0).all()


def test_a_pair_has_boltzmanns_distribution_of_distances():
    box, owner, types = 3.0, np.full((1, 1), ANY), np.zeros(2, np.uint8)
    fluid, bath = (
        Fluid(pair_table([[1.5]], [[1.0]], CUTOFF), CUTOFF, box),
        Bath(1.0, 0.005, 200, 2.0),
    )
    x, distances = np.array([[1.0, 1.0], [2.0, 2.0]]), []
    for draw in range(1500):
        words = kernel_words(draw, "pair")
        x = equilibrate(x, types, words, fluid, owner, bath)
        distances.append(np.hypot(*(x[1] - x[0])))
    # The same average by a sum over random placements, weighted by Boltzmann's factor.
    free = np.random.default_rng(0).uniform(0, box, (400_000, 2, 2))
    r = np.hypot(*(free[:, 1] - free[:, 0]).T)
    u = 6.0 * (r**-12.0 - r**-6.0 - (CUTOFF**-12.0 - CUTOFF**-6.0)) * (r < CUTOFF)
    weight = np.exp(-u)
    expected = np.average(np.column_stack([r, r**2]), axis=0, weights=weight)
    found = np.column_stack([distances, np.square(distances)])
    # Neighbouring draws are not quite independent, for which the bound has room.
    assert np.all(np.abs(found.mean(axis=0) - expected) < 5 * found.std(axis=0) / np.sqrt(1500))


def test_same_words_give_the_same_bytes_and_arguments_stay():
    positions, types = scatter(BOARD, (12, 12))
    start = minimise(positions, types, FLUID, BOARD)
    copy = start.copy()
    once = heat(start, types, BOARD)
    assert np.array_equal(once, heat(start, types, BOARD))
    assert not np.array_equal(once, heat(start, types, BOARD, seed=1))
    assert np.array_equal(start, copy)


def test_wrong_input_is_refused():
    positions, types = scatter(HALVES, (12, 12))
    start = minimise(positions, types, FLUID, HALVES)
    with pytest.raises(InputError, match=r"particle 0 of type 1.*`owner`"):
        heat(start, 1 - types, HALVES)
    with pytest.raises(InputError, match=r"particle 0 of type 1.*`owner`"):
        minimise(start, 1 - types, FLUID, HALVES)
    with pytest.raises(InputError, match="inside the box"):
        minimise(np.full_like(start, np.nan), types, FLUID, HALVES)
    with pytest.raises(InputError, match="distance of"):
        heat(np.ones_like(start), np.zeros_like(types), HALVES)


@pytest.mark.parametrize("dt", [0.1, 10.0, 1e200])
def test_a_blow_up_is_reported_with_step_and_energy(dt):
    positions, types = scatter(HALVES, (16, 16))
    start = minimise(positions, types, FLUID, HALVES)
    with pytest.raises(InputError, match=r"blew up at step \d+: .*kinetic energy .*`dt`"):
        heat(start, types, HALVES, dt=dt, friction=0.1, steps=2000)
