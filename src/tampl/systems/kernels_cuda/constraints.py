"""Rods of length one after a step, on a GPU: Newton's method with parallel cyclic reduction.

The equations are those of `kernels.constraints`, in single precision, a thread for each rod. A
Newton iteration solves its tridiagonal system by cyclic reduction, of which `LEVELS` levels are
done and rows 2^LEVELS apart taken as uncoupled. That is exact up to 2^LEVELS rods. For longer
chains it makes more iterations but does not move what they converge to: rods of length one.

Shared arrays are indexed by uint64, since numba adds a test for negative ones to signed indices.
"""

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from .jit import cuda, device

__all__ = ["LIMIT", "PAD", "TOLERANCE", "clear_ends", "project"]

TOLERANCE = 1e-5
"""What | |v|^2 - 1 | may be for a rod after a step."""

LIMIT = 24
"""Newton iterations after which a step counts as unsolvable; three are usual."""

LEVELS = 4
PAD = 2 ** (LEVELS - 1)
"""Rows to either side of the system that a reduction reads."""

# The Newton step of a row that is nearly singular would throw the chain far away.
_LARGEST_CHANGE = np.float32(0.3)
_CLOSE = np.float32(TOLERANCE / 2)
_ZERO, _HALF, _ONE, _TWO = (np.float32(c) for c in (0, 0.5, 1, 2))
_U1, _U2, _UPAD = np.uint64(1), np.uint64(2), np.uint64(PAD)


@device
def clear_ends(
    t: np.uint64,
    threads: np.uint64,
    rods: NDArray[np.float32],
    moves: NDArray[np.float32],
    strength: NDArray[np.float32],
    system: NDArray[np.float32],
) -> None:
    """Writes what lies beyond the ends: zero rods and moves, and rows that say d = 0.

    Arguments:
        t: This thread's number, uint64.
        threads: Threads T of the block, uint64.
        rods: Rods with one to spare at either end, (3, T + 2).
        moves: Moves of the beads with two to spare, (3, T + 2).
        strength: Constraint forces with one to spare at either end, (T + 2,).
        system: Two sides, each with three diagonals and the right side, (2, 4, T + 2 PAD).
    """
    if t < _U2:
        end = t * (threads + _U1)
        strength[end] = _ZERO
        for a in range(3):
            rods[a, end] = _ZERO
            moves[a, threads] = _ZERO
    if t < _UPAD:
        for side in range(2):
            for part in range(4):
                blank = _ONE if part == 1 else _ZERO
                system[side, part, t] = blank
                system[side, part, t + threads + _UPAD] = blank


@device
def _solve(
    system: NDArray[np.float32],
    row: np.uint64,
    below: np.float32,
    centre: np.float32,
    above: np.float32,
    right: np.float32,
) -> np.float32:
    """Solves for one row of the system, all threads together."""
    for level in range(LEVELS):
        # Levels write to the two sides in turn, so that one barrier each is enough.
        side, apart = uint64(level & 1), _U1 << uint64(level)
        lower, upper = row - apart, row + apart
        system[side, 0, row], system[side, 1, row] = below, _ONE / centre
        system[side, 2, row], system[side, 3, row] = above, right
        cuda.syncthreads()
        low, high = -below * system[side, 1, lower], -above * system[side, 1, upper]
        centre += low * system[side, 2, lower] + high * system[side, 0, upper]
        right += low * system[side, 3, lower] + high * system[side, 3, upper]
        below, above = low * system[side, 0, lower], high * system[side, 2, upper]
    return right / centre


@device
def project(
    t: np.uint64,
    is_rod: bool,
    strain: np.float32,
    rods: NDArray[np.float32],
    moves: NDArray[np.float32],
    strength: NDArray[np.float32],
    system: NDArray[np.float32],
) -> tuple[bool, np.float32, np.float32, np.float32, np.float32, np.float32, np.float32]:
    """Finds the constraint forces of a step, all threads together.

    Arguments:
        t: This thread's number, uint64, and that of its rod.
        is_rod: Whether there is such a rod.
        strain: Flow strength times time step.
        rods: As in `clear_ends`; rod k is at k + 1.
        moves: Moves of the beads by noise and excluded volume, written before a barrier.
        strength: Room for the forces; that of rod k is at k + 1.
        system: Room.

    Returns:
        Whether all rods have length one within `TOLERANCE`; this thread's rod after the step; and
        the pull of the rods at either side on its bead.
    """
    lx, ly, lz = rods[0, t], rods[1, t], rods[2, t]
    ux, uy, uz = rods[0, t + _U1], rods[1, t + _U1], rods[2, t + _U1]
    rx, ry, rz = rods[0, t + _U2], rods[1, t + _U2], rods[2, t + _U2]
    wx = ux + strain * ux + (moves[0, t + _U1] - moves[0, t])
    wy = uy - strain * uy + (moves[1, t + _U1] - moves[1, t])
    wz = uz + (moves[2, t + _U1] - moves[2, t])
    vx, vy, vz, here, left = wx, wy, wz, _ZERO, _ZERO
    solved = False
    for _ in range(LIMIT):
        residual = _HALF - _HALF * (vx * vx + vy * vy + vz * vz) if is_rod else _ZERO
        # A residual that is NaN is not small either.
        solved = cuda.syncthreads_or(0 if abs(residual) <= _CLOSE else 1) == 0
        if solved:
            break
        below = vx * lx + vy * ly + vz * lz if is_rod else _ZERO
        centre = -_TWO * (vx * ux + vy * uy + vz * uz) if is_rod else _ONE
        above = vx * rx + vy * ry + vz * rz if is_rod else _ZERO
        change = _solve(system, t + _UPAD, below, centre, above, residual)
        here += min(max(change, -_LARGEST_CHANGE), _LARGEST_CHANGE)
        strength[t + _U1] = here
        cuda.syncthreads()
        left, right = strength[t], strength[t + _U2]
        vx = wx + left * lx - _TWO * here * ux + right * rx
        vy = wy + left * ly - _TWO * here * uy + right * ry
        vz = wz + left * lz - _TWO * here * uz + right * rz
    return solved, vx, vy, vz, here * ux - left * lx, here * uy - left * ly, here * uz - left * lz
