"""Which particles of a square box are near each other: cells in, a half list of pairs out.

The box [0, L]^2 is cut into square cells no narrower than the reach, so that all particles within
reach of one are in its own cell or the eight around it. To list a pair once, a particle looks only
at those after it in its own cell and at all in four cells: to the right and the three above.

A list with a reach of cutoff + skin holds every pair within the cutoff for as long as no particle
has moved by more than half the skin (Verlet 1967).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["SKIN", "PairList", "empty_list", "list_pairs"]

SKIN = 0.3
"""How much further than the cutoff a list reaches: 0.3, the usual value in these units."""


class PairList(NamedTuple):
    """A half list: the partners of particle i are `partners[first[i] : first[i + 1]]`.

    There is room for all pairs, so a list cannot overflow; memory that is never touched costs
    nothing. `origin` holds the positions at which the list was made, (N, 2); `head` and `after`
    are the first particle of each cell and the next one in the cell of each particle, or -1.
    """

    first: NDArray[np.int64]
    partners: NDArray[np.uint32]
    origin: NDArray[np.float64]
    head: NDArray[np.int32]
    after: NDArray[np.int32]


@njit(nogil=True, cache=True)
def empty_list(n: int, box: float, reach: float) -> PairList:
    """Room for the pairs among `n` particles within `reach` of each other."""
    width = max(1, int(box / reach))
    return PairList(
        np.zeros(n + 1, np.int64),
        np.empty(max(1, n * (n - 1) // 2), np.uint32),
        np.empty((n, 2)),
        np.empty(width * width, np.int32),
        np.empty(n, np.int32),
    )


@njit(nogil=True, cache=True)
def _fill_cells(positions: NDArray[np.float64], box: float, near: PairList) -> bool:
    """Chains the particles of each cell; False if one of them is not inside the box."""
    width = round(np.sqrt(near.head.size))
    near.head[:] = -1
    for i in range(positions.shape[0] - 1, -1, -1):
        # Unpacking the row instead would take a third of the speed of these loops.
        x, y = positions[i, 0], positions[i, 1]
        # Written so that NaN, for which every comparison is false, is refused too.
        if not (0.0 <= x <= box and 0.0 <= y <= box):
            return False
        column = min(int(x * width / box), width - 1)
        row = min(int(y * width / box), width - 1)
        near.after[i] = near.head[row * width + column]
        near.head[row * width + column] = i
    return True


@njit(nogil=True, cache=True)
def list_pairs(positions: NDArray[np.float64], box: float, reach: float, near: PairList) -> bool:
    """Lists all pairs within `reach`; False, and no list, if a particle is not inside the box.

    Arguments:
        positions: Particles, (N, 2).
        box: Edge of the box.
        reach: Largest distance to list.
        near: Receives the list; made by `empty_list` with the same `box` and `reach`.
    """
    if not _fill_cells(positions, box, near):
        return False
    width = round(np.sqrt(near.head.size))
    n_pairs = 0
    for i in range(positions.shape[0]):
        near.first[i] = n_pairs
        x, y = positions[i, 0], positions[i, 1]
        column = min(int(x * width / box), width - 1)
        row = min(int(y * width / box), width - 1)
        for later in range(5):
            if later == 0:
                j = near.after[i]
            else:
                to_row = row + (later > 1)
                to_column = column + (1 if later == 1 else later - 3)
                if to_row == width or to_column == width or to_column < 0:
                    continue
                j = near.head[to_row * width + to_column]
            while j >= 0:
                dx, dy = x - positions[j, 0], y - positions[j, 1]
                near.partners[n_pairs] = j
                n_pairs += dx * dx + dy * dy < reach * reach
                j = near.after[j]
    near.first[positions.shape[0]] = n_pairs
    near.origin[:] = positions
    return True
