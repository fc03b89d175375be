"""Chains of beads, stored by coordinates and seen as pictures."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ..errors import InputError
from .base import Kind
from .rendering import render

__all__ = ["Chain"]

# Coordinates in single precision leave a mean of some 1e-5; one that was never removed is larger.
_CENTRED = 1e-2


class Chain(Kind):
    """A chain of beads in three dimensions, relative to its centre of mass.

    Stored as (beads, 3) numbers of 32 bits, in units of a bead's diameter. The input is the
    picture of the chain seen along z, (B, 1, height, width), made on the device of the batch by
    `rendering.render`: a store of pictures would be some fourteen times as large.

    Arguments:
        beads: Number of beads.
        height: Pixels of the picture in y, one diameter each.
        width: Pixels in x.
    """

    kind: Literal["chain"] = "chain"
    beads: int = Field(ge=2)
    height: int = Field(gt=0)
    width: int = Field(gt=0)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.beads, 3)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        self._check_shape(stored, self.shape, name)
        if stored.dtype.kind not in "iuf":
            raise InputError(f"{name} holds {stored.dtype}; it must hold coordinates of beads")
        coordinates = np.asarray(stored, dtype=self.dtype)
        if not np.isfinite(coordinates).all():
            raise InputError(f"{name} must be finite; it holds NaN or infinity")
        off = np.abs(coordinates.mean(axis=-2, dtype=np.float64)).max(initial=0.0)
        if off > _CENTRED:
            raise InputError(
                f"{name} has a chain whose centre of mass is off the origin by {off:.3g}: "
                "subtract the mean over its beads"
            )
        return coordinates

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        return render(stored, height=self.height, width=self.width).unsqueeze(1).to(dtype)
