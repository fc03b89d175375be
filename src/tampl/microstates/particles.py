"""Sets of particles in a box, in fixed point."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ..errors import InputError
from .base import Microstate, Symmetry, coins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TYPES", "Particles"]

TYPES = ("#1f6aa5", "#eba83a", "#c8322b", "#4d9a6a", "#8b6bb1")
"""Colours of particles by type: blue and amber first, apart in brightness too."""

_LEVELS = 2**16
# Of the mean distance of particles; those of the paper's liquid then nearly touch.
_RADIUS = 0.36


class Particles(Microstate):
    """A set of particles of several types in a box [0, box]^dim.

    Stored as (N, dim + 1) numbers of 16 bits. The first columns are positions in fixed point:
    level k stands for (k + 1/2) box / 65536, the middle of its cell. The last column is the type,
    1 to `types`, and 0 where there is no particle. The input is (B, N, dim + types): positions
    scaled to [-1, 1], then the type one-hot; where there is no particle all is zero, so that the
    one-hot's sum says who is there.

    A store holds `count` rows per microstate. Sets have no order and no natural size, so `check`
    and `network_input` take any other number of rows too: a forecast may start from more or fewer
    particles than the model was trained on. Microstates of different sizes share a stack once the
    smaller ones are filled up with rows of zeros.

    Arguments:
        count: Rows of a stored microstate, N.
        dim: Dimensions of space.
        types: Number of types of particles.
        box: Edge of the box.
    """

    kind: Literal["particles"] = "particles"
    count: int = Field(gt=0)
    dim: int = Field(default=2, gt=0)
    types: int = Field(gt=0, le=256)
    box: float = Field(gt=0)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.count, self.dim + 1)

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
        return stored

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        # Half precision would not hold all levels.
        numbers = stored.to(torch.promote_types(dtype, torch.float32))
        types = torch.arange(1, self.types + 1, dtype=numbers.dtype, device=stored.device)
        one_hot = (numbers[..., self.dim :] == types).to(numbers.dtype)
        scaled = (numbers[..., : self.dim] + 0.5) * (2 / _LEVELS) - 1
        there = one_hot.sum(dim=-1, keepdim=True)
        return torch.cat((scaled * there, one_hot), dim=-1).to(dtype)

    def summarise(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """The number of particles of each type."""
        types = stored[..., -1]
        numbers = [np.count_nonzero(types == n, axis=-1) for n in range(1, self.types + 1)]
        return np.stack(numbers, axis=-1).astype(np.float64)

    @property
    def symmetries(self) -> frozenset[Symmetry]:
        plane: frozenset[Symmetry] = frozenset({"flip", "transpose"})
        return plane if self.dim == 2 else plane - {"transpose"}

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
        if "transpose" in symmetries:
            levels = torch.where(coins(*draw)[..., None, None], levels.flip(-1), levels)
        return torch.cat((levels, types), dim=-1).to(stored.dtype)

    def encode(self, positions: NDArray[Any], types: NDArray[Any]) -> NDArray[np.uint16]:
        """Brings particles into stored form.

        Arguments:
            positions: Positions in the box, (..., N, dim).
            types: Types from 1, or 0 where there is no particle, (..., N) or (N,) for all.

        Returns:
            The stored form, (..., N, dim + 1); each position moves by half a level at most.

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
        # NaN fails both comparisons.
        inside = ((positions >= 0) & (positions <= self.box)).all(axis=-1)
        if not inside.all():
            place = tuple(np.argwhere(~inside)[0])
            raise InputError(
                f"`positions` has particle {place[-1]} at {positions[place].tolist()}; "
                f"coordinates must be numbers from 0 to {self.box:g}, the edge of the box"
            )
        stored = np.empty((*positions.shape[:-1], self.dim + 1), self.dtype)
        levels = positions * (_LEVELS / self.box)
        stored[..., :-1] = np.minimum(levels, _LEVELS - 1, out=levels)
        stored[..., -1] = types
        return stored

    def decode(self, stored: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Positions (..., N, dim) and types (..., N) of microstates in stored form."""
        positions = (stored[..., :-1] + 0.5) * (self.box / _LEVELS)
        return positions, stored[..., -1].astype(np.int64)

    @classmethod
    def draw(cls, axis: "Axes", stored: NDArray[Any]) -> None:
        from matplotlib.collections import EllipseCollection

        there = stored[stored[:, -1] > 0]
        x, y, types = there[:, 0] + 0.5, there[:, 1] + 0.5, there[:, -1].astype(int)
        size = 2 * _RADIUS * _LEVELS / np.sqrt(max(1, len(there)))
        # In units of the axes: circles grow and shrink with the panel.
        circles = EllipseCollection(
            *(size, size, 0.0),
            units="xy",
            offsets=np.column_stack([x, y]),
            offset_transform=axis.transData,
            facecolors=[TYPES[(kind - 1) % len(TYPES)] for kind in types],
            edgecolors="none",
        )
        axis.add_collection(circles)
        axis.set(xlim=(0, _LEVELS), ylim=(0, _LEVELS), xticks=[], yticks=[], aspect="equal")

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
