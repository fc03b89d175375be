"""Self-avoiding coils at equilibrium, by the pivot algorithm, compiled.

A coil is a chain of touching beads of diameter one, no two of which overlap, drawn from the
equilibrium of `rods` without flow, the random walk's measure times sqrt(det G). A pivot turns the
part of the chain behind a random bead by a uniformly random rotation. It is accepted with
probability min(1, sqrt(det G' / det G)) unless beads overlap.

G is tridiagonal with G_kk = 2 and G_k,k+1 = -c_k, the cosine between neighbouring rods, so that
det G is the product of D_1 = 2, D_k+1 = 2 - c_k^2 / D_k. A move changes one cosine, and
what it does to the D_k fades within some twenty of them.

References:
    Madras and Sokal, J. Stat. Phys. 50 (1988) 109; Shoemake, Graphics Gems III (1992) 124, for
    random rotations.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .random import draw_integer, draw_uniform

__all__ = ["ATTEMPTS", "sample_coils"]

ATTEMPTS = 20
"""Pivots tried for each bead, from a straight chain."""

_FADED = 1e-12


@njit(nogil=True, cache=True)
def _draw_rotation(state: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Draws a uniformly random rotation matrix, (3, 3), from a random unit quaternion."""
    split = draw_uniform(state)
    first, second = 2.0 * np.pi * draw_uniform(state), 2.0 * np.pi * draw_uniform(state)
    x, y = np.sqrt(1.0 - split) * np.sin(first), np.sqrt(1.0 - split) * np.cos(first)
    z, w = np.sqrt(split) * np.sin(second), np.sqrt(split) * np.cos(second)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@njit(nogil=True, cache=True)
def _turn(
    beads: NDArray[np.float64],
    pivot: int,
    rotation: NDArray[np.float64],
    turned: NDArray[np.float64],
) -> None:
    """Writes the beads behind the pivot, (B, 3), turned about it."""
    for i in range(pivot + 1, beads.shape[0]):
        for a in range(3):
            turned[i, a] = beads[pivot, a]
            for b in range(3):
                turned[i, a] += rotation[a, b] * (beads[i, b] - beads[pivot, b])


@njit(nogil=True, cache=True)
def _overlap(beads: NDArray[np.float64], pivot: int, turned: NDArray[np.float64]) -> bool:
    """Whether a bead before the pivot overlaps with a turned one behind it."""
    for i in range(pivot - 1, -1, -1):
        j = pivot + 1
        while j < beads.shape[0]:
            squared = 0.0
            for a in range(3):
                squared += (turned[j, a] - beads[i, a]) ** 2
            if squared < 1.0:
                return True
            # The bead m places further along is at most m nearer.
            j += int(np.sqrt(squared))
    return False


@njit(nogil=True, cache=True)
def _weigh(
    cosines: NDArray[np.float64], minors: NDArray[np.float64], changed: int, cosine: float
) -> float:
    """The factor by which det G changes with one of the cosines, (R - 1,)."""
    ratio, minor = 1.0, minors[changed]
    for k in range(changed, cosines.size):
        minor = 2.0 - (cosine if k == changed else cosines[k]) ** 2 / minor
        ratio *= minor / minors[k + 1]
        if abs(minor - minors[k + 1]) < _FADED:
            break
    return ratio


@njit(nogil=True, cache=True)
def _try_pivot(
    beads: NDArray[np.float64],
    state: NDArray[np.uint64],
    turned: NDArray[np.float64],
    cosines: NDArray[np.float64],
    minors: NDArray[np.float64],
) -> bool:
    """Tries one pivot of a chain, (B, 3), and returns whether it was accepted."""
    pivot = int(1 + draw_integer(state, beads.shape[0] - 2))
    _turn(beads, pivot, _draw_rotation(state), turned)
    cosine = 0.0
    for a in range(3):
        cosine += (beads[pivot, a] - beads[pivot - 1, a]) * (
            turned[pivot + 1, a] - beads[pivot, a]
        )
    if draw_uniform(state) ** 2 > _weigh(cosines, minors, pivot - 1, cosine):
        return False
    if _overlap(beads, pivot, turned):
        return False
    beads[pivot + 1 :] = turned[pivot + 1 :]
    cosines[pivot - 1] = cosine
    for k in range(pivot - 1, cosines.size):
        minors[k + 1] = 2.0 - cosines[k] ** 2 / minors[k]
    return True


@njit(nogil=True, cache=True)
def sample_coils(words: NDArray[np.uint64], beads: int) -> NDArray[np.float64]:
    """Draws self-avoiding coils, `ATTEMPTS` pivots per bead from a straight chain each.

    Arguments:
        words: What starts each coil's generator, (n, 4), no four of them all zero.
        beads: Number of beads of a coil, B, at least 2.

    Returns:
        The rods of the coils, of length one within 1e-12, (n, B - 1, 3).
    """
    rods = np.empty((words.shape[0], beads - 1, 3))
    chain, turned, state = np.empty((beads, 3)), np.empty((beads, 3)), np.empty(4, np.uint64)
    cosines, minors = np.empty(beads - 2), np.empty(beads - 1)
    for n in range(words.shape[0]):
        state[:] = words[n]
        chain[:] = _draw_rotation(state)[0]
        for i in range(beads):
            chain[i] *= i
        cosines[:] = 1.0
        minors[0] = 2.0
        for k in range(beads - 2):
            minors[k + 1] = 2.0 - 1.0 / minors[k]
        for _ in range(ATTEMPTS * beads if beads > 2 else 0):
            _try_pivot(chain, state, turned, cosines, minors)
        rods[n] = chain[1:] - chain[:-1]
    return rods
