"""Patterns: halves of equal area, the shapes that their names promise, uniform placement."""

import numpy as np
import pytest
from scipy import ndimage

from tampl.systems.patterns import FAMILIES, GRID, draw_owner, place

SEEDS = range(12)


def regions(owner):
    """Numbers of connected regions of types 0 and 1 that are more than slivers."""
    labelled = [ndimage.label(owner == kind)[0] for kind in (0, 1)]
    return [int((np.bincount(x.ravel())[1:] > GRID**2 / 400).sum()) for x in labelled]


def owners(family):
    return [draw_owner(family, np.random.default_rng(seed)) for seed in SEEDS]


@pytest.mark.parametrize("family", FAMILIES)
def test_both_types_own_exactly_half(family):
    for owner in owners(family):
        assert owner.shape == (GRID, GRID) and owner.dtype == np.uint8
        assert owner.sum() == GRID**2 // 2 and owner.max() == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_patterns_follow_from_the_generator_and_differ(family):
    again = [draw_owner(family, np.random.default_rng(seed)) for seed in SEEDS]
    for one, other in zip(owners(family), again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len({owner.tobytes() for owner in again}) == len(again)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_type_has_either_half(family):
    corners = {owner[0, 0] for owner in owners(family)}
    assert corners == {0, 1}


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("half-plane", {(1, 1)}),
        ("wavy-interface", {(1, 1), (1, 2)}),  # a corner can cut off a crest
        ("centred-slab", {(1, 2)}),
        ("central-disk", {(1, 1), (1, 2), (1, 3), (1, 4)}),
        ("four-bands", {(2, 2), (2, 3)}),
    ],
)
def test_families_have_the_shapes_of_their_names(family, expected):
    assert {tuple(sorted(regions(owner))) for owner in owners(family)} <= expected


def test_a_checkerboard_has_many_fields():
    numbers = [sum(regions(owner)) for owner in owners("checkerboard")]
    assert min(numbers) >= 3 and max(numbers) >= 10


def test_a_disk_is_round_and_in_the_middle():
    for owner in owners("central-disk"):
        inside = owner == owner[GRID // 2, GRID // 2]
        assert inside.sum() == GRID**2 // 2
        middle = np.argwhere(inside).mean(axis=0) / GRID
        assert np.abs(middle - 0.5).max() < 0.06


def test_particles_are_placed_uniformly_in_their_own_half():
    generator = np.random.default_rng(0)
    owner = draw_owner("checkerboard", generator)
    types = np.repeat([0, 1], 20_000)
    positions = place(owner, types, generator)
    cells = np.floor(positions * GRID).astype(int)
    np.testing.assert_array_equal(owner[cells[:, 0], cells[:, 1]], types)
    # Both halves together fill the box evenly: counts in 64 squares against 40,000 / 64.
    counts, *_ = np.histogram2d(*positions.T, bins=8, range=[[0, 1], [0, 1]])
    deviation = (counts - 625) / 25
    assert (deviation**2).sum() < 64 + 5 * np.sqrt(2 * 64)


def test_no_random_number_is_shared():
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    owner = draw_owner("half-plane", one)
    np.testing.assert_array_equal(owner, draw_owner("half-plane", other))
    types = np.array([0, 1, 0])
    np.testing.assert_array_equal(place(owner, types, one), place(owner, types, other))
