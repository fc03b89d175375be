"""What the paper says of its forecasts in words, as numbers.

*Peaks*: when and how high the mean trajectory of an observable peaks, averaged over the test
microstates; the closures of an epidemic peak earlier and higher than the simulation. *Spread*: the
ensemble's standard deviation over the simulation's, both as root mean squares over microstates and
times after t = 0,

    sqrt( mean_{g,t} Var y_{g,t,j} / mean_{g,t} Var y_ref_{g,t,j} ),

which is one for a forecast that knows how uncertain it is.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .metrics import leave_out_holes

__all__ = ["Peak", "Peaks", "peaks", "plain_peaks", "read_peaks", "spread_ratios"]


@dataclass(frozen=True)
class Peak:
    """Mean time and mean height of an observable's largest value along its trajectory."""

    time: float
    height: float


Peaks = Mapping[str, Mapping[str, Peak]]
"""Peaks by name of the prediction, then by symbol of the observable."""


def peaks(trajectories: NDArray[Any], times: NDArray[np.float64]) -> list[Peak]:
    """Peaks of every observable.

    Arguments:
        trajectories: Mean trajectories (G, F, m), or ensembles (G, N, F, m).
        times: Times of the frames, (F,).
    """
    y = np.asarray(trajectories, dtype=np.float64)
    y = y.mean(axis=1) if y.ndim == 4 else y
    return [
        Peak(float(times[y[..., j].argmax(axis=1)].mean()), float(y[..., j].max(axis=1).mean()))
        for j in range(y.shape[-1])
    ]


def plain_peaks(found: Peaks) -> dict[str, dict[str, Any]]:
    """Peaks as plain data, for JSON."""
    return {name: {j: asdict(peak) for j, peak in own.items()} for name, own in found.items()}


def read_peaks(plain: Mapping[str, Mapping[str, Any]]) -> Peaks:
    """Peaks from what `plain_peaks` made."""
    return {name: {j: Peak(**peak) for j, peak in own.items()} for name, own in plain.items()}


def spread_ratios(predicted: NDArray[Any], reference: NDArray[Any]) -> list[float]:
    """Spread of an ensemble (G, N, F, m) over that of the references, for every observable.

    NaN where the references have none, as those of a conserved quantity. Times at which fewer than
    two references exist are left out.
    """
    future = [np.asarray(y, dtype=np.float64)[:, :, 1:] for y in (predicted, reference)]
    parts = leave_out_holes(*future, least=2)
    ours = sum(part.share * _mean_variance(part.ours) for part in parts)
    truth = sum((part.share * _mean_variance(part.truth) for part in parts), np.zeros(()))
    ratios = np.full_like(truth, np.nan)
    np.divide(ours, truth, out=ratios, where=truth > 0)
    return np.sqrt(ratios).tolist()


def _mean_variance(ensemble: NDArray[np.float64]) -> NDArray[np.float64]:
    return ensemble.var(axis=1, ddof=1).mean(axis=(0, 1))
