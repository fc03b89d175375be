"""Initial microstates, no two alike in the whole store.

A family of initial patterns may be small (a disk has only so many places on a lattice), and the
same microstate in two splits would be a leak. So a draw that repeats an earlier one is made again,
in the order of splits and indices. The streams are

    (seed, system, split, i, "initial"), then (seed, system, split, i, "initial", 1), ...
"""

import hashlib
from collections.abc import Iterator

from ..errors import InputError
from ..progress import bar
from ..seeding import numpy_generator
from ..systems.base import InitialState, System
from .metadata import Manifest

__all__ = ["draw_initial_states"]

_ATTEMPTS = 1000
# Enough for every core of a large machine to have several, few enough for a bar to move.
_TOGETHER = 64

Address = tuple[int, str, str]
"""The seed, the name of the system and the split: where the streams of a split begin."""


def draw_initial_states(
    system: System, manifest: Manifest, *, progress: bool = False
) -> dict[str, list[InitialState]]:
    """Draws the initial microstates of every split, the same whoever asks for them."""
    seen: set[bytes] = set()
    total = sum(plan.count for plan in manifest.splits.values())
    with bar("initial microstates", total, visible=progress) as advance:
        states: dict[str, list[InitialState]] = {split: [] for split in manifest.splits}
        for split, plan in manifest.splits.items():
            address = (manifest.seed, manifest.description.system, split)
            for state in _draw_split(system, address, plan.count, seen):
                states[split].append(state)
                advance(split)
    return states


def _draw_split(
    system: System, address: Address, count: int, seen: set[bytes]
) -> Iterator[InitialState]:
    for start in range(0, count, _TOGETHER):
        indices = range(start, min(start + _TOGETHER, count))
        generators = [numpy_generator(*address, i, "initial") for i in indices]
        drawn = system.initial_states(address[-1], generators, start=start)
        for index, state in zip(indices, drawn, strict=True):
            yield _new(system, address, index, state, seen)


def _new(
    system: System, address: Address, index: int, state: InitialState, seen: set[bytes]
) -> InitialState:
    """The state itself, or the first of further draws that is not in `seen`."""
    for attempt in range(1, _ATTEMPTS + 1):
        digest = hashlib.sha256(state.microstate.tobytes()).digest()
        if digest not in seen:
            seen.add(digest)
            return state
        generator = numpy_generator(*address, index, "initial", attempt)
        [state] = system.initial_states(address[-1], [generator], start=index)
    raise InputError(
        f"{_ATTEMPTS} draws gave no new initial microstate after {len(seen)} distinct ones; ask "
        "for fewer, or for a larger system"
    )
