"""Microstates on a grid: lattices of categorical sites, and gray pictures."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ..errors import InputError
from .base import Microstate, Symmetry, move_sites

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["STATES", "Image", "Lattice"]

STATES = ("#e4e4e2", "#c8322b", "#3f7fb5", "#e0a526", "#4d9a6a", "#8b6bb1")
"""Colours of sites by state: light gray, red, blue and further ones, told apart by all eyes."""


class Lattice(Microstate):
    """A lattice of categorical sites: (H, W) bytes below `states`; input (B, states, H, W)."""

    kind: Literal["lattice"] = "lattice"
    height: int = Field(gt=0)
    width: int = Field(gt=0)
    states: int = Field(gt=1, le=256)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.height, self.width)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8)

    @property
    def in_words(self) -> str:
        return f"lattices of {self.height} x {self.width} sites in {self.states} states"

    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        self._check_shape(stored, self.shape, name)
        kind = stored.dtype.kind
        if kind not in "biuf" or (kind == "f" and not np.array_equal(stored, np.trunc(stored))):
            raise InputError(f"{name} must hold whole numbers, one per site")
        # Compared before the cast, which would wrap numbers that no byte holds.
        if stored.size and (stored.min() < 0 or stored.max() >= self.states):
            worst = stored.min() if stored.min() < 0 else stored.max()
            raise InputError(
                f"{name} has a site in state {worst}; states are 0 to {self.states - 1}"
            )
        return stored.astype(np.uint8)

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        # Comparing bytes makes the channels without the int64 detour of torch's one_hot, in one
        # pass and channels last in memory, as a GPU's convolutions read them.
        states = torch.arange(self.states, dtype=torch.uint8, device=stored.device)
        one_hot = torch.empty((*stored.shape, self.states), dtype=dtype, device=stored.device)
        return torch.eq(stored.unsqueeze(-1), states, out=one_hot).movedim(-1, -3)

    def summarise(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """For each state, the fraction of sites and of neighbouring pairs in it, and its presence.

        A state that has died out may never come back, which a small fraction does not tell.
        """
        found = []
        for state in range(self.states):
            here = stored == state
            pairs = [(here & np.roll(here, 1, axis)).mean(axis=(-2, -1)) for axis in (-2, -1)]
            found += [here.mean(axis=(-2, -1)), *pairs, here.any(axis=(-2, -1))]
        return np.stack(found, axis=-1)

    @property
    def symmetries(self) -> frozenset[Symmetry]:
        square: frozenset[Symmetry] = frozenset({"shift", "flip", "transpose"})
        return square if self.height == self.width else square - {"transpose"}

    def transformed(
        self, stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
    ) -> Tensor:
        return move_sites(stored, symmetries, generator)

    @classmethod
    def draw(cls, axis: "Axes", stored: NDArray[Any]) -> None:
        from matplotlib.colors import BoundaryNorm, ListedColormap

        norm = BoundaryNorm(np.arange(len(STATES) + 1) - 0.5, len(STATES))
        # Neighbouring sites must not be blended: half infected is no state.
        sites = stored % len(STATES)
        axis.imshow(sites, cmap=ListedColormap(STATES), norm=norm, interpolation="none")
        axis.set(xticks=[], yticks=[])


class Image(Microstate):
    """A gray picture: (height, width) bytes, 0 for black; input (B, 1, height, width) to 1."""

    kind: Literal["image"] = "image"
    height: int = Field(gt=0)
    width: int = Field(gt=0)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.height, self.width)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8)

    @property
    def in_words(self) -> str:
        return f"gray pictures of {self.height} x {self.width} pixels"

    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        self._check_shape(stored, self.shape, name)
        if stored.dtype.kind == "f":
            # Intensities in [0, 1] cast to bytes would be black.
            raise InputError(
                f"{name} holds {stored.dtype}; a picture has a byte per pixel: give "
                "round(255 I) as uint8"
            )
        if stored.dtype.kind not in "iu":
            raise InputError(f"{name} holds {stored.dtype}; a picture has a byte per pixel")
        if stored.size and (stored.min() < 0 or stored.max() > 255):
            worst = stored.min() if stored.min() < 0 else stored.max()
            raise InputError(f"{name} has a pixel of {worst}; pixels are 0 to 255")
        return stored.astype(np.uint8)

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        return stored.unsqueeze(1).to(dtype) / 255

    def summarise(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """Mean and standard deviation of the pixels, and of their differences along each axis."""
        pixels = stored.astype(np.float64)
        slopes = [np.abs(np.diff(pixels, axis=axis)).mean(axis=(-2, -1)) for axis in (-2, -1)]
        return np.stack([pixels.mean(axis=(-2, -1)), pixels.std(axis=(-2, -1)), *slopes], axis=-1)

    @property
    def symmetries(self) -> frozenset[Symmetry]:
        square: frozenset[Symmetry] = frozenset({"flip", "transpose"})
        return square if self.height == self.width else square - {"transpose"}

    def transformed(
        self, stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
    ) -> Tensor:
        return move_sites(stored, symmetries, generator)

    @classmethod
    def draw(cls, axis: "Axes", stored: NDArray[Any]) -> None:
        axis.imshow(stored, cmap="gray", vmin=0, vmax=255, interpolation="none")
        axis.set(xticks=[], yticks=[])
