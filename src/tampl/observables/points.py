"""Microstates as points in space: beads of a chain, atoms in a vector, particles in a box."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..description import Observable
from ..errors import InputError
from ..microstates import Chain, Microstate, Particles, Vector

__all__ = [
    "AXES",
    "Boxed",
    "describe_length",
    "read_boxed",
    "read_points",
    "refuse_unknown_type",
]

AXES = "xyz"


@dataclass(frozen=True)
class Boxed:
    """Particles in their boxes.

    Attributes:
        positions: From 0 to the edge, (F, N, dim).
        types: From 1; 0 where there is no particle, (F, N).
        box: Edges, (F, dim).
        periodic: Which axes are periodic, (dim,).
    """

    positions: NDArray[np.float64]
    types: NDArray[np.int64]
    box: NDArray[np.float64]
    periodic: NDArray[np.bool_]

    def chosen(self, kind: int | None) -> NDArray[np.bool_]:
        """Which rows are particles of a type, or of any type for None, (F, N)."""
        return self.types > 0 if kind is None else self.types == kind

    def nearest_image(self, apart: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shortest of the periodic images of differences, (F, N, dim)."""
        edges = np.where(self.periodic, self.box, np.inf)[:, None]
        with np.errstate(invalid="ignore"):
            return np.where(self.periodic, apart - edges * np.round(apart / edges), apart)


def read_boxed(kind: Particles, stored: NDArray[Any]) -> Boxed:
    """Particles in stored form (F, *shape) as points in boxes."""
    positions, types = kind.decode(stored)
    periodic = np.broadcast_to(np.asarray(kind.periodic), kind.dim)
    return Boxed(positions, types, kind.edges(stored), periodic)


def read_points(kind: Microstate, stored: NDArray[Any], dim: int) -> NDArray[np.float64]:
    """Ordered points, (F, N, dim): the beads of chains, or vectors cut into points.

    Arguments:
        kind: A chain, or a vector that holds x1, y1, z1, x2, ... for `dim` = 3.
        stored: Microstates in stored form, (F, *shape).
        dim: Coordinates of each point of a vector.
    """
    if isinstance(kind, Vector):
        if kind.size % dim:
            raise InputError(
                f"`dim` is {dim}, and vectors of {kind.size} numbers are no sequence of points of "
                f"{dim} coordinates: give another `dim`, as in NAME:dim=2"
            )
        return stored.reshape(len(stored), -1, dim).astype(np.float64)
    return stored.astype(np.float64)


def describe_length(
    kind: Microstate, name: str, symbol: str, unit: str, power: int = 1
) -> Observable:
    """An observable that is a length, or a power of one, and not negative."""
    unit = unit or ("rods" if isinstance(kind, Chain) else "")
    mark = {1: "", 2: "²", 3: "³"}[power]
    return Observable(name=name, symbol=symbol, unit=f"{unit}{mark}" if unit else "", lower=0)


def refuse_unknown_type(type_: int | None, kind: Particles) -> None:
    """Refuses a type that no particle has."""
    if type_ is not None and type_ > kind.types:
        raise InputError(f"`type` is {type_}; types of the particles are 1 to {kind.types}")
