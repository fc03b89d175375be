"""Excluded volume of touching beads, on a GPU: a thread lists the neighbours of its bead.

The pushes are those of `kernels.exclusion`. The list is in shared memory and keeps at most
`CAPACITY` neighbours of a bead. One that has more is compared with all others until the next
listing, which is slower and as exact.
"""

import math

import numpy as np
from numpy import uint32, uint64
from numpy.typing import NDArray

from .jit import device

__all__ = ["CAPACITY", "FAR", "list_neighbours", "push_bead"]

CAPACITY = 24
"""Neighbours kept of a bead."""

_SKIN = 0.8
# Positions in single precision and rods within their tolerance are off by less than this.
_MARGIN = 1e-3
FAR = np.float32((_SKIN / 2 - _MARGIN) ** 2)
"""Squared distance from where it was listed beyond which a bead asks for a new list."""

_REACH, _SHORT = np.float32(1 + _SKIN), np.float32(1 + _SKIN + _MARGIN)
# Keeps the push finite where two beads coincide.
_TINY = np.float32(1e-12)
_ZERO, _HALF, _ONE = (np.float32(c) for c in (0, 0.5, 1))
_U0, _U1, _KEPT = np.uint64(0), np.uint64(1), np.uint64(CAPACITY)


@device
def list_neighbours(
    t: np.uint64,
    beads: np.uint64,
    x: np.float32,
    y: np.float32,
    z: np.float32,
    places: NDArray[np.float32],
    neighbours: NDArray[np.uint16],
) -> np.uint64:
    """Lists the beads within reach of this thread's.

    Arguments:
        t: This thread's number and its bead's, uint64.
        beads: Number B of beads, uint64.
        x: Its position.
        y: Its position.
        z: Its position.
        places: Positions of all beads, (3, T).
        neighbours: Receives the neighbours of bead t in column t, (CAPACITY, T).

    Returns:
        The number of neighbours, more than `CAPACITY` where not all could be kept.
    """
    j, found = _U0, _U0
    while j < beads:
        dx, dy, dz = x - places[0, j], y - places[1, j], z - places[2, j]
        squared = dx * dx + dy * dy + dz * dz
        if squared < _REACH * _REACH:
            if j > t + _U1 or j + _U1 < t:
                if found < _KEPT:
                    neighbours[found, t] = j
                found += _U1
            j += _U1
        else:
            # The bead m places further along is at most m nearer.
            j += _U1 + uint64(uint32(max(_ZERO, math.sqrt(squared) - _SHORT)))
    return found


@device
def push_bead(
    t: np.uint64,
    beads: np.uint64,
    x: np.float32,
    y: np.float32,
    z: np.float32,
    places: NDArray[np.float32],
    neighbours: NDArray[np.uint16],
    found: np.uint64,
) -> tuple[np.float32, np.float32, np.float32]:
    """The move of this thread's bead by those it overlaps with, `found` of them being listed."""
    px, py, pz, slot = _ZERO, _ZERO, _ZERO, _U0
    listed = found <= _KEPT
    while slot < (found if listed else beads):
        j = uint64(neighbours[slot, t]) if listed else slot
        dx, dy, dz = x - places[0, j], y - places[1, j], z - places[2, j]
        squared = dx * dx + dy * dy + dz * dz
        if squared < _ONE and (listed or j > t + _U1 or j + _U1 < t):
            push = _HALF / math.sqrt(max(squared, _TINY)) - _HALF
            px, py, pz = px + push * dx, py + push * dy, pz + push * dz
        slot += _U1
    return px, py, pz
