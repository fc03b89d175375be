r"""Two types of particles in six families of spatial patterns.

A family is a smooth level function f on the box with random parameters. Type 1 owns the half of
the box where f is lowest and type 2 the other half, or the other way round with equal odds, so
that equal numbers of both fill the box evenly whatever the pattern. Areas are equal exactly: the
threshold is the median of f over a fine grid, whose cells are the smallest pieces of a region.

Positions c are measured from the centre in units of the box, |c_x|, |c_y| <= 1/2. n is a unit
vector of random direction theta, t is n turned by a right angle, uniform laws are U[a, b].

    half-plane      f = c.n
    centred-slab    f = |c.n|
    four-bands      f = sin(4 pi c.n / w + phi), with w the width of the box along n
    checkerboard    f = sin(pi m c.n + a) sin(pi m c.t + b), with m cells along an edge
    central-disk    f = (c - d).n^2 / q + (c - d).t^2 q
    wavy-interface  f = c.n - h sin(2 pi (k c.t + phi))

Directions are U[0, 2 pi), for the checkerboard U[-1/4, 1/4]. Bands have phi U[-1/2, 1/2]; cells
m = 2, 3 or 4, with a and b U[-1/2, 1/2] plus pi/2 for odd m; disks d_x and d_y U[-0.05, 0.05] and
q U[0.75, 1.33]; waves k = 1, 2 or 3, h U[0.06, 0.15] and phi U[0, 1].
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAMILIES", "GRID", "draw_owner", "place"]

GRID = 256
"""Cells of the grid along an edge. A power of two, so that storing a position, which rounds down
to one of 2^16 levels, never takes it to another cell."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class _Plane:
    """The centres of the grid's cells in axes n and t, turned by `theta`, each (GRID, GRID)."""

    theta: float
    shift: tuple[float, float] = (0.0, 0.0)

    @property
    def axes(self) -> tuple[Values, Values]:
        edge = (np.arange(GRID) + 0.5) / GRID - 0.5
        x, y = np.meshgrid(edge - self.shift[0], edge - self.shift[1], indexing="ij")
        cosine, sine = np.cos(self.theta), np.sin(self.theta)
        return cosine * x + sine * y, cosine * y - sine * x


def _draw_plane(generator: np.random.Generator) -> _Plane:
    return _Plane(generator.uniform(0, 2 * np.pi))


def _half_plane(generator: np.random.Generator) -> Values:
    along, _ = _draw_plane(generator).axes
    return along


def _centred_slab(generator: np.random.Generator) -> Values:
    along, _ = _draw_plane(generator).axes
    return np.abs(along)


def _four_bands(generator: np.random.Generator) -> Values:
    plane = _draw_plane(generator)
    along, _ = plane.axes
    width = abs(np.cos(plane.theta)) + abs(np.sin(plane.theta))
    return np.sin(4 * np.pi * along / width + generator.uniform(-0.5, 0.5))


def _checkerboard(generator: np.random.Generator) -> Values:
    cells = generator.integers(2, 5)
    along, across = _Plane(generator.uniform(-0.25, 0.25)).axes
    # With an odd number of cells the centre of the box lies in the middle of one.
    a, b = generator.uniform(-0.5, 0.5, 2) + np.pi / 2 * (cells % 2)
    return np.sin(np.pi * cells * along + a) * np.sin(np.pi * cells * across + b)


def _central_disk(generator: np.random.Generator) -> Values:
    theta, ratio = generator.uniform(0, 2 * np.pi), generator.uniform(0.75, 1.33)
    dx, dy = generator.uniform(-0.05, 0.05, 2)
    along, across = _Plane(theta, (dx, dy)).axes
    return along**2 / ratio + across**2 * ratio


def _wavy_interface(generator: np.random.Generator) -> Values:
    along, across = _draw_plane(generator).axes
    waves, height = generator.integers(1, 4), generator.uniform(0.06, 0.15)
    return along - height * np.sin(2 * np.pi * (waves * across + generator.random()))


FAMILIES: dict[str, Callable[[np.random.Generator], Values]] = {
    "half-plane": _half_plane,
    "centred-slab": _centred_slab,
    "four-bands": _four_bands,
    "checkerboard": _checkerboard,
    "central-disk": _central_disk,
    "wavy-interface": _wavy_interface,
}


def draw_owner(family: str, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Draws a pattern of a family: which of the types 0 and 1 may be where.

    Arguments:
        family: One of `FAMILIES`.
        generator: Source of the pattern's parameters and of which type has which half.

    Returns:
        The type that owns each cell of a grid over the box, (GRID, GRID), first axis x, second y.
    """
    values = FAMILIES[family](generator)
    swapped = generator.integers(2)
    # Ranks and not values are compared, which splits equal values too; a stable order makes the
    # same cells go the same way everywhere.
    ranks = np.empty(values.size, np.int64)
    ranks[np.argsort(values, axis=None, kind="stable")] = np.arange(values.size)
    return ((ranks >= values.size // 2) ^ swapped).astype(np.uint8).reshape(values.shape)


def place(
    owner: NDArray[np.uint8], types: NDArray[np.integer], generator: np.random.Generator
) -> Values:
    """Places particles at random, uniformly in the region of their type.

    Arguments:
        owner: The type that owns each cell, (GRID, GRID).
        types: Types of the particles, (N,).
        generator: Source of the positions.

    Returns:
        Positions in units of the box, (N, 2); they may overlap.
    """
    positions = np.empty((len(types), 2))
    for kind in np.unique(types):
        mine = types == kind
        own = np.argwhere(owner == kind)
        cells = own[generator.integers(len(own), size=mine.sum())]
        positions[mine] = (cells + generator.random((mine.sum(), 2))) / len(owner)
    return positions
