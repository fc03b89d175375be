r"""Sets of particles in a box with right angles, in fixed point.

Along an axis with walls, a network sees where in the box a particle is, u from 0 to 1, as the
number 2 u - 1. Along a periodic axis it sees cos(2 pi u) and sin(2 pi u), so that the two sides of
a boundary are neighbours and all images of a particle are one. Both are relative to the box: where
its edges change, a particle brings them along as further numbers, from -1 for the smallest edge to
1 for the largest.
"""

from collections.abc import Collection
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from torch import Tensor

from ..errors import InputError
from .base import INK, Microstate, Symmetry, coins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TYPES", "Particles"]

TYPES = ("#1f6aa5", "#eba83a", "#c8322b", "#4d9a6a", "#8b6bb1")
"""Colours of particles by type: blue and amber first, apart in brightness too."""

_LEVELS = 2**16
# Of the mean distance of particles; those of the paper's liquid then nearly touch.
_RADIUS = 0.36
# Turn and elevation from which three dimensions are seen, in radians.
_VIEW = (0.45, 0.35)


class Particles(Microstate):
    """A set of particles of several types in a box with one corner at the origin.

    Stored as (N, dim + 1) numbers of 16 bits. The first columns are positions in fixed point:
    level k stands for (k + 1/2) L / 65536, the middle of its cell, with L the edge of the box. The
    last column is the type, 1 to `types`, and 0 where there is no particle. The input is
    (B, N, features + types): positions (see above), then the type one-hot; where there is no
    particle all is zero, so that the one-hot's sum says who is there.

    A box that changes from frame to frame stands in front of the particles, as a row of type 0:
    level k of an edge stands for its value (k + 1/2) / 65536 of the way from `box` to `box_max`.

    A store holds `count` rows per microstate. Sets have no order and no natural size, so `check`
    and `network_input` take any other number of rows too: a forecast may start from more or fewer
    particles than the model was trained on. Microstates of different sizes share a stack once the
    smaller ones are filled up with rows of zeros.

    Arguments:
        count: Rows of a stored microstate, N.
        dim: Dimensions of space.
        types: Number of types of particles.
        box: Edge of the box, or its edges along each axis.
        periodic: Whether the box continues periodically, for all axes or for each; otherwise it
            has walls.
        box_max: For a box that changes from frame to frame, its largest edges along each axis;
            `box` then are the smallest.
    """

    kind: Literal["particles"] = "particles"
    count: int = Field(gt=0)
    dim: int = Field(default=2, gt=0)
    types: int = Field(gt=0, le=256)
    box: float | tuple[float, ...]
    periodic: bool | tuple[bool, ...] = False
    box_max: float | tuple[float, ...] | None = None

    @model_validator(mode="after")
    def _refuse_bad_edges(self) -> Self:
        for name in ("box", "periodic", "box_max"):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != self.dim:
                raise InputError(
                    f"`{name}` is {value}; give one value, or {self.dim}, one for each axis"
                )
        if not (self._edges > 0).all():
            raise InputError(f"`box` is {self.box}; edges must be positive")
        if not (self._ranges >= 0).all():
            raise InputError(
                f"`box_max` is {self.box_max} and `box` is {self.box}; the largest edges must not "
                "be below the smallest"
            )
        return self

    @model_serializer(mode="wrap")
    def _leave_out_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Stores and models from before there were periodic boxes stay as they are.
        kept = {"periodic": self.periodic is not False, "box_max": self.changes}
        return {key: value for key, value in dump(self).items() if kept.get(key, True)}

    @property
    def changes(self) -> bool:
        """Whether the box changes from frame to frame."""
        return self.box_max is not None

    @property
    def features(self) -> int:
        """Columns of the network input before the types."""
        return self.dim + sum(self.wraps) + self.dim * self.changes

    @property
    def _edges(self) -> NDArray[np.float64]:
        return np.broadcast_to(np.asarray(self.box, dtype=np.float64), self.dim)

    @property
    def _ranges(self) -> NDArray[np.float64]:
        """From the smallest edges to the largest, (dim,)."""
        return np.asarray(self.box if self.box_max is None else self.box_max) - self._edges

    @property
    def wraps(self) -> tuple[bool, ...]:
        """Which axes are periodic."""
        return self.periodic if isinstance(self.periodic, tuple) else (self.periodic,) * self.dim

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.count + self.changes, self.dim + 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint16)

    @property
    def in_words(self) -> str:
        return f"sets of {self.count} particles of {self.types} types in {self.dim} dimensions"

    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        if stored.ndim < 2 or stored.shape[-1] != self.dim + 1:
            raise InputError(
                f"{name} has shape {stored.shape}; a microstate of this system has shape "
                f"{self.shape} or another number of rows, several are stacked along the first axis"
            )
        if stored.dtype != self.dtype:
            stored = _to_levels(stored, name)
        self._check_types(stored[..., -1], name)
        if self.changes and stored[..., 0, -1].any():
            raise InputError(
                f"{name} has a particle in the first row, which is the box and of type 0: make "
                "microstates by `Particles.encode`"
            )
        return stored

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        # Half precision would not hold all levels.
        numbers = stored.to(torch.promote_types(dtype, torch.float32))
        types = torch.arange(1, self.types + 1, dtype=numbers.dtype, device=stored.device)
        scaled = (numbers[..., : self.dim] + 0.5) * (2 / _LEVELS) - 1
        particles = slice(int(self.changes), None)
        one_hot = (numbers[..., particles, self.dim :] == types).to(numbers.dtype)
        there = one_hot.sum(dim=-1, keepdim=True)
        box = scaled[..., :1, :] if self.changes else None
        seen = self.embed(scaled[..., particles, :], box)
        return torch.cat((seen * there, one_hot), dim=-1).to(dtype)

    def embed(self, places: Tensor, box: Tensor | None = None) -> Tensor:
        """What a network sees of places, (..., N, features).

        Arguments:
            places: Places relative to the box, from -1 to 1 along each axis, (..., N, dim).
            box: Edges relative to their range, from -1 to 1, (..., 1, dim), where the box changes;
                by default those in the middle.
        """
        columns = []
        for place, wraps in zip(places.split(1, dim=-1), self.wraps, strict=True):
            angle = torch.pi * (place + 1)
            columns += [angle.cos(), angle.sin()] if wraps else [place]
        if self.changes:
            columns.append(places.new_zeros(()) if box is None else box)
            columns[-1] = columns[-1].expand(places.shape)
        return torch.cat(columns, dim=-1)

    def locate(self, seen: Tensor) -> Tensor:
        """Places relative to the box, from -1 to 1, of what a network sees (..., features)."""
        columns, first = [], 0
        for wraps in self.wraps:
            if wraps:
                cos, sin = seen[..., first : first + 1], seen[..., first + 1 : first + 2]
                columns.append(torch.atan2(-sin, -cos) / torch.pi)
            else:
                columns.append(seen[..., first : first + 1])
            first += 1 + wraps
        return torch.cat(columns, dim=-1)

    def summarise(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """The number of particles of each type, and the box where it changes."""
        types = stored[..., -1]
        numbers = [np.count_nonzero(types == n, axis=-1) for n in range(1, self.types + 1)]
        found = np.stack(numbers, axis=-1).astype(np.float64)
        return np.concatenate([found, self.edges(stored)], axis=-1) if self.changes else found

    @property
    def symmetries(self) -> frozenset[Symmetry]:
        found: set[Symmetry] = {"flip"}
        if any(self.wraps):
            found.add("shift")
        axes = set(zip(self._edges, self._ranges, self.wraps, strict=True))
        if self.dim == 2 and len(axes) == 1:
            found.add("transpose")
        return frozenset(found)

    def transformed(
        self, stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
    ) -> Tensor:
        levels, types = stored.to(torch.int32).tensor_split([self.dim], dim=-1)
        there, draw = types > 0, (len(stored), generator, stored.device)
        if "flip" in symmetries:
            # Level k is at (k + 1/2) box / 65536, so its mirror image is a level again.
            flipped = torch.cat([coins(*draw) for _ in range(self.dim)], dim=1)
            mirrored = there & flipped[:, None, None]
            levels = torch.where(mirrored, _LEVELS - 1 - levels, levels)
        if "shift" in symmetries:
            by = torch.randint(_LEVELS, (len(stored), 1, 1, self.dim), generator=generator)
            wraps = torch.tensor(self.wraps, device=stored.device)
            moved = (levels + by.to(stored.device, torch.int32)) % _LEVELS
            levels = torch.where(there & wraps, moved, levels)
        if "transpose" in symmetries:
            levels = torch.where(coins(*draw)[..., None, None], levels.flip(-1), levels)
        return torch.cat((levels, types), dim=-1).to(stored.dtype)

    def encode(
        self, positions: NDArray[Any], types: NDArray[Any], box: ArrayLike | None = None
    ) -> NDArray[np.uint16]:
        """Brings particles into stored form.

        Arguments:
            positions: Positions, (..., N, dim): in the box, and anywhere along a periodic axis.
            types: Types from 1, or 0 where there is no particle, (..., N) or (N,) for all.
            box: The edges of a box that changes, (..., dim) or (dim,) for all.

        Returns:
            The stored form, (..., N, dim + 1), with one more row where the box changes; each
            position moves by half a level at most.

        Example:
            >>> gas = Particles(count=2, types=2, box=8.0)
            >>> stored = gas.encode(np.array([[0.0, 8.0], [4.0, 1.0]]), np.array([1, 2]))
            >>> stored.tolist()
            [[0, 65535, 1], [32768, 8192, 2]]
        """
        if positions.ndim < 2 or positions.shape[-1] != self.dim:
            raise InputError(
                f"`positions` has shape {positions.shape}; it must be (..., N, {self.dim})"
            )
        self._check_types(types, "`types`")
        edges = self._check_box(box, positions.shape[:-2])[..., None, :]
        edges = np.broadcast_to(edges, positions.shape)
        wraps = np.array(self.wraps)
        # NaN fails all comparisons.
        within = (positions >= 0) & (positions <= edges) | wraps & (np.abs(positions) < np.inf)
        inside = within.all(axis=-1)
        wrong = ~inside & (np.broadcast_to(types, inside.shape) > 0)
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0])
            axis = int(np.argmin(within[place]))
            raise InputError(
                f"`positions` has particle {place[-1]} at {positions[place].tolist()}; "
                f"coordinates must be numbers from 0 to {edges[place][axis]:g}, the edge of the "
                "box"
            )
        stored = np.zeros((*positions.shape[:-1], self.dim + 1), self.dtype)
        levels = np.where(inside[..., None], positions, 0) * (_LEVELS / edges)
        levels = np.where(wraps, levels % _LEVELS, levels)
        stored[..., :-1] = np.minimum(levels, _LEVELS - 1, out=levels)
        stored[..., -1] = types
        if not self.changes:
            return stored
        share = (edges[..., :1, :] - self._edges) / np.where(self._ranges > 0, self._ranges, 1)
        row = np.zeros((*stored.shape[:-2], 1, self.dim + 1), self.dtype)
        row[..., :-1] = np.clip(share * _LEVELS, 0, _LEVELS - 1)
        return np.concatenate([row, stored], axis=-2)

    def _check_box(self, box: ArrayLike | None, heads: tuple[int, ...]) -> NDArray[np.float64]:
        """The edges of the box of every microstate, (..., dim)."""
        if (box is None) == self.changes:
            raise InputError(
                "`box` is missing; give the edges of every frame, since `box_max` is given"
                if box is None
                else "`box` is given; only a kind with `box_max` has a box that changes"
            )
        shape, edges = (*heads, self.dim), self._edges if box is None else np.asarray(box, float)
        if edges.shape not in (shape, shape[-1:]):
            raise InputError(f"`box` has shape {edges.shape}; it must be {shape} or {shape[-1:]}")
        # What rounding may do to an edge that came through a file.
        slack = 1e-6 * self._edges
        low, high = self._edges - slack, self._edges + self._ranges + slack
        outside = ~((edges >= low) & (edges <= high)).all(axis=-1)
        if outside.any():
            raise InputError(
                f"`box` holds {edges[outside][0].tolist()}; edges must be from `box` {self.box} "
                f"to `box_max` {self.box_max}"
            )
        return np.broadcast_to(edges, shape)

    def decode(self, stored: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Positions (..., N, dim) and types (..., N) of microstates in stored form."""
        edges, particles = self.edges(stored), stored[..., int(self.changes) :, :]
        positions = (particles[..., :-1] + 0.5) * (edges[..., None, :] / _LEVELS)
        return positions, particles[..., -1].astype(np.int64)

    def edges(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """The edges of the box, (..., dim), of microstates in stored form."""
        if not self.changes:
            return np.broadcast_to(self._edges, (*stored.shape[:-2], self.dim))
        return self._edges + (stored[..., 0, :-1] + 0.5) * (self._ranges / _LEVELS)

    @classmethod
    def draw(cls, axis: "Axes", stored: NDArray[Any]) -> None:
        _draw(axis, stored, np.ones(stored.shape[-1] - 1))

    def show(self, axis: "Axes", stored: NDArray[Any]) -> None:
        _draw(axis, stored, self.edges(stored))

    def _check_types(self, types: NDArray[Any], name: str) -> None:
        if types.dtype.kind not in "iu":
            raise InputError(f"{name} has types as {types.dtype}; they must be integers")
        if types.size and (types.min() < 0 or types.max() > self.types):
            worst = types.min() if types.min() < 0 else types.max()
            raise InputError(
                f"{name} has a particle of type {worst}; types are 1 to {self.types}, and 0 where "
                "there is no particle"
            )
        if not types.any(axis=-1).all():
            raise InputError(f"{name} has a microstate without particles; it needs one at least")


def _draw(axis: "Axes", stored: NDArray[Any], edges: NDArray[np.float64]) -> None:
    """Draws particles in a box of these edges; what has three dimensions is seen from aside."""
    from matplotlib.collections import EllipseCollection, LineCollection
    from matplotlib.colors import to_rgb

    there, dim = stored[stored[:, -1] > 0], len(edges)
    scale = edges * (_LEVELS / edges.max())
    places, types = (there[:, :-1] + 0.5) * (scale / _LEVELS), there[:, -1].astype(int)
    size = 2 * _RADIUS * (scale.prod() / max(1, len(there))) ** (1 / dim)
    corners = np.array(list(product((0, 1), repeat=dim))) * scale
    flat, frame = _project(places), _project(corners)
    order = np.argsort(-flat[:, 2], kind="stable")
    near, far = frame[:, 2].min(), frame[:, 2].max()
    pale = 0.6 * (flat[:, 2] - near) / (far - near) if far > near else np.zeros(len(flat))
    colors = np.array([to_rgb(TYPES[(kind - 1) % len(TYPES)]) for kind in types]).reshape(-1, 3)
    if dim > 2:
        sides = [pair for pair in combinations(range(len(corners)), 2) if _share_side(*pair)]
        lines = [frame[list(pair), :2] for pair in sides]
        axis.add_collection(LineCollection(lines, colors=INK, linewidths=0.5, alpha=0.6))
    # In units of the axes: circles grow and shrink with the panel.
    circles = EllipseCollection(
        *(size, size, 0.0),
        units="xy",
        offsets=flat[order, :2],
        offset_transform=axis.transData,
        facecolors=(colors + pale[:, None] * (1 - colors))[order],
        edgecolors="none",
    )
    axis.add_collection(circles)
    (left, bottom), (right, top) = frame[:, :2].min(axis=0), frame[:, :2].max(axis=0)
    bottom, top = (bottom, top) if dim > 1 else (-size, size)
    axis.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[], aspect="equal")


def _project(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places (N, dim) on the page, and their depth behind it: (N, 3)."""
    x, y, z = np.pad(places, ((0, 0), (0, 3)))[:, :3].T
    if places.shape[1] < 3:
        return np.stack([x, y, z], axis=-1)
    (turn, slope), (rise, level) = ((np.sin(a), np.cos(a)) for a in _VIEW)
    depth = slope * y + turn * x
    up, behind = level * z + rise * depth, level * depth - rise * z
    return np.stack([slope * x - turn * y, up, behind], axis=-1)


def _share_side(first: int, second: int) -> bool:
    """Whether two corners, numbered by the bits of their coordinates, are ends of one edge."""
    return (first ^ second).bit_count() == 1


def _to_levels(stored: NDArray[Any], name: str) -> NDArray[np.uint16]:
    """Integers of another type in 16 bits, where they fit."""
    # Floats are refused even where they are whole: they may well be positions, not levels.
    if stored.dtype.kind not in "iu":
        raise InputError(
            f"{name} holds {stored.dtype}; levels and types must be integers: make them of "
            "positions and types by `Particles.encode`"
        )
    if stored.size and (stored.min() < 0 or stored.max() >= _LEVELS):
        worst = stored.min() if stored.min() < 0 else stored.max()
        raise InputError(
            f"{name} has a particle outside of the box, at level {worst}; levels are 0 to "
            f"{_LEVELS - 1}"
        )
    return stored.astype(np.uint16)
