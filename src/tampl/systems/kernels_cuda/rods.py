"""Brownian dynamics of bead-rod chains on a GPU: one block per chain, one thread per bead.

The scheme is that of `kernels.rods` in single precision, with noise of its own (`philox`). Rods
are the state. Positions are strung together from them at each frame and every `_RESTRING` steps,
and moved along in between: in single precision they would drift away from the rods.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy import float32, uint16, uint32, uint64
from numpy.typing import NDArray

from ...errors import InputError
from ..kernels.rods import PARTS, Motion, StepCounts, place_beads
from .constraints import PAD, clear_ends, project
from .exclusion import CAPACITY, FAR, list_neighbours, push_bead
from .jit import cuda, device, kernel
from .philox import philox, split_words

__all__ = ["run_chains"]

_RESTRING = 512
# Four blocks of 300 beads then share a multiprocessor of an H200.
_REGISTERS = 48
# A launch is about a second's work: so many steps of all chains together, and of one chain.
_LAUNCH, _LAUNCH_EACH = 2**26, 2**16
# The kernel's arrays take 120 bytes a bead and 568 in all, of 48 KB of shared memory.
_MOST_BEADS = 404

_ZERO = np.float32(0)
# What strain and noise in a part of a step are of those in a whole one.
_PART, _ROOT_PART = np.float32(1 / PARTS), np.float32(PARTS**-0.5)
_NAN = np.float32(np.nan)
_U0, _U1, _U16, _U21, _U42 = (np.uint64(k) for k in (0, 1, 16, 21, 42))
_MASK = np.uint64(2**21 - 1)
_UNIT, _OFFSET = np.float32(2.0**-21), np.float32(2.0**-22 - 0.5)

_philox = device(philox)


@device
def _string(
    rods: NDArray[np.float32], beads: int, bead: int
) -> tuple[np.float32, np.float32, np.float32]:
    """A bead's position relative to the centre of mass, from all rods, (3, T + 2)."""
    x, y, z, cx, cy, cz = _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO
    for k in range(beads - 1):
        u, v, w = rods[0, uint64(k + 1)], rods[1, uint64(k + 1)], rods[2, uint64(k + 1)]
        # Rod k carries all the beads behind it.
        share = float32(beads - 1 - k) / float32(beads)
        cx, cy, cz = cx + share * u, cy + share * v, cz + share * w
        if k < bead:
            x, y, z = x + u, y + v, z + w
    return x - cx, y - cy, z - cz


@device
def _centred(bits: np.uint64) -> np.float32:
    """The lowest 21 bits as a number of mean zero in (-1/2, 1/2)."""
    return float32(uint32(bits & _MASK)) * _UNIT + _OFFSET


@device
def _draw(
    words: NDArray[np.uint64], chain: int, step: int, bead: np.uint64, parts_left: int
) -> tuple[np.uint64, np.uint64]:
    """The bits for two steps, the even one and the odd one after it, or for a part of either."""
    return _philox(
        uint64(step) >> _U1,
        # Beads are fewer than 2^16, so the counters of parts are those of no whole step.
        bead | uint64(parts_left) << _U16,
        words[chain, 0],
        words[chain, 1],
        words[chain, 2],
        words[chain, 3],
    )


