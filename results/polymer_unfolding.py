"""Unfolding times of the polymer: what is known of them, and how runs are held against it.

The facts are of the published data; a chain has unfolded in the first frame beyond 95 % of the
mean extension of stretched chains.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tampl.systems.extension import unfolding_time

BIN = 200.0
HORIZON = 10_000.0
STRETCHED = 240 / 299
"""Extension over contour length beyond which a chain counts as stretched."""


@dataclass(frozen=True)
class Regime:
    """Initial extension, and the shortest, most frequent and longest unfolding time."""

    extension: float
    shortest: float
    mode: float
    longest: float


FACTS = {
    "fast": Regime(56.0, 1700, 2100, 2800),
    "medium": Regime(18.0, 2400, 3600, 9500),
    "slow": Regime(74.4, 3500, 5000, 10_000),
}


def stretched(x: NDArray[np.float64], beads: int, *, last: int) -> tuple[float, float]:
    """Mean and deviation of extensions, (n, F), in the last frames of chains that were stretched.

    A chain counts if it was beyond `STRETCHED` in any frame before those.
    """
    kept = x[(x[:, :-last] > STRETCHED * (beads - 1)).any(axis=1), -last:]
    if not len(kept):
        raise SystemExit("no chain is stretched: follow more chains, or for longer")
    return float(kept.mean()), float(kept.std())


def mode_of(times: NDArray[np.float64], *, smooth: int = 0) -> float:
    """The most frequent time in bins of 200, smoothed over so many bins on either side."""
    edges = np.arange(0, HORIZON + 2 * BIN, BIN)
    counts = np.histogram(times, edges)[0]
    window = np.hanning(2 * smooth + 3)
    return float(edges[np.convolve(counts, window, "same").argmax()] + BIN / 2)


def misfit(times: NDArray[np.float64], regime: Regime) -> float:
    """How far a distribution of unfolding times, (n,), is from a regime; 0 for equal."""
    found = np.minimum(times, HORIZON)
    low, high = np.quantile(found, [0.02, 0.98])
    # Few runs leave a histogram of single counts, which a wide window turns into a hump.
    mode = mode_of(found, smooth=5 if len(found) < 20 else 2)
    logs = np.log([low / regime.shortest, mode / regime.mode, high / regime.longest])
    return float(np.abs(logs) @ [0.5, 1.0, 0.5])


def find_snapshots(
    x: NDArray[np.float64], regime: Regime, *, full: float, interval: float, count: int
) -> list[tuple[int, int]]:
    """Chain and frame of snapshots of the right extension and remaining time, best first.

    Arguments:
        x: Extensions of chains in flow, (n, F).
        regime: What is looked for.
        full: Mean extension of stretched chains.
        interval: Time between frames.
        count: How many to give at most, one of a chain.
    """
    unfolded = unfolding_time(x, full, interval=interval)
    remaining = unfolded[:, None] - interval * np.arange(x.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        lateness = np.abs(np.log(remaining / regime.mode))
    lateness[~(np.isfinite(lateness) & (np.abs(x - regime.extension) < 1.0))] = np.inf
    frames = lateness.argmin(axis=1)
    best = lateness[np.arange(len(x)), frames]
    order = [chain for chain in np.argsort(best) if np.isfinite(best[chain])]
    return [(int(chain), int(frames[chain])) for chain in order[:count]]


def summary(x: NDArray[np.float64], full: float, *, interval: float) -> dict[str, float]:
    """Unfolding times and spread of runs from one configuration, (n, F).

    Arguments:
        x: Extensions.
        full: Mean extension of stretched chains.
        interval: Time between frames.
    """
    times = np.minimum(unfolding_time(x, full, interval=interval), HORIZON)
    variance = x.var(axis=0)
    return {
        "runs": len(x),
        "initial_extension": float(x[0, 0]),
        "shortest": float(times.min()),
        "mode": mode_of(times),
        "longest": float(times.max()),
        "largest_variance": float(variance.max()),
        "time_of_largest_variance": float(interval * variance.argmax()),
        "largest_mean": float(x.mean(axis=0).max()),
    }
