"""Plain vectors."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ..errors import InputError
from .base import Microstate

__all__ = ["Vector"]

_SHORT = 64
"""Vectors of as many components or fewer are compared with known ones component by component."""


class Vector(Microstate):
    """A plain vector of `size` numbers; its input is the vector in standardised units.

    Numbers have units of the user's choice, in which a network might see them as huge or as
    nothing, so that a model standardises each component with the statistics of its training set.
    """

    kind: Literal["vector"] = "vector"
    size: int = Field(gt=0)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @property
    def in_words(self) -> str:
        return f"vectors of {self.size} numbers"

    @property
    def standardised(self) -> bool:
        return True

    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        self._check_shape(stored, self.shape, name)
        if stored.dtype.kind not in "biuf":
            raise InputError(f"{name} holds {stored.dtype}; it must hold real numbers")
        values = np.asarray(stored, dtype=self.dtype)
        if not np.isfinite(values).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise InputError(f"{name} must be finite; it holds {values[place]} at {place}")
        return values

    def summarise(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """The vector itself, or its length and largest component where it is long."""
        if self.size <= _SHORT:
            return stored
        largest = np.abs(stored).max(axis=-1)
        return np.stack([np.linalg.norm(stored, axis=-1), largest], axis=-1)

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        return stored.to(dtype)
