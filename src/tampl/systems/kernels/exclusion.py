"""Excluded volume of touching beads: a neighbour list and the push apart, compiled.

Beads have diameter one. Two that overlap at distance r < 1 are each moved (1 - r) / 2 apart along
the line between them, which takes the overlap away at once. Neighbours along the chain are held at
distance one by their rod and left out.

The list holds all pairs within 1 + `SKIN` and is complete until a bead has moved by half the skin.
Since rods have length one, the bead m places further along the chain is at most m nearer, so that
a bead at distance d lets the search leap over floor(d - 1 - skin) beads.

References:
    Heyes and Melrose, J. Non-Newtonian Fluid Mech. 46 (1993) 1.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["SKIN", "list_pairs", "moved_far", "push_apart"]

SKIN = 1.8
"""What the list reaches beyond contact; a step of a coil takes half as long as with 0.8."""

# Rods may be longer than one by their tolerance; leaps and moves are kept short of it.
_MARGIN = 1e-4


@njit(nogil=True, cache=True)
def list_pairs(positions: NDArray[np.float64], pairs: NDArray[np.int32]) -> int:
    """Lists pairs of beads, two or more rods apart along the chain, that are within reach.

    Arguments:
        positions: Beads, (3, B).
        pairs: Receives the pairs, (B (B - 1) / 2, 2), so that none can be left out.

    Returns:
        The number of pairs.
    """
    beads, reach, found = positions.shape[1], 1.0 + SKIN, 0
    for i in range(beads - 2):
        j = i + 2
        while j < beads:
            x = positions[0, j] - positions[0, i]
            y = positions[1, j] - positions[1, i]
            z = positions[2, j] - positions[2, i]
            squared = x * x + y * y + z * z
            if squared < reach * reach:
                pairs[found, 0], pairs[found, 1] = i, j
                found += 1
                j += 1
            else:
                j += 1 + max(0, int(np.sqrt(squared) - reach - _MARGIN))
    return found


@njit(nogil=True, cache=True)
def moved_far(positions: NDArray[np.float64], listed: NDArray[np.float64]) -> bool:
    """Whether a bead, (3, B), has moved so far since it was listed that a pair may be missing."""
    far, limit = 0, (0.5 * SKIN - _MARGIN) ** 2
    for i in range(positions.shape[1]):
        x = positions[0, i] - listed[0, i]
        y = positions[1, i] - listed[1, i]
        z = positions[2, i] - listed[2, i]
        far += x * x + y * y + z * z > limit
    return far > 0


@njit(nogil=True, cache=True)
def push_apart(
    positions: NDArray[np.float64], pairs: NDArray[np.int32], moves: NDArray[np.float64]
) -> None:
    """Adds to the moves of the beads, (3, B), what takes the overlaps of listed pairs away."""
    for pair in range(pairs.shape[0]):
        i, j = pairs[pair]
        x = positions[0, j] - positions[0, i]
        y = positions[1, j] - positions[1, i]
        z = positions[2, j] - positions[2, i]
        squared = x * x + y * y + z * z
        if squared < 1.0:
            push = 0.5 / np.sqrt(squared) - 0.5
            moves[0, i] -= push * x
            moves[1, i] -= push * y
            moves[2, i] -= push * z
            moves[0, j] += push * x
            moves[1, j] += push * y
            moves[2, j] += push * z
