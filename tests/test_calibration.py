"""Calibration: perfect ensembles cover what they promise; CRPS is that of scoringrules."""

import numpy as np
import pytest
import scoringrules
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tampl.calibration import LEVELS, Calibration, calibrate, central_band
from tampl.errors import InputError
from tampl.forecast import Forecast

TIMES = np.arange(4.0)


def draw(states, *, seed, width=1.0):
    """Random walks around means of their own, (G, N, 4, 2)."""
    generator = np.random.default_rng(seed)
    means = generator.normal(size=(states, 1, 4, 2))
    return means, lambda count: means + width * generator.normal(size=(states, count, 4, 2))


def compare(samples, truth, **options):
    return calibrate(samples, truth, TIMES, ("a", "b"), **options)


@pytest.mark.parametrize("members", [39, 64])
def test_an_ensemble_of_the_truth_s_own_law_is_calibrated(members):
    _, more = draw(2000, seed=1)
    found = compare(more(members), more(5))
    for level in LEVELS:
        # 2000 x 5 x 3 x 2 trajectories and times, five of each sharing an ensemble.
        assert found.mean_coverage(level) == pytest.approx(level, abs=0.01)
        assert found.coverage_by_observable(level)["b"] == pytest.approx(level, abs=0.015)
    assert found.spread_to_error == pytest.approx(1, abs=0.01)
    np.testing.assert_allclose(found.ranks, 0.1, atol=0.01)


def test_the_band_of_an_ensemble_covers_its_level_exactly_in_the_mean():
    # Of 9 members and the truth, all ten orders are as likely: inside are eight of ten places.
    _, more = draw(40_000, seed=2)
    low, high = central_band(more(9), 0.8)
    truth = more(1)[:, 0]
    assert ((low <= truth) & (truth <= high)).mean() == pytest.approx(0.8, abs=0.004)


@pytest.mark.parametrize(("width", "wanted"), [(0.25, 0.25), (3.0, 3.0)])
def test_narrow_and_wide_ensembles_are_seen(width, wanted):
    means, more = draw(1500, seed=3)
    wrong = means + width * (more(40) - means)
    found = compare(wrong, more(4))
    # The error holds the noise of the ensemble's mean, which is small beside the truth's.
    error = np.sqrt((1 + width**2 / 40) * 40 / 41)
    assert found.spread_to_error == pytest.approx(wanted / error, rel=0.02)
    edges = width * stats.norm.ppf(0.9)
    expected = 1 - 2 * stats.norm.cdf(-edges)
    assert found.mean_coverage(0.8) == pytest.approx(expected, abs=0.02)
    assert (found.ranks[:, 0] > 0.1).all() == (width < 1)


def test_crps_is_the_fair_one_of_scoringrules():
    _, more = draw(20, seed=4)
    samples, truth = more(7), more(3)
    scale = np.array([2.0, 0.5])
    ours = compare(samples, truth, scale=scale).crps
    ensembles = np.moveaxis(samples / scale, 1, -1)
    theirs = np.stack(
        [
            scoringrules.crps_ensemble(path, ensembles, estimator="fair")
            for path in np.moveaxis(truth / scale, 1, 0)
        ],
        axis=1,
    )
    np.testing.assert_allclose(ours, theirs.mean(axis=(0, 1))[1:])


def test_the_crps_of_many_gaussian_members_is_gauss_s():
    generator = np.random.default_rng(5)
    samples = generator.normal(size=(1, 4000, 2, 1))
    truth = np.full((1, 1, 2, 1), 0.7)
    found = calibrate(samples, truth, TIMES[:2], ("a",)).crps[0, 0]
    assert found == pytest.approx(scoringrules.crps_normal(0.7, 0.0, 1.0), abs=0.02)


def test_missing_frames_count_for_nothing():
    _, more = draw(30, seed=6)
    samples, truth = more(8), more(2)
    holes = truth.copy()
    holes[10:, :, 2] = np.nan
    whole, found = compare(samples, truth), compare(samples, holes)
    part = compare(samples[:10], truth[:10])
    np.testing.assert_allclose(found.coverage[:, 0], whole.coverage[:, 0])
    np.testing.assert_allclose(found.coverage[:, 1], part.coverage[:, 1])
    np.testing.assert_allclose(found.crps[1], part.crps[1])
    assert np.isfinite(found.mean_coverage(0.8))


def test_a_constant_observable_is_left_out_of_the_means():
    _, more = draw(200, seed=7)
    samples, truth = more(30), more(2)
    samples[..., 1] = truth[:, :1, :1, 1]
    truth[..., 1] = truth[:, :1, :1, 1]
    found = compare(samples, truth)
    assert found.varies.tolist() == [True, False]
    assert list(found.coverage_by_observable(0.8)) == ["a"]
    assert found.mean_coverage(0.5) == pytest.approx(0.5, abs=0.06)


@given(shift=st.floats(-5, 5), scale=st.floats(0.1, 10))
def test_other_units_change_nothing(shift, scale):
    _, more = draw(5, seed=8)
    samples, truth = more(6), more(2)
    one = compare(samples, truth)
    other = compare(scale * samples + shift, scale * truth + shift, scale=np.full(2, scale))
    for name in ("coverage", "spread", "error", "crps"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-9)


def test_ties_are_spread_over_the_ranks_they_share():
    # Counts: members and truth are often equal, and nothing of it is a fault of the forecast.
    generator = np.random.default_rng(9)
    samples, truth = (generator.integers(3, size=(4000, n, 2, 1)) for n in (10, 2))
    found = calibrate(samples, truth, TIMES[:2], ("count",))
    np.testing.assert_allclose(found.ranks, 0.1, atol=0.015)


def test_a_calibration_is_plain_data_and_back():
    _, more = draw(4, seed=10)
    truth = more(1)
    truth[:, :, 3] = np.nan
    found = compare(more(5), truth)
    back = Calibration.from_dict(found.as_dict())
    assert back.as_dict() == found.as_dict()
    assert np.isnan(back.crps[-1]).all()


def test_a_forecast_is_compared_with_what_happened():
    _, more = draw(50, seed=11)
    truth = more(3)
    forecast = Forecast(more(20), TIMES, ("a", "b"), ("", ""))
    found = forecast.calibrate(truth)
    assert found.as_dict() == compare(forecast.samples, truth).as_dict()
    assert "80% band covers" in str(found)
    single = forecast.calibrate(truth[:, 0, :3])  # one trajectory each, of fewer frames
    assert single.coverage.shape == (3, 2, 2)
    figure = found.plot(time_unit="ns")
    assert len(figure.axes) == 6 and figure.axes[-1].get_xlabel() == "rank of the truth"


def test_wrong_shapes_are_refused():
    _, more = draw(4, seed=12)
    with pytest.raises(InputError, match="two members"):
        compare(more(1), more(2))
    with pytest.raises(InputError, match="`samples` has shape"):
        compare(more(3), more(2)[:, :, :3])
    with pytest.raises(InputError, match=r"`level` is 0\.7"):
        compare(more(3), more(2)).mean_coverage(0.7)
