"""Exact simulations as they come: one trajectory to watch, then an ensemble.

A trajectory of a memoryless system is simulated in pieces of a few frames, each from the last
frame of the one before. A piece takes a fraction of a second, so that the page moves at once and
nothing goes on for long after the page has gone. A system with a hidden state, such as the
velocities of particles, has to be simulated in one go.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..seeding import kernel_words
from ..system import System

__all__ = ["LONGEST_S", "Excerpt", "shorten", "simulate_live"]

LONGEST_S = 60.0
"""A trajectory that cannot be cut into pieces and takes longer than this is refused."""

_PIECE_S = 0.1
_MOST_MEMBERS = 16


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Some frames of one trajectory, or some whole trajectories.

    Attributes:
        member: The number of the first trajectory.
        first: The first frame.
        macrostates: Macrostates (n, k, m).
        microstates: Microstates (k, *shape) of the trajectory that is watched; None for others.
        seconds: What the piece took.
    """

    member: int
    first: int
    macrostates: NDArray[np.float64]
    microstates: NDArray[Any] | None
    seconds: float


def shorten(system: System, frames: int) -> System:
    """The same system with fewer frames; the same one where it has no such setting."""
    if "frames" not in type(system).model_fields:
        return system
    return system.model_copy(update={"frames": frames})


def simulate_live(
    system: System, state: NDArray[Any], *, members: int, seed: int
) -> Iterator[Excerpt]:
    """Simulates a trajectory piece by piece with its microstates, then the other members.

    Arguments:
        system: The simulator.
        state: The initial microstate in stored form.
        members: Members of the ensemble, the one that is watched included.
        seed: Governs the trajectories.
    """
    cuts = system.memoryless and shorten(system, 2) is not system
    if not cuts:
        _refuse_endless(system, state)
    pieces = _Pieces(system, seed, size=1 if cuts else system.description.frames - 1)
    done, spent = 0, 0.0
    while done < members:
        if done == 0 or pieces.size < pieces.total:
            spent = 0.0
            for piece in pieces.follow(state, done):
                spent += piece.seconds
                yield piece
            done += 1
            continue
        count = min(members - done, max(1, min(_MOST_MEMBERS, int(_PIECE_S / spent))))
        words = np.stack([kernel_words(seed, "studio", done + k, 0) for k in range(count)])
        started = perf_counter()
        found = system.ensemble(state[None], words[None])[0]
        seconds = perf_counter() - started
        yield Excerpt(done, 0, found, None, seconds)
        spent, done = seconds / count, done + count


class _Pieces:
    """Trajectories in pieces whose length is chosen by what they take.

    Attributes:
        total: Frames of a trajectory after t = 0.
        size: Frames of the next piece; all of a trajectory once that is quick.
    """

    def __init__(self, system: System, seed: int, *, size: int) -> None:
        self.system = system
        self.seed = seed
        self.total = system.description.frames - 1
        self.size = size

    def follow(self, state: NDArray[Any], member: int) -> Iterator[Excerpt]:
        """Simulates a trajectory piece by piece; the first member with its microstates."""
        first = 0
        while first < self.total:
            count = min(self.size, self.total - first)
            system = shorten(self.system, count + 1) if count < self.total else self.system
            words = kernel_words(self.seed, "studio", member, first)[None]
            started = perf_counter()
            found = system.simulate(state[None], words)
            seconds = perf_counter() - started
            # The first frame of a piece is the last of the one before.
            skip = 1 if first else 0
            shown = found.microstates[0, skip:] if member == 0 else None
            yield Excerpt(member, first + skip, found.macrostates[:, skip:], shown, seconds)
            state = found.microstates[0, -1]
            first += count
            if seconds < _PIECE_S / 2:
                self.size = min(2 * self.size, self.total)
            elif seconds > 2 * _PIECE_S and system is not self.system:
                self.size = max(1, self.size // 2)


def _refuse_endless(system: System, state: NDArray[Any]) -> None:
    """Refuses a trajectory in one go that would take too long, by the first of its frames."""
    short, frames = shorten(system, 2), system.description.frames - 1
    if short is system:
        return
    expected = 0.0
    for attempt in range(2):  # the first may have to compile
        started = perf_counter()
        short.simulate(state[None], kernel_words(0, "studio", "probe", attempt)[None])
        expected = (perf_counter() - started) * frames
        if expected < LONGEST_S:
            return
    raise InputError(
        f"a trajectory would take about {expected:.0f} s and cannot be shown before it is "
        f"complete; the studio simulates up to {LONGEST_S:.0f} s"
    )