@lru_cache
def _kernel(beads: int, threads: int, excluded: bool) -> Callable[..., None]:
    """Compiles the kernel for chains of so many beads, with or without excluded volume.

    It takes rods, changed; what `split_words` gives; strain and amplitude of the noise in a step;
    steps between frames; steps done before; room for the frames after them, (n, F, B, 3); and
    each chain's steps done and steps refused, both changed. Chains that stopped before are left as
    they are.
    """
    ends, padded = threads + 2, threads + 2 * PAD
    n_beads, n_threads = np.uint64(beads), np.uint64(threads)

    @kernel(_REGISTERS)
    def run(
        start: NDArray[np.float32],
        words: NDArray[np.uint64],
        strain: np.float32,
        amplitude: np.float32,
        every: int,
        first: int,
        out: NDArray[np.float32],
        done: NDArray[np.int64],
        refused: NDArray[np.int64],
    ) -> None:
        rods = cuda.shared.array((3, ends), float32)
        places = cuda.shared.array((3, threads), float32)
        moves = cuda.shared.array((3, ends), float32)
        strength = cuda.shared.array(ends, float32)
        system = cuda.shared.array((2, 4, padded), float32)
        neighbours = cuda.shared.array((CAPACITY, threads), uint16)
        chain, bead = cuda.blockIdx.x, cuda.threadIdx.x
        t, is_bead, is_rod = uint64(bead), bead < beads, bead < beads - 1
        clear_ends(t, n_threads, rods, moves, strength, system)
        for a in range(3):
            rods[a, t + _U1] = start[chain, bead, a] if is_rod else _ZERO
        x, y, z, x_listed, y_listed, z_listed = _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO
        found, spare = _U0, _U0
        frame, step, until_frame, until_string, stale = 0, 0, every, 0, 1
        # More than zero only while a step that was refused is taken in parts.
        parts_left = 0
        running = done[chain] == first
        while True:
            if until_string == 0:
                cuda.syncthreads()
                x, y, z = _string(rods, beads, bead)
                places[0, t], places[1, t], places[2, t] = x, y, z
                if until_frame == 0:
                    if is_bead:
                        out[chain, frame, bead, 0] = x
                        out[chain, frame, bead, 1] = y
                        out[chain, frame, bead, 2] = z
                    frame, until_frame = frame + 1, every
                until_string, stale = min(_RESTRING, until_frame), 1
            if not running or frame == out.shape[1]:
                break
            even = (first + step) & 1 == 0
            bits = spare
            if even or step == 0 or parts_left > 0:
                bits, odd_bits = _draw(words, chain, first + step, t, parts_left)
                if parts_left == 0:
                    spare = odd_bits
                if not even:
                    bits = odd_bits
            noise = amplitude * _ROOT_PART if parts_left > 0 else amplitude
            dx = noise * _centred(bits)
            dy = noise * _centred(bits >> _U21)
            dz = noise * _centred(bits >> _U42)
            if excluded:
                mx, my, mz = x - x_listed, y - y_listed, z - z_listed
                moved = is_bead and mx * mx + my * my + mz * mz > FAR
                # Also the barrier behind which all see where the last step took the beads.
                if cuda.syncthreads_or(1 if stale == 1 or moved else 0) != 0:
                    x_listed, y_listed, z_listed, stale = x, y, z, 0
                    if is_bead:
                        found = list_neighbours(t, n_beads, x, y, z, places, neighbours)
                px, py, pz = push_bead(t, n_beads, x, y, z, places, neighbours, found)
                dx, dy, dz = dx + px, dy + py, dz + pz
            moves[0, t], moves[1, t], moves[2, t] = dx, dy, dz
            cuda.syncthreads()
            drift = strain * _PART if parts_left > 0 else strain
            solved, vx, vy, vz, px, py, pz = project(
                t, is_rod, drift, rods, moves, strength, system
            )
            if solved:
                x, y, z = x + drift * x + dx + px, y - drift * y + dy + py, z + dz + pz
                places[0, t], places[1, t], places[2, t] = x, y, z
                if is_rod:
                    rods[0, t + _U1], rods[1, t + _U1], rods[2, t + _U1] = vx, vy, vz
                parts_left = max(parts_left - 1, 0)
                if parts_left == 0:
                    step, until_frame, until_string = step + 1, until_frame - 1, until_string - 1
            elif parts_left == 0:
                parts_left = PARTS
                # Counted in memory: it is rare, and a counter would take registers.
                if bead == 0:
                    refused[chain] += 1
            else:
                running = False
        if is_rod:
            for a in range(3):
                start[chain, bead, a] = rods[a, t + _U1]
        if is_bead:
            for missing in range(frame, out.shape[1]):
                for a in range(3):
                    out[chain, missing, bead, a] = _NAN
        if bead == 0:
            done[chain] += step

    return run


def run_chains(
    rods: NDArray[np.floating],
    words: NDArray[np.uint64],
    motion: Motion,
    every: int,
    out: NDArray[np.floating],
    *,
    progress: Callable[[int], None] | None = None,
) -> StepCounts:
    """Runs one trajectory from each chain, all at once, and records it every `every` steps.

    Chains of 300 beads fill an H200 by 528 at a time.

    Arguments:
        rods: Rods at t = 0, of length one, (n, B - 1, 3); changed to those at the end.
        words: What makes each chain's noise, (n, 4).
        motion: What drives the chains.
        every: Steps between two frames.
        out: Receives the beads relative to their centre of mass, (n, F, B, 3), t = 0 first.
        progress: Called after each launch, of about a second, with the number of frames done.

    Returns:
        The steps of each chain: `every` (F - 1) are done by all that are complete.
    """
    n, frames, beads = out.shape[:3]
    if not 2 <= beads <= _MOST_BEADS:
        raise InputError(
            f"`beads` is {beads}; a GPU takes chains of 2 to {_MOST_BEADS} beads: use device 'cpu'"
        )
    threads = max(beads, PAD)
    run: Any = _kernel(beads, threads, bool(motion.excluded))
    strain = np.float32(motion.flow * motion.dt)
    amplitude = np.float32(np.sqrt(24.0 * motion.temperature * motion.dt))
    state = cuda.to_device(np.ascontiguousarray(rods, np.float32))
    seeds = cuda.to_device(split_words(words))
    done, refused = (cuda.to_device(np.zeros(n, np.int64)) for _ in range(2))
    out[:, 0] = place_beads(rods)
    batch = max(1, min(_LAUNCH // (n * every), _LAUNCH_EACH // every))
    for frame in range(1, frames, batch):
        stop, before = min(frame + batch, frames), (frame - 1) * every
        room = cuda.device_array((n, stop - frame, beads, 3), np.float32)
        run[n, threads](state, seeds, strain, amplitude, every, before, room, done, refused)
        out[:, frame:stop] = room.copy_to_host()
        if progress is not None:
            progress(stop)
    rods[:] = state.copy_to_host()
    return StepCounts(done.copy_to_host(), refused.copy_to_host())
