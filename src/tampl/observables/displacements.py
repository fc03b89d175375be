r"""Displacement from the first frame of a trajectory.

In a periodic box displacements are added up from frame to frame, each along the shortest of its
images (the toroidal-view-preserving scheme). That is right as long as no particle moves by half
of the box between two frames.

References:
    von Bulow, Bullerjahn and Hummer, J. Chem. Phys. 153 (2020) 021101; Bullerjahn et al., J. Chem.
    Theory Comput. 19 (2023) 3406.
"""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from ..description import Observable
from ..errors import InputError
from ..microstates import Chain, Microstate, Particles, Vector
from .base import ObservableMap, Observer
from .points import Boxed, describe_length, read_boxed, read_points, refuse_unknown_type

__all__ = ["MeanSquaredDisplacement"]


class MeanSquaredDisplacement(ObservableMap):
    """Mean over points of the squared displacement from the first frame.

    (1 / N) sum_i |r_i(t) - r_i(0)|^2. A row must be the same particle in all frames; those count
    that are there from the first frame to the present one.

    Attributes:
        dim: Coordinates of a point; for vectors.
        type: The type of particles that are followed; by default any.
        unit: Unit of lengths.
    """

    name: Literal["mean-squared-displacement"] = "mean-squared-displacement"
    dim: PositiveInt = 3
    type: PositiveInt | None = None
    unit: str = ""
    kinds: ClassVar = (Chain, Vector, Particles)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or "MSD"
        return (describe_length(kind, "mean squared displacement", symbol, self.unit, 2),)

    def begin(self, kind: Microstate) -> Observer:
        if isinstance(kind, Particles):
            refuse_unknown_type(self.type, kind)
            walk = _Walk(self.type)
            return lambda stored: walk.follow(read_boxed(kind, stored))
        first: list[NDArray[np.float64]] = []

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            r = read_points(kind, stored, self.dim)
            first[:] = first or [r[0]]
            return np.square(r - first[0]).sum(axis=2).mean(axis=1)

        return observe


class _Walk:
    """Particles followed from frame to frame through the faces of a periodic box."""

    def __init__(self, kind: int | None) -> None:
        self._kind = kind
        self._last: NDArray[np.float64] | None = None
        self._moved = np.zeros(0)
        self._there = np.zeros(0, dtype=bool)

    def follow(self, boxed: Boxed) -> NDArray[np.float64]:
        """The mean squared displacement of each frame of the next block, (B,)."""
        chosen = boxed.chosen(self._kind)
        if self._last is None:
            self._last = boxed.positions[0]
            self._moved, self._there = np.zeros_like(self._last), chosen[0]
        if self._last.shape != boxed.positions.shape[1:]:
            raise InputError(
                "`frames` have different numbers of rows, and a displacement is one of the same "
                "particles: fill smaller sets up with rows of zeros"
            )
        steps = np.diff(boxed.positions, axis=0, prepend=self._last[None])
        moved = self._moved + np.cumsum(boxed.nearest_image(steps), axis=0)
        there = self._there & np.logical_and.accumulate(chosen, axis=0)
        if not there.any(axis=1).all():
            raise InputError(
                "no particle is there from the first frame to the last, and a displacement is "
                "one of the same particles: choose another observable"
            )
        self._last, self._moved, self._there = boxed.positions[-1], moved[-1], there[-1]
        squares = np.where(there, np.square(moved).sum(axis=2), 0.0)
        return squares.sum(axis=1) / there.sum(axis=1)
