"""What every kind of microstate knows about itself."""

from collections.abc import Collection
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError
from ..records import Record
from .symmetries import Symmetry

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

    @property
    def symmetries(self) -> frozenset[Symmetry]:
        """The symmetries that can be asked of `transformed`."""
        ...

    def transformed(
        self, stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
    ) -> Tensor:
        """Trajectories in stored form, (n, F, *shape), each moved by a random symmetry.

        Arguments:
            stored: The trajectories; all frames of one are moved alike.
            symmetries: What the motions are made of, some of `self.symmetries`.
            generator: Of the random motions, on the CPU.
        """
        ...


class Kind(Record):
    """The base of all kinds: a record whose shape can be checked."""

    def _check_shape(self, stored: NDArray[Any], shape: tuple[int, ...], name: str) -> None:
        if stored.shape[-len(shape) :] != shape:
            raise InputError(
                f"{name} has shape {stored.shape}; a microstate of this system has shape {shape}, "
                "several are stacked along the first axis"
            )
