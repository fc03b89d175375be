r"""Means over training seeds, and differences paired by seed.

    s^2 = 1 / (n - 1) sum_i (v_i - mean v)^2,        d_i = v_i - w_i,
    mean d +- t_{0.975, n-1} s_d / sqrt(n),

the last line being the 95 % interval of Student's t for the mean difference. Two methods that
share a seed start from the same encoder, so pairing takes out what that does to both. An interval
that holds zero is a tie.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import isfinite, sqrt

import numpy as np
from scipy.special import stdtrit

__all__ = ["Difference", "Summary", "Verdict", "paired_difference", "summarize", "summarize_known"]

_UPPER = 0.975  # what leaves 5 % on both sides together


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation of some values; one value has no deviation."""

    mean: float
    std: float | None
    values: tuple[float, ...]


class Verdict(Enum):
    """What a difference of errors says of the first one."""

    BETTER = "better"
    WORSE = "worse"
    TIE = "tie"


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences with its 95 % interval; one pair has no interval."""

    mean: float
    low: float | None
    high: float | None
    values: tuple[float, ...]

    @property
    def verdict(self) -> Verdict | None:
        """What the interval says; None without one. Lower errors are better."""
        if self.low is None or self.high is None or not isfinite(self.mean):
            return None
        if self.low > 0:
            return Verdict.WORSE
        return Verdict.BETTER if self.high < 0 else Verdict.TIE


def summarize(values: Iterable[float]) -> Summary:
    """Mean and sample standard deviation of one value or more.

    Example:
        >>> summarize([1.0, 2.0, 6.0]).mean
        3.0
        >>> summarize([1.0]).std is None
        True
    """
    kept = tuple(float(value) for value in values)
    with np.errstate(invalid="ignore", over="ignore"):  # scores of forecasts that blew up
        std = float(np.std(kept, ddof=1)) if len(kept) > 1 else None
        return Summary(float(np.mean(kept)), std, kept)


def summarize_known(values: Iterable[float | None]) -> Summary | None:
    """The summary of the values that there are; None where there are none."""
    known = [value for value in values if value is not None]
    return summarize(known) if known else None


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Difference | None:
    """The difference ours - theirs over the seeds that both have; None where there are none.

    Arguments:
        ours: Values by seed.
        theirs: Values by seed.
    """
    values = [value - theirs[seed] for seed, value in ours.items() if seed in theirs]
    if not values:
        return None
    found = summarize(values)
    if found.std is None:
        return Difference(found.mean, None, None, found.values)
    half = float(stdtrit(len(values) - 1, _UPPER)) * found.std / sqrt(len(values))
    return Difference(found.mean, found.mean - half, found.mean + half, found.values)
