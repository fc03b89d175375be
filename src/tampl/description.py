"""What data are of: the kind of microstate, the observables and the times of the frames.

A description travels with data sets, stores and models, so that a model is never applied to data
of another system without notice.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .frozen import Frozen
from .microstates import AnyMicrostate

__all__ = ["Description", "Observable"]


class Observable(Frozen):
    """One macroscopic feature: its name in words, its symbol and its unit."""

    name: str
    symbol: str
    unit: str = ""


class Description(Frozen):
    """What must agree between a data set and a model: the system and how it is observed."""

    system: str
    parameters: dict[str, Any]
    microstate: AnyMicrostate
    observables: tuple[Observable, ...]
    interval: float
    frames: int
    # Empty for our systems, which have no units; without it no store or model of format 1 is read.
    time_unit: str = ""

    @property
    def times(self) -> NDArray[np.float64]:
        """Times of the frames, t = 0 first, shape (F,)."""
        return self.interval * np.arange(self.frames, dtype=np.float64)
