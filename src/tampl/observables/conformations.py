"""Sizes of chains and molecules: radius of gyration, end-to-end distance, extension.

Points r_1, ..., r_N are the beads of a chain or the atoms of a vector x1, y1, z1, x2, ...
"""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from ..description import Observable
from ..errors import InputError
from ..microstates import Chain, Microstate, Vector
from .base import ObservableMap, Observer
from .points import AXES, describe_length, read_points

__all__ = ["EndToEndDistance", "Extension", "RadiusOfGyration"]


class RadiusOfGyration(ObservableMap):
    """Root mean square distance of the points from their mean; all points weigh the same.

    R_g^2 = (1 / N) sum_i |r_i - mean r|^2.

    Attributes:
        dim: Coordinates of a point; for vectors.
        unit: Unit of lengths.
    """

    name: Literal["radius-of-gyration"] = "radius-of-gyration"
    dim: PositiveInt = 3
    unit: str = ""
    kinds: ClassVar = (Chain, Vector)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or "Rg"
        return (describe_length(kind, "radius of gyration", symbol, self.unit),)

    def begin(self, kind: Microstate) -> Observer:
        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            r = read_points(kind, stored, self.dim)
            return np.sqrt(np.square(r - r.mean(axis=1, keepdims=True)).sum(axis=2).mean(axis=1))

        return observe


class EndToEndDistance(ObservableMap):
    """Distance between two points, by default the first and the last.

    Attributes:
        first: Number of the one point, from 0; negative numbers count from the end.
        last: Number of the other.
        dim: Coordinates of a point; for vectors.
        unit: Unit of lengths.
    """

    name: Literal["end-to-end-distance"] = "end-to-end-distance"
    first: int = 0
    last: int = -1
    dim: PositiveInt = 3
    unit: str = ""
    kinds: ClassVar = (Chain, Vector)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        return (describe_length(kind, "end-to-end distance", self.symbol or "Ree", self.unit),)

    def begin(self, kind: Microstate) -> Observer:
        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            r = read_points(kind, stored, self.dim)
            for key, number in (("first", self.first), ("last", self.last)):
                if not -r.shape[1] <= number < r.shape[1]:
                    raise InputError(
                        f"`{key}` is {number}; there are {r.shape[1]} points, 0 to "
                        f"{r.shape[1] - 1}"
                    )
            return np.linalg.norm(r[:, self.last] - r[:, self.first], axis=1)

        return observe


class Extension(ObservableMap):
    """Largest minus smallest coordinate along an axis.

    Attributes:
        axis: The axis.
        dim: Coordinates of a point; for vectors.
        unit: Unit of lengths.
    """

    name: Literal["extension"] = "extension"
    axis: Literal["x", "y", "z"] = "x"
    dim: PositiveInt = 3
    unit: str = ""
    kinds: ClassVar = (Chain, Vector)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or self.axis.upper()
        return (describe_length(kind, f"extension along {self.axis}", symbol, self.unit),)

    def begin(self, kind: Microstate) -> Observer:
        place = AXES.index(self.axis)

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            r = read_points(kind, stored, self.dim)
            if place >= r.shape[2]:
                raise InputError(f"`axis` is {self.axis!r}; points have {r.shape[2]} coordinates")
            return np.ptp(r[:, :, place], axis=1)

        return observe
