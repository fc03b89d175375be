"""Standardized macrostates: zero mean and unit variance in every feature.

The mean and the (population) standard deviation run over all trajectories and times of the
training split: y = mean + std * (standardized y), feature by feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError

__all__ = ["Normalization"]


@dataclass(frozen=True, eq=False)
class Normalization:
    """Mean and standard deviation of each macroscopic feature, both of shape (m,)."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.mean.ndim != 1 or self.mean.shape != self.std.shape:
            raise InputError(
                f"`mean` and `std` have shapes {self.mean.shape} and {self.std.shape}; "
                "both must be (m,), one number per feature"
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.std).all()):
            raise InputError(f"`mean` {self.mean} and `std` {self.std} must be finite")
        if not (self.std > 0).all():
            raise InputError(f"`std` is {self.std}; every feature needs a nonzero std")

    @classmethod
    def fit(
        cls, macrostates: NDArray[Any], *, names: Sequence[str] | None = None
    ) -> "Normalization":
        """Takes the statistics of the training split.

        Arguments:
            macrostates: Macrostates (..., m).
            names: What an error calls the features; their numbers by default.

        Example:
            >>> Normalization.fit(np.array([[0.0, 1.0], [2.0, 5.0]])).std
            array([1., 2.])
        """
        y = np.asarray(macrostates, dtype=np.float64)
        y = y.reshape(-1, y.shape[-1])
        if not len(y):
            raise InputError("`macrostates` is empty: give the macrostates of the training split")
        _refuse_unusable(y, names or [str(feature) for feature in range(y.shape[1])])
        return cls(y.mean(axis=0), y.std(axis=0))

    def standardize(self, y: ArrayLike) -> NDArray[np.float64]:
        """Macrostates (..., m) to mean 0 and variance 1."""
        return (np.asarray(y) - self.mean) / self.std


def _refuse_unusable(y: NDArray[np.float64], names: Sequence[str]) -> None:
    for name, feature in zip(names, y.T, strict=True):
        if not np.isfinite(feature).all():
            raise InputError(
                f"feature `{name}` of the macrostates holds NaN or infinity: "
                "find out where with `tampl check`"
            )
        # Compared by range, because rounding gives a constant a std that is not exactly zero.
        if feature.min() == feature.max():
            raise InputError(
                f"feature `{name}` of the macrostates is {feature[0]:g} everywhere, and "
                "standardizing needs a nonzero std: leave it out, or use data in which it varies"
            )
