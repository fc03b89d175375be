"""What every kind of microstate knows about itself."""

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError
from ..records import Record

__all__ = ["Kind", "Microstate"]


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


class Kind(Record):
    """The base of all kinds: a record whose shape can be checked."""

    def _check_shape(self, stored: NDArray[Any], shape: tuple[int, ...], name: str) -> None:
        if stored.shape[-len(shape) :] != shape:
            raise InputError(
                f"{name} has shape {stored.shape}; a microstate of this system has shape {shape}, "
                "several are stacked along the first axis"
            )
