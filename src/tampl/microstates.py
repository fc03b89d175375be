"""Kinds of microstates: how one is stored, checked and shown to a network.

A microstate x_t is kept in its *stored form* (a lattice as one byte per site), on disk and on the
training device alike, and becomes the *network input* (one-hot channels) one batch at a time.
"""

from typing import Annotated, Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from .errors import InputError
from .records import Record

__all__ = ["AnyMicrostate", "Lattice", "Microstate", "Vector"]


class Microstate(Protocol):
    """What every kind of microstate knows about itself."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one microstate in stored form."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored form."""
        ...

    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        """Returns `stored` of shape (..., *shape) in the stored type, or raises `InputError`.

        Arguments:
            stored: Microstates in stored form, with any leading axes.
            name: What the message calls them, e.g. the file they came from.
        """
        ...

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        """Turns a batch in stored form (B, *shape) into what the encoder takes."""
        ...


class _Kind(Record):
    def _check_shape(self, stored: NDArray[Any], shape: tuple[int, ...], name: str) -> None:
        if stored.shape[-len(shape) :] != shape:
            raise InputError(
                f"{name} has shape {stored.shape}; a microstate of this system has shape {shape}, "
                "several are stacked along the first axis"
            )


class Lattice(_Kind):
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
        # Comparing bytes makes the channels without the int64 detour of torch's one_hot.
        states = torch.arange(self.states, dtype=torch.uint8, device=stored.device)
        # Channels last in memory, as a GPU's convolutions read them.
        return (stored.unsqueeze(-1) == states).to(dtype).movedim(-1, -3)


class Vector(_Kind):
    """A plain vector of `size` numbers; its input is the vector itself."""

    kind: Literal["vector"] = "vector"
    size: int = Field(gt=0)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        self._check_shape(stored, self.shape, name)
        if stored.dtype.kind not in "biuf":
            raise InputError(f"{name} holds {stored.dtype}; it must hold real numbers")
        values = np.asarray(stored, dtype=self.dtype)
        if not np.isfinite(values).all():
            raise InputError(f"{name} must be finite; it holds NaN or infinity")
        return values

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        return stored.to(dtype)


AnyMicrostate = Annotated[Lattice | Vector, Field(discriminator="kind")]
