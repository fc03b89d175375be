"""One reference trajectory of microstates, seen at a few times.

A store keeps only the initial microstates of its test cases, so the trajectory is simulated again,
with the random stream (seed, "snapshots", index of the test microstate).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.cases import Case
from ..seeding import kernel_words
from ..system import System

__all__ = ["Snapshots", "take_snapshots"]


@dataclass(frozen=True)
class Snapshots:
    """Microstates (S, *shape) in stored form at some times (S,)."""

    times: NDArray[np.float64]
    microstates: NDArray[Any]


def take_snapshots(
    case: Case, system: System | None, *, count: int = 6, seed: int = 0
) -> Snapshots:
    """Simulates from a case's microstate and keeps frames from the first to the last.

    Arguments:
        case: The test case.
        system: The system; None where it is unknown, which leaves the initial microstate alone.
        count: How many frames, evenly in time.
        seed: Governs the trajectory.
    """
    initial = case.microstate[None]
    if system is None:
        return Snapshots(np.zeros(1), initial)
    words = kernel_words(seed, "snapshots", case.index)[None]
    frames = system.simulate(initial, words).microstates[0]
    kept = np.unique(np.linspace(0, len(frames) - 1, count).round().astype(int))
    return Snapshots(system.description.times[kept], frames[kept])
