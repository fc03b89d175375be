r"""What every observable map knows about itself: where it applies, its values and their limits.

A map g takes a microstate x_t to one observable or several, y_t = g(x_t). Most maps look at each
frame by itself. A few, such as a mean squared displacement, also need the frames before, so that a
map is applied to a whole trajectory, block after block of its frames.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from math import prod
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from ..description import Observable
from ..errors import InputError
from ..frozen import Frozen
from ..microstates import KINDS, Microstate

__all__ = ["Interval", "ObservableMap", "Observer"]

Observer = Callable[[NDArray[Any]], NDArray[np.float64]]
"""Takes the frames of one trajectory in stored form, block after block (B, *shape), and gives the
observables of each, (B,) or (B, m)."""

# Numbers of a block of frames: as float64 the 8 MB that fit into a cache.
_BLOCK = 1 << 20


def _read_interval(value: object) -> object:
    """An interval as it is typed, "0..0.5"."""
    if not isinstance(value, str):
        return value
    ends = value.split("..")
    if len(ends) != 2:
        raise InputError(
            f"{value!r} is no range; give two numbers with dots between, such as 0..0.5"
        )
    return ends


Interval = Annotated[tuple[float, float], BeforeValidator(_read_interval)]
"""A range from the first number up to the second; in text `0..0.5`."""


class ObservableMap(Frozen, ABC):
    """A map from microstates to observables; a frozen record of its parameters.

    A subclass has a field `name` with the name it is registered by, and a docstring whose first
    line is the definition that tables show.

    Attributes:
        name: The name it is registered by.
        symbol: Symbol of the observable in place of the usual one; empty for that one.
        kinds: The kinds of microstates that it applies to.
    """

    name: str
    symbol: str = ""
    kinds: ClassVar[tuple[type[Microstate], ...]]

    @abstractmethod
    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        """The observables that it gives, with symbols, units and limits.

        Arguments:
            kind: What the microstates are, one of `kinds`.
        """

    @abstractmethod
    def begin(self, kind: Microstate) -> Observer:
        """Starts on a trajectory: what is returned takes its frames block after block.

        Arguments:
            kind: What the microstates are, one of `kinds`.
        """

    def observe(
        self, frames: NDArray[Any] | Iterable[NDArray[Any]], kind: Microstate
    ) -> NDArray[np.float64]:
        """The observables of one trajectory.

        Arguments:
            frames: Its microstates in stored form, (F, *shape), or blocks of them in order, each
                (B, *shape), so that a long trajectory need not be in memory.
            kind: What the microstates are.

        Returns:
            The observables (F, m), in the order of `describe`.
        """
        self.refuse_other_kind(kind)
        observer, parts, done = self.begin(kind), [], 0
        count = len(self.describe(kind))
        for stored in [frames] if isinstance(frames, np.ndarray) else frames:
            # The kind says how many axes a microstate has; sets of particles may be of any size.
            if stored.ndim != len(kind.shape) + 1:
                raise InputError(
                    f"`frames` has shape {stored.shape}; the frames of one trajectory are "
                    f"(frames, {', '.join(map(str, kind.shape))})"
                )
            checked = kind.check(stored, "`frames`")
            size = max(1, _BLOCK // max(1, prod(checked.shape[1:])))
            for first in range(0, len(checked), size):
                block = checked[first : first + size]
                values = np.asarray(observer(block), dtype=np.float64)
                parts.append(self._check_values(values, (len(block), count), done))
                done += len(block)
        if not parts:
            raise InputError("`frames` is empty; give one frame at least")
        return np.concatenate(parts)

    def refuse_other_kind(self, kind: Microstate) -> None:
        """Refuses microstates of a kind that the map does not apply to."""
        if not isinstance(kind, Microstate):
            raise InputError(
                f"`microstate` is {kind!r}; give a kind with its size, such as "
                "tampl.Vector(size=20)"
            )
        if not isinstance(kind, self.kinds):
            known = [name for name, other in KINDS.items() if issubclass(other, self.kinds)]
            raise InputError(
                f"`{self.name}` applies to {' and '.join(known)}, and the microstates are "
                f"{kind.in_words}: choose another observable"
            )

    def _check_values(
        self, values: NDArray[np.float64], shape: tuple[int, int], done: int
    ) -> NDArray[np.float64]:
        if values.size != shape[0] * shape[1]:
            raise InputError(
                f"`{self.name}` gives values of shape {values.shape} for {shape[0]} frames, and "
                f"describes {shape[1]} observables: its `begin` and `describe` must agree"
            )
        found = values.reshape(shape)
        bad = ~np.isfinite(found).all(axis=1)
        if bad.any():
            raise InputError(
                f"`{self.name}` is {found[bad.argmax()].tolist()} in frame {done + bad.argmax()}; "
                "leave such trajectories out, or choose another observable"
            )
        return found
