"""Brownian dynamics of chains of beads and rigid rods in planar elongational flow, compiled.

B beads r_i in three dimensions are joined by B - 1 rods of length one. In the units b = kT = zeta
= 1 (rod, thermal energy, friction of a bead) one step moves the beads by
    dt (e x, -e y, 0) + sqrt(2 kT dt) xi_i + pushes of overlapping beads + constraint forces,
with flow strength e; `exclusion` gives the pushes and `constraints` the forces along the rods.
There is no hydrodynamic interaction. The noise xi is uniform with variance one: as dt goes to zero
the law of the paths depends on its first two moments only, and bounded noise leaves the
constraints solvable at steps where Gaussian noise now and then does not.

A step whose constraints cannot be solved is refused: none of it is kept, and it is taken again as
`PARTS` steps of dt / `PARTS` with new noise. Which noise is refused depends on the chain, so that
paths are those of the scheme only as long as almost none is; `check_steps` holds runs to that.

The flow is linear, so the rods do not feel the centre of mass; recorded frames have it removed.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...errors import InputError
from .constraints import make_room, project
from .exclusion import list_pairs, moved_far, push_apart
from .random import draw_word

__all__ = [
    "FEW_REFUSED",
    "MOST_REFUSED",
    "PARTS",
    "Motion",
    "StepCounts",
    "advance",
    "check_steps",
    "place_beads",
    "run_chains",
]

PARTS = 4
"""Steps that are taken in place of one that was refused."""

MOST_REFUSED = 1e-6
"""Share of the steps of a call that may be refused, or `FEW_REFUSED` steps if that is more."""

FEW_REFUSED = 5
"""So few say little of the rate: a call may be one short chain."""

# Three numbers of 21 bits from one word, centred: (k + 1/2) / 2^21 - 1/2.
_MASK, _SHIFT_1, _SHIFT_2 = (np.uint64(k) for k in (2**21 - 1, 21, 42))
_UNIT, _OFFSET = 2.0**-21, 2.0**-22 - 0.5


class Motion(NamedTuple):
    """What drives a chain: flow strength, time step, kT, and whether beads exclude each other."""

    flow: float
    dt: float
    temperature: float = 1.0
    excluded: bool = True


class StepCounts(NamedTuple):
    """Time steps done by each chain, and how many of its steps were refused, both (n,)."""

    done: NDArray[np.int64]
    refused: NDArray[np.int64]


@njit(nogil=True, cache=True)
def _draw_moves(
    positions: NDArray[np.float64],
    state: NDArray[np.uint64],
    motion: Motion,
    moves: NDArray[np.float64],
) -> None:
    """Writes the moves of the beads, (3, B), by flow and noise."""
    # A uniform number of unit width has variance 1/12.
    amplitude = np.sqrt(24.0 * motion.temperature * motion.dt)
    strain = motion.flow * motion.dt
    for i in range(moves.shape[1]):
        word = draw_word(state)
        x = np.int64(word & _MASK) * _UNIT + _OFFSET
        y = np.int64((word >> _SHIFT_1) & _MASK) * _UNIT + _OFFSET
        z = np.int64((word >> _SHIFT_2) & _MASK) * _UNIT + _OFFSET
        moves[0, i] = amplitude * x + strain * positions[0, i]
        moves[1, i] = amplitude * y - strain * positions[1, i]
        moves[2, i] = amplitude * z


@njit(nogil=True, cache=True)
def _take_rods(
    positions: NDArray[np.float64],
    moves: NDArray[np.float64],
    rods: NDArray[np.float64],
    trial: NDArray[np.float64],
) -> None:
    """Writes the rods now, (3, R + 2) with zeros at the ends, and after the moves, (3, R)."""
    for a in range(3):
        for k in range(trial.shape[1]):
            rod = positions[a, k + 1] - positions[a, k]
            rods[a, k + 1] = rod
            trial[a, k] = rod + (moves[a, k + 1] - moves[a, k])


@njit(nogil=True, cache=True)
def _apply(
    positions: NDArray[np.float64],
    moves: NDArray[np.float64],
    rods: NDArray[np.float64],
    strength: NDArray[np.float64],
) -> None:
    """Moves the beads, each by its own move and the forces of the rods on its two sides."""
    for a in range(3):
        for i in range(positions.shape[1]):
            pull = strength[i + 1] * rods[a, i + 1] - strength[i] * rods[a, i]
            positions[a, i] += moves[a, i] + pull


@njit(nogil=True, cache=True)
def advance(
    positions: NDArray[np.float64], state: NDArray[np.uint64], motion: Motion, steps: int
) -> tuple[int, int]:
    """Advances one chain; its centre of mass moves freely.

    Arguments:
        positions: Beads, (3, B), neighbours at distance one; changed.
        state: State of the random generator, (4,); changed.
        motion: What drives the chain.
        steps: Number of time steps.

    Returns:
        The numbers of steps done and of steps refused. Where fewer than `steps` are done, a part
        of the next one could not be solved either, and the chain is left as it was before that
        part.
    """
    beads = positions.shape[1]
    moves, listed = np.empty((3, beads)), np.full((3, beads), np.inf)
    rods, strength = np.zeros((3, beads + 1)), np.zeros(beads + 1)
    trial, moved = np.empty((3, beads - 1)), np.empty((3, beads - 1))
    system = make_room(beads)
    pairs, n_pairs = np.empty((beads * (beads - 1) // 2, 2), np.int32), 0
    part = Motion(motion.flow, motion.dt / PARTS, motion.temperature, motion.excluded)
    done, refused, parts_left = 0, 0, 0
    while done < steps:
        _draw_moves(positions, state, part if parts_left > 0 else motion, moves)
        if motion.excluded:
            if moved_far(positions, listed):
                n_pairs = list_pairs(positions, pairs)
                listed[:] = positions
            push_apart(positions, pairs[:n_pairs], moves)
        _take_rods(positions, moves, rods, trial)
        if project(rods, trial, strength, moved, system):
            _apply(positions, moves, rods, strength)
            parts_left = max(parts_left - 1, 0)
            done += parts_left == 0
        elif parts_left == 0:
            refused, parts_left = refused + 1, PARTS
        else:
            break
    return done, refused


@njit(nogil=True, cache=True)
def _place(rods: NDArray[np.float64], positions: NDArray[np.float64]) -> None:
    """Strings rods, (R, 3), together to beads, (3, B)."""
    for a in range(3):
        positions[a, 0] = 0.0
        for k in range(rods.shape[0]):
            positions[a, k + 1] = positions[a, k] + rods[k, a]


@njit(nogil=True, cache=True)
def _centre(positions: NDArray[np.float64]) -> None:
    """Moves the centre of mass of the beads, (3, B), to the origin."""
    for a in range(3):
        positions[a] -= positions[a].mean()


@njit(nogil=True, cache=True)
def run_chains(
    rods: NDArray[np.float64],
    words: NDArray[np.uint64],
    motion: Motion,
    every: int,
    out: NDArray[np.floating],
) -> StepCounts:
    """Runs one trajectory from each chain and records it every `every` steps.

    The work is done on the calling thread without the interpreter lock; callers run batches side
    by side on threads. A chain whose constraints cannot be solved in parts of a step either stops
    there, and what would follow is recorded as NaN.

    Arguments:
        rods: Rods at t = 0, of length one, (n, B - 1, 3); changed to those at the end.
        words: What starts each chain's generator, (n, 4), no four of them all zero.
        motion: What drives the chains.
        every: Steps between two frames.
        out: Receives the beads relative to their centre of mass, (n, F, B, 3), t = 0 first.

    Returns:
        The steps of each chain: `every` (F - 1) are done by all that are complete.
    """
    positions, state = np.empty((3, rods.shape[1] + 1)), np.empty(4, np.uint64)
    counts = StepCounts(np.zeros(rods.shape[0], np.int64), np.zeros(rods.shape[0], np.int64))
    for n in range(rods.shape[0]):
        state[:] = words[n]
        _place(rods[n], positions)
        _centre(positions)
        out[n] = np.nan
        out[n, 0] = positions.T
        for frame in range(1, out.shape[1]):
            done, refused = advance(positions, state, motion, every)
            counts.done[n] += done
            counts.refused[n] += refused
            if done < every:
                break
            _centre(positions)
            out[n, frame] = positions.T
        rods[n] = (positions[:, 1:] - positions[:, :-1]).T
    return counts


def place_beads(rods: NDArray[np.floating]) -> NDArray[np.float64]:
    """Strings rods, (n, B - 1, 3), together to beads relative to their centre, (n, B, 3)."""
    beads = np.zeros((rods.shape[0], rods.shape[1] + 1, 3))
    np.cumsum(rods, axis=1, out=beads[:, 1:])
    return beads - beads.mean(axis=1, keepdims=True)


def check_steps(counts: StepCounts, steps: int, dt: float) -> None:
    """Raises `InputError` where a chain did not do all its steps, or too many were refused."""
    done, refused = counts
    stopped = np.flatnonzero(done < steps)
    if stopped.size:
        raise InputError(
            f"`dt` is {dt}; {stopped.size} of {done.size} chains stopped because their rods could "
            f"not be kept at length one, the first of them chain {stopped[0]} after "
            f"{done[stopped[0]]} of {steps} steps; take a smaller `dt`, and start from chains "
            "whose beads do not overlap"
        )
    if refused.sum() > max(FEW_REFUSED, MOST_REFUSED * steps * done.size):
        raise InputError(
            f"`dt` is {dt}; {refused.sum()} of {steps * done.size} steps were refused because the "
            f"rods could not be kept at length one, more than a share of {MOST_REFUSED:g}; take a "
            "smaller `dt`"
        )
