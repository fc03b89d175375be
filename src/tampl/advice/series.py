r"""Time series of observables: how long they remember, how much they change, how noisy they are.

With delta_t = y_t - <y>, the mean and the variance s^2 taken over all trajectories and times,

    rho(k) = <delta_t delta_{t+k}> / s^2,        D(k) = <(y_{t+k} - y_t)^2> / (2 s^2)

are the autocorrelation and the variogram at a lag of k frames; in a stationary process
D = 1 - rho. The integrated autocorrelation time is

    tau = dt (1/2 + sum_{k=1}^M rho(k)),

which is the decay time of an exponential that is sampled often, and of y_{t+1} = phi y_t + noise
dt (1 + phi) / (2 (1 - phi)). The window M is the first of at least 5 tau / dt frames, since what
lies beyond adds noise alone, or ends where rho is no longer positive. Where no window within the
trajectories is that long, tau is longer than a fifth of a trajectory, and that is all that is
known.

A part nu of the variance that is new in every frame (noise of a measurement, or motion that is
too fast to be seen) stays in D however short the lag, D(k) = nu + (1 - nu) (1 - phi^k) of an
exponential. The first three lags give nu = D(1) - (D(2) - D(1))^2 / (D(3) - D(2)). Where the
change grows faster than in proportion to the lag, as in smooth motion, phi is taken for 1.

References:
    Sokal, "Monte Carlo methods in statistical mechanics" (1997), section 3; Cressie, Statistics
    for Spatial Data (1993), on variograms and nuggets.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CorrelationTime",
    "autocorrelation",
    "choose_lags",
    "correlation_time",
    "find_noise",
    "variogram",
]

_WINDOW = 5
_LAGS = 40
_GROWTH = 0.01
"""Of D(1): by how much D(2) is larger where anything of the change is more than noise."""


@dataclass(frozen=True)
class CorrelationTime:
    """An integrated autocorrelation time, in frames.

    Attributes:
        frames: The time, or the least that it can be.
        resolved: Whether trajectories are long enough to tell it.
    """

    frames: float
    resolved: bool


def autocorrelation(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The autocorrelation of a series at all lags from 0, (F,).

    Arguments:
        y: Trajectories of one observable, (n, F); NaN where a frame is absent.

    Example:
        >>> autocorrelation(np.array([[1.0, -1.0, 1.0, -1.0]]))
        array([ 1., -1.,  1., -1.])
    """
    known = ~np.isnan(y)
    delta = np.where(known, y - y[known].mean(), 0.0)
    size = 2 * y.shape[1]
    products, pairs = (
        np.fft.irfft((np.abs(np.fft.rfft(part, size)) ** 2).sum(axis=0), size)[: y.shape[1]]
        for part in (delta, known.astype(np.float64))
    )
    # Pairs are whole numbers, which the transform rounds; lags that no trajectory has are left 0.
    pairs = np.rint(pairs)
    covariance = np.divide(products, pairs, out=np.zeros_like(products), where=pairs > 0)
    return covariance / covariance[0]


def correlation_time(rho: NDArray[np.float64]) -> CorrelationTime:
    """The integrated autocorrelation time of an autocorrelation (F,).

    Example:
        >>> correlation_time(0.5 ** np.arange(40))
        CorrelationTime(frames=1.496..., resolved=True)
    """
    times = 0.5 + np.cumsum(np.maximum(rho[1:], 0.0))
    window = np.arange(1, len(rho))
    enough = (window >= _WINDOW * times) | (rho[1:] <= 0)
    if not enough.any():
        return CorrelationTime((len(rho) - 1) / _WINDOW, False)
    return CorrelationTime(float(times[enough.argmax()]), True)


def choose_lags(frames: int) -> NDArray[np.int64]:
    """Lags up to half of a trajectory: the first ones all, then ever further apart."""
    longest = max(1, (frames - 1) // 2 if frames > 4 else frames - 1)
    lags = np.geomspace(1, longest, min(_LAGS, longest)).round().astype(int)
    return np.unique(np.concatenate([np.arange(1, min(4, longest) + 1), lags]))


def variogram(y: NDArray[np.float64], lags: NDArray[np.int64]) -> NDArray[np.float64]:
    """The variogram of a series in units of its variance, at some lags.

    Arguments:
        y: Trajectories of one observable, (n, F); NaN where a frame is absent.
        lags: In frames.

    Example:
        >>> variogram(np.array([[1.0, -1.0, 1.0, -1.0]]), np.array([1, 2]))
        array([2., 0.])
    """
    spread = np.nanvar(y)
    squares = (np.square(y[:, k:] - y[:, :-k]) for k in lags)
    means = [s[~np.isnan(s)].mean() if (~np.isnan(s)).any() else np.nan for s in squares]
    return np.array(means) / (2 * spread)


def find_noise(d: NDArray[np.float64]) -> float:
    """The share of the variance that is new in every frame.

    Arguments:
        d: The variogram at lags 1, 2, 3, ...

    Example:
        >>> round(find_noise(0.3 + 0.7 * (1 - 0.9 ** np.arange(1, 4))), 6)
        0.3
    """
    if len(d) < 3:
        return 0.0
    growth = d[1] - d[0]
    if growth <= _GROWTH * d[0]:
        return float(min(1.0, d[0]))
    phi = np.clip((d[2] - d[1]) / growth, 1e-3, 1.0)
    return float(np.clip(d[0] - growth / phi, 0.0, d[0]))
