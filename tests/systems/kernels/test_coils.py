"""Coils against the closed form for three beads and against simple sampling of more."""

import numpy as np
import pytest
from rods_twin import assert_mean, make_words, rigid_rods

from tampl.systems.kernels.coils import sample_coils


def string_all(rods):
    return np.concatenate([np.zeros((len(rods), 1, 3)), np.cumsum(rods, axis=1)], axis=1)


def nearest(rods):
    """Smallest distance between beads that are not joined, (n, R, 3) to (n,)."""
    beads = string_all(rods)
    i, j = np.triu_indices(beads.shape[1], 2)
    return np.linalg.norm(beads[:, i] - beads[:, j], axis=-1).min(axis=1)


def test_coils_have_unit_rods_and_no_overlaps():
    rods = sample_coils(make_words(5), 100)
    assert rods.shape == (5, 99, 3)
    assert np.abs(np.linalg.norm(rods, axis=-1) - 1).max() < 1e-12
    assert nearest(rods).min() > 1 - 1e-11


def test_three_beads_have_the_rigid_measure_cut_at_contact():
    # The outer beads touch at cos = -1/2; above it the density of cos is sqrt(4 - cos^2).
    rods = sample_coils(make_words(20_000), 3)
    cosines = (rods[:, 0] * rods[:, 1]).sum(axis=-1)
    c = np.linspace(-0.5, 1, 20_001)
    weight = np.sqrt(4 - c**2)
    for power in (1, 2):
        assert_mean(cosines**power, (c**power * weight).sum() / weight.sum(), slack=1e-4)
    assert cosines.min() > -0.5 - 1e-12


@pytest.mark.parametrize("beads", [4, 7])
def test_distances_equal_those_of_simple_sampling(beads):
    # Rigid chains without excluded volume, of which those that overlap are thrown away.
    walks = rigid_rods(60_000, beads - 1)
    expected = walks[nearest(walks) > 1].sum(axis=1)
    rods = sample_coils(make_words(6000), beads)
    squared = (rods.sum(axis=1) ** 2).sum(axis=-1)
    reference = (expected**2).sum(axis=-1)
    error = np.std(reference) / np.sqrt(len(reference))
    assert_mean(squared, reference.mean(), slack=4 * error)
    # No direction is preferred.
    assert_mean(rods.sum(axis=1), 0)
    assert_mean(rods.sum(axis=1) ** 2, reference.mean() / 3, slack=4 * error)


def test_two_beads_are_one_random_rod():
    rods = sample_coils(make_words(4000), 2)
    assert_mean(rods[:, 0], 0)
    assert_mean(rods[:, 0] ** 2, 1 / 3)


def test_same_words_same_coil_and_longer_chains_swell():
    words = make_words(30)
    assert np.array_equal(sample_coils(words[2:3], 12)[0], sample_coils(words, 12)[2])
    # Excluded volume swells a chain beyond the random walk's <R^2> = R.
    assert (sample_coils(words, 100).sum(axis=1) ** 2).sum(axis=-1).mean() > 1.5 * 99
