"""Statistics of series whose law is known: AR(1), an Ornstein-Uhlenbeck process, noise, a wave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tampl.advice import autocorrelation, correlation_time, variogram
from tampl.advice.series import choose_lags, find_noise


def autoregressive(phi, *, count=2000, frames=400, seed=0):
    """Stationary trajectories of y_{t+1} = phi y_t + noise, of variance one."""
    noise = np.random.default_rng(seed).normal(size=(count, frames))
    y = noise.copy()
    for t in range(1, frames):
        y[:, t] = phi * y[:, t - 1] + np.sqrt(1 - phi**2) * noise[:, t]
    return y


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, 0.97])
def test_the_correlation_time_of_an_autoregression_is_the_known_one(phi):
    found = correlation_time(autocorrelation(autoregressive(phi)))
    assert found.resolved
    # Within five percent of (1 + phi) / (2 (1 - phi)): the window leaves out exp(-5).
    assert found.frames == pytest.approx((1 + phi) / (1 - phi) / 2, rel=0.05)


def test_an_ornstein_uhlenbeck_process_has_its_decay_time():
    # exp(-dt / tau) with dt = 0.1 and tau = 2: frames are 20 in a decay time.
    found = correlation_time(autocorrelation(autoregressive(np.exp(-0.1 / 2))))
    assert 0.1 * found.frames == pytest.approx(2.0, rel=0.05)


def test_a_memory_longer_than_the_trajectories_is_not_told():
    found = correlation_time(autocorrelation(autoregressive(0.999, frames=50)))
    assert not found.resolved and found.frames == 49 / 5


def test_trajectories_at_levels_of_their_own_never_forget():
    levels = np.random.default_rng(0).normal(size=(50, 1))
    y = levels + 0.1 * autoregressive(0.5, count=50, frames=100)
    assert not correlation_time(autocorrelation(y)).resolved


@given(st.integers(2, 12), st.integers(1, 4), st.floats(0, 0.4), st.integers(0, 2**32 - 1))
def test_curves_are_those_of_a_slow_sum_over_pairs(frames, count, missing, seed):
    generator = np.random.default_rng(seed)
    y = generator.normal(size=(count, frames)).cumsum(axis=1)
    y[:, 1:][generator.random((count, frames - 1)) < missing] = np.nan
    if np.nanvar(y) == 0:
        return
    rho, lags = autocorrelation(y), np.arange(1, frames)
    found = variogram(y, lags)
    mean, var = np.nanmean(y), np.nanvar(y)
    for k in range(frames):
        pairs = [
            (row[t], row[t + k])
            for row in y
            for t in range(frames - k)
            if not (np.isnan(row[t]) or np.isnan(row[t + k]))
        ]
        direct = np.mean([(a - mean) * (b - mean) for a, b in pairs]) / var if pairs else 0.0
        assert rho[k] == pytest.approx(direct, abs=1e-9)
        if k and pairs:
            change = np.mean([(a - b) ** 2 for a, b in pairs]) / (2 * var)
            assert found[k - 1] == pytest.approx(change)
        elif k:
            assert np.isnan(found[k - 1])


@pytest.mark.parametrize(("noise", "phi"), [(0.0, 0.9), (0.3, 0.9), (0.5, 0.6), (1.0, 0.0)])
def test_what_is_new_in_every_frame_is_told_from_what_is_remembered(noise, phi):
    y = np.sqrt(1 - noise) * autoregressive(phi) if noise < 1 else 0.0
    y = y + np.sqrt(noise) * np.random.default_rng(1).normal(size=(2000, 400))
    d = variogram(y, np.arange(1, 4))
    np.testing.assert_allclose(
        d, noise + (1 - noise) * (1 - phi ** np.arange(1, 4)), rtol=0.03, atol=0.003
    )
    assert find_noise(d) == pytest.approx(noise, abs=0.03)


def test_smooth_motion_is_not_taken_for_noise():
    t, phase = np.arange(400) * 0.05, np.random.default_rng(0).uniform(0, 6.28, (100, 1))
    assert find_noise(variogram(np.sin(t + phase), np.arange(1, 4))) == 0.0


def test_lags_are_all_at_first_and_end_at_half_of_a_trajectory():
    assert choose_lags(2).tolist() == [1]
    assert choose_lags(9).tolist() == [1, 2, 3, 4]
    lags = choose_lags(1001)
    assert lags[:4].tolist() == [1, 2, 3, 4] and lags[-1] == 500 and len(lags) <= 44
