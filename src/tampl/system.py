"""What a system is: parameters and random words in, trajectories and observables out.

A system knows physics and units and nothing about learning. It is plain data, its physical
parameters; randomness enters as four 64-bit words per trajectory (`tampl.seeding.kernel_words`),
so that a trajectory has the same bytes whatever runs beside it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .description import Description
from .errors import InputError
from .frozen import Frozen
from .seeding import kernel_words

__all__ = ["Closure", "InitialState", "Simulated", "System", "check_words", "whole_steps"]

Closure = Callable[[NDArray[Any]], NDArray[np.float64]]
"""Initial microstates (n, ...) to a deterministic macroscopic trajectory for each, (n, F, m)."""


# What rounding may do to the ratio of two times, relative to it.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class InitialState:
    """One initial microstate in stored form and the family it was drawn from, e.g. "K=4"."""

    microstate: NDArray[Any]
    label: str


@dataclass(frozen=True)
class Simulated:
    """Trajectories: microstates (n, F, *shape) in stored form and macrostates (n, F, m)."""

    microstates: NDArray[Any]
    macrostates: NDArray[np.float64]


class System(Frozen, ABC):
    """A simulator with its observables. Subclasses are records of physical parameters."""

    @property
    @abstractmethod
    def description(self) -> Description:
        """The system's name, parameters, microstate, observables and frames."""

    @property
    @abstractmethod
    def kernel(self) -> str:
        """Name and version of the code that makes the bytes, e.g. "sirs-numba-1"."""

    @property
    def batch(self) -> int:
        """How many trajectories to run in one call, at least; one fills a core, a GPU wants many.

        Calls may come from several threads at once.
        """
        return 1

    @property
    def memoryless(self) -> bool:
        """Whether a microstate is all that the future depends on.

        A trajectory can then be continued from any of its frames with fresh words, and is as good
        as one that was never interrupted. By default it is not known to be.
        """
        return False

    def on(self, device: str) -> "System":
        """The same system with the kernels of a device: same physics, another `kernel`.

        Arguments:
            device: "cpu", or another device that the system has kernels for, such as "cuda".
        """
        if device != "cpu":
            raise InputError(
                f"`device` is {device!r}; {self.description.system} has kernels for the CPU only: "
                "choose cpu"
            )
        return self

    @abstractmethod
    def initial(self, generator: np.random.Generator) -> InitialState:
        """Draws one initial microstate."""

    def initial_states(
        self, split: str, generators: Sequence[np.random.Generator], *, start: int = 0
    ) -> list[InitialState]:
        """Draws initial microstates of a split, one from each generator, always on the CPU.

        By default each is drawn by `initial`. A system may give a split states of its own, share
        its families out by index, or use all cores.

        Arguments:
            split: Name of the split, such as "train".
            generators: One generator for each microstate.
            start: Index of the first of them in its split.
        """
        return [self.initial(generator) for generator in generators]

    @abstractmethod
    def simulate(self, microstates: NDArray[Any], words: NDArray[np.uint64]) -> Simulated:
        """Runs one trajectory from each microstate (n, *shape) with its words (n, 4)."""

    def simulate_from(self, x0: NDArray[Any], *, members: int = 1, seed: int = 0) -> Simulated:
        """Simulates from one's own initial microstates.

        Arguments:
            x0: One microstate, or several stacked, (n, *shape).
            members: Trajectories from each.
            seed: Governs the trajectories.

        Returns:
            Trajectories (n members, F, ...), those of one microstate one after another.
        """
        kind = self.description.microstate
        states = kind.check(np.asarray(x0), "`x0`").reshape(-1, *kind.shape)
        if members < 1:
            raise InputError(f"`members` is {members}; it must be at least 1")
        words = [
            kernel_words(seed, "simulate_from", state, member)
            for state in range(len(states))
            for member in range(members)
        ]
        return self.simulate(np.repeat(states, members, axis=0), np.stack(words))

    def ensemble(
        self, microstates: NDArray[Any], words: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        """Runs N members from each of n microstates and keeps their macrostates only.

        By default `simulate` runs the members of one microstate at a time. A system may keep its
        microstates out of memory instead.

        Arguments:
            microstates: Initial microstates, (n, *shape).
            words: Random words, (n, N, 4).

        Returns:
            Macrostates (n, N, F, m).
        """
        starts = (np.repeat(x[None], words.shape[1], axis=0) for x in microstates)
        pairs = zip(starts, words, strict=True)
        return np.stack([self.simulate(start, own).macrostates for start, own in pairs])

    @abstractmethod
    def observe(self, microstates: NDArray[Any]) -> NDArray[np.float64]:
        """The prescribed map g: microstates (..., *shape) to macrostates (..., m)."""

    def faults(self, macrostates: NDArray[np.float64]) -> str | None:
        """What is physically wrong with macrostates (..., m), in words; None where nothing is.

        By default they must be finite. A system may know more, such as bounds.
        """
        return None if np.isfinite(macrostates).all() else "an observable is not finite"

    def closures(self) -> Mapping[str, Closure]:
        """The system's textbook closures by name; none by default."""
        return {}


def check_words(words: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """Returns a copy of `words` if their shape is `shape`, where -1 stands for any length."""
    fits = words.ndim == len(shape) and all(
        wanted in (-1, found) for found, wanted in zip(words.shape, shape, strict=True)
    )
    if words.dtype != np.uint64 or not fits:
        raise InputError(
            f"`words` is {words.dtype} of shape {words.shape}; it must be uint64 of shape {shape} "
            "(-1: any length), four words of `seeding.kernel_words` for each trajectory"
        )
    if words.size and not words.any(axis=-1).all():
        raise InputError(
            "`words` has four zeros for a trajectory, from which nothing is random: take words of "
            "`seeding.kernel_words`"
        )
    # A copy has one memory layout, for which a kernel is compiled once.
    return words.copy()


def whole_steps(interval: float, dt: float) -> int:
    """The number of time steps between two frames; refuses one that is not whole.

    Example:
        >>> whole_steps(0.4, 0.002)
        200
    """
    steps = interval / dt
    if round(steps) < 1 or abs(steps - round(steps)) > _ROUNDING * steps:
        raise InputError(
            f"`interval` is {interval} and `dt` is {dt}; the interval must be a multiple of the "
            "time step"
        )
    return round(steps)
