"""Claims as numbers: peaks and spreads of trajectories that are known."""

import numpy as np
import pytest

from tampl.evaluation.claims import peaks, spread_ratios


def test_peaks_of_known_curves():
    times = np.linspace(0, 4, 41)
    bump = lambda at, height: height * np.exp(-((times - at) ** 2))
    y = np.stack([np.stack([bump(1, 2), bump(3, 5)], -1), np.stack([bump(2, 4), bump(3, 7)], -1)])
    first, second = peaks(y, times)
    assert (first.time, first.height) == (pytest.approx(1.5), pytest.approx(3))
    assert (second.time, second.height) == (pytest.approx(3), pytest.approx(6))


def test_the_peak_of_an_ensemble_is_that_of_its_mean():
    generator = np.random.default_rng(0)
    ensemble = generator.normal(size=(3, 5, 20, 2))
    times = np.arange(20.0)
    assert peaks(ensemble, times) == peaks(ensemble.mean(axis=1), times)


def test_spread_is_relative_and_leaves_out_the_start():
    generator = np.random.default_rng(0)
    reference = generator.normal(size=(4, 200, 6, 2))
    predicted = np.array([2.0, 0.5]) * (reference + 3)
    predicted[:, :, 0] = 1e6 * generator.normal(size=(4, 200, 2))
    assert spread_ratios(predicted, reference) == pytest.approx([2.0, 0.5])


def test_a_deterministic_spread_is_zero():
    generator = np.random.default_rng(0)
    reference = generator.normal(size=(4, 20, 6, 1))
    (ratio,) = spread_ratios(np.repeat(reference[:, :1], 20, axis=1), reference)
    assert ratio == pytest.approx(0, abs=1e-12)


def test_a_conserved_quantity_has_no_ratio_and_divides_nothing_by_zero():
    generator = np.random.default_rng(0)
    reference = generator.normal(size=(4, 20, 6, 2))
    reference[..., 1] = 0.25
    first, second = spread_ratios(reference, reference)
    assert first == pytest.approx(1) and np.isnan(second)
