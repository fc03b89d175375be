"""Initial microstates, no two alike in the whole store.

A family of initial patterns may be small (a disk has only so many places on a lattice), and the
same microstate in two splits would be a leak. So a draw that repeats an earlier one is made again,
in the order of splits and indices. The streams are

    (seed, system, split, i, "initial"), then (seed, system, split, i, "initial", 1), ...
"""

import hashlib

from ..errors import InputError
from ..seeding import numpy_generator
from ..systems.base import InitialState, System
from .metadata import Manifest

__all__ = ["draw_initial_states"]

_ATTEMPTS = 1000


def draw_initial_states(system: System, manifest: Manifest) -> dict[str, list[InitialState]]:
    """Draws the initial microstates of every split, the same whoever asks for them."""
    seen: set[bytes] = set()
    states: dict[str, list[InitialState]] = {}
    for split, plan in manifest.splits.items():
        address = (manifest.seed, manifest.description.system, split)
        states[split] = [_draw_new(system, address, i, seen) for i in range(plan.count)]
    return states


def _draw_new(
    system: System, address: tuple[int, str, str], index: int, seen: set[bytes]
) -> InitialState:
    for attempt in range(_ATTEMPTS):
        names = ("initial", attempt) if attempt else ("initial",)
        state = system.initial(numpy_generator(*address, index, *names))
        digest = hashlib.sha256(state.microstate.tobytes()).digest()
        if digest not in seen:
            seen.add(digest)
            return state
    raise InputError(
        f"{_ATTEMPTS} draws gave no new initial microstate after {len(seen)} distinct ones; ask "
        "for fewer, or for a larger system"
    )
