"""The GPU kernel for boxes of Lennard-Jones particles at constant energy, in single precision.

A block of threads runs one box, a thread one particle, and a launch many steps. Positions are
whole numbers of a grid as fine as an int32 allows, 2^-25 for a box of 32, to which the small moves
of a step are added without loss: after 50 steps they are off by 2e-6, float32 positions by 3e-5.
Distances and forces are float32.

Each thread keeps the neighbours of its particle in its own column of a table of uint16, in shared
memory where it fits: the index in ten bits, the type above it. All columns are made anew when any
particle has moved half the skin. Threads read each other's positions from one of two buffers and
write to the other, so that a step needs a single barrier. Forces are summed in the order of the
indices, so a run has the same bits each time, however it is cut into launches.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numba import types
from numpy import float32, int32, uint16, uint32

from .jit import cuda, device, kernel

__all__ = ["CAPACITY", "MOST_PARTICLES", "MOST_TYPES", "NEVER", "fits_shared", "make_kernel"]

CAPACITY = 32
"""Neighbours of a particle that a list has room for; hexagonal packing at distance 1.05 has 30."""
MOST_PARTICLES, MOST_TYPES = 1024, 32
"""Bounds of a block of threads, of sixteen bits for index and type, and of shared memory."""
NEVER = int(np.iinfo(np.int32).max)
"""The step of a fault that did not occur."""

# Longer than on a CPU, since making a list is dearer here: it looks at all pairs.
_SKIN = 0.5
# With 32 registers a thread, a multiprocessor has room for four blocks of 512 threads.
_REGISTERS = 32
# What a block may have without asking the driver for more, which numba does not.
_SHARED_BYTES = 48 * 1024

_INDEX, _TYPE_SHIFT = np.uint32(MOST_PARTICLES - 1), np.uint32(10)
# A Python float is a double in a kernel, and would make doubles of all it meets.
_ZERO, _HALF, _ONE, _SIXTH = (np.float32(value) for value in (0, 0.5, 1, 1 / 6))
_SKIN_32, _QUARTER_SKIN_2 = np.float32(_SKIN), np.float32(_SKIN**2 / 4)


def fits_shared(n: int, n_types: int) -> bool:
    """Whether lists of `n` particles fit into shared memory, beside positions and coefficients."""
    return n * (2 * 2 * 4 + 2 * CAPACITY) + 2 * 4 * n_types**2 <= _SHARED_BYTES


@device
def _move(q, v, f, dt, wall, scale):
    """Moves a coordinate on the grid during `dt`: it, the velocity and whether the move fits."""
    step = v * dt * scale
    # Written so that NaN and what no int32 holds are refused before the conversion.
    if not abs(step) < float32(wall):
        return q, v, False
    q = int32(q + int32(math.floor(step + _HALF)))
    if q < 0 or q > wall:
        beyond = q if q < 0 else int32(q - wall)
        twice = float32(int32(beyond + beyond)) / scale
        q = int32(q - beyond - beyond)
        v = (twice / v - dt) * f - v
    return q, v, True


@device
def _list_neighbours(i, n, xs, ys, base, kinds, reach2, near):
    """Writes the neighbours of particle i into column i of `near`; returns their number."""
    x, y = xs[base + i], ys[base + i]
    count, j = uint32(0), uint32(0)
    while j < uint32(n):
        dx, dy = x - xs[uint32(base + j)], y - ys[uint32(base + j)]
        if dx * dx + dy * dy < reach2 and j != i:
            if count < CAPACITY:
                near[uint32(count * n + i)] = uint16(j | uint32(kinds[j]) << _TYPE_SHIFT)
            count = uint32(count + 1)
        j = uint32(j + 1)
    return count


@device
def _sum_forces(i, n, xs, ys, base, count, near, row, c12, c6, cutoff2):
    """The force on particle i from its listed neighbours."""
    x, y = xs[base + i], ys[base + i]
    fx, fy = _ZERO, _ZERO
    # A `for` over a range would count in 64 bits, for several instructions more each turn.
    at, end = i, uint32(i + count * n)
    while at < end:
        entry = uint32(near[at])
        at = uint32(at + n)
        j = uint32(base + (entry & _INDEX))
        dx, dy = x - xs[j], y - ys[j]
        r2 = dx * dx + dy * dy
        if r2 < cutoff2:
            pair = uint32(row + (entry >> _TYPE_SHIFT))
            inverse = _ONE / r2
            q = inverse * inverse * inverse
            strength = inverse * q * (c12[pair] * q - c6[pair])
            fx += strength * dx
            fy += strength * dy
    return fx, fy


@device
def _sum_energies(i, n, xs, ys, base, count, near, table, cutoff2):
    """Half of the potential energy of particle i with its listed neighbours."""
    energy = _ZERO
    for k in range(count):
        entry = uint32(near[uint32(k * n + i)])
        j = uint32(base + (entry & _INDEX))
        dx, dy = xs[base + i] - xs[j], ys[base + i] - ys[j]
        r2 = dx * dx + dy * dy
        if r2 < cutoff2:
            pair = table[entry >> _TYPE_SHIFT]
            q = _ONE / (r2 * r2 * r2)
            energy += _HALF * (q * _SIXTH * (_HALF * pair[0] * q - pair[1]) - pair[2])
    return energy


@lru_cache
def make_kernel(n: int, n_types: int, shared: bool) -> Any:
    """The kernel for `n` particles of `n_types` types, with lists in shared memory or in `lists`.

    It is launched with one block of n threads for each of R runs. Its arguments are

    - `grid` int32 (R, N, 2) and `velocities` float32 (R, N, 2), the state, which is moved on;
    - `kinds` uint8 (R, N), the types, and `table` float32 (T, T, 3), columns of `pair_table`;
    - `lists` uint16 (R, CAPACITY N), where lists are not in shared memory;
    - `cutoff`, the edge of the box on the grid as `wall` (int32), grid points per length `scale`
      and the time step `dt`;
    - `first`, the number of the first frame in `frames` float32 (R, F, N, 2), and `every`, the
      steps before a frame, of which frame 0 has none;
    - `energies` float64 (R, F), the total energies;
    - `faults` int32 (R, 2), lowered to the first step at which a particle went further than the
      box is wide, and raised to the largest number of neighbours.
    """
    # Sizes of shared arrays must be constants, not expressions, inside the kernel.
    n_pairs, n_twice, n_listed = n_types * n_types, 2 * n, n * CAPACITY if shared else 1

    @kernel(_REGISTERS)
    def run_boxes(
        grid,
        velocities,
        kinds,
        table,
        lists,
        cutoff,
        wall,
        scale,
        dt,
        first,
        every,
        frames,
        energies,
        faults,
    ):
        xs = cuda.shared.array(n_twice, types.float32)
        ys = cuda.shared.array(n_twice, types.float32)
        c12 = cuda.shared.array(n_pairs, types.float32)
        c6 = cuda.shared.array(n_pairs, types.float32)
        own = cuda.shared.array(n_listed, types.uint16)
        run, i = cuda.blockIdx.x, uint32(cuda.threadIdx.x)
        near = own if shared else lists[run]
        for pair in range(cuda.threadIdx.x, n_pairs, n):
            c12[pair] = table[pair // n_types, pair % n_types, 0]
            c6[pair] = table[pair // n_types, pair % n_types, 1]
        kind = kinds[run, i]
        row = uint32(kind * n_types)
        cutoff2, reach2 = cutoff * cutoff, (cutoff + _SKIN_32) * (cutoff + _SKIN_32)
        spacing = _ONE / scale
        qx, qy = grid[run, i, 0], grid[run, i, 1]
        vx, vy = velocities[run, i, 0], velocities[run, i, 1]
        x, y = float32(qx) * spacing, float32(qy) * spacing
        base, fault = uint32(0), NEVER
        xs[i], ys[i] = x, y
        cuda.syncthreads()
        x_listed, y_listed = x, y
        count = _list_neighbours(i, n, xs, ys, base, kinds[run], reach2, near)
        most = count
        count = min(count, uint32(CAPACITY))
        fx, fy = _sum_forces(i, n, xs, ys, base, count, near, row, c12, c6, cutoff2)
        for frame in range(frames.shape[1]):
            for s in range(every if first + frame > 0 else 0):
                vx += _HALF * dt * fx
                vy += _HALF * dt * fy
                qx, vx, inside_x = _move(qx, vx, fx, dt, wall, scale)
                qy, vy, inside_y = _move(qy, vy, fy, dt, wall, scale)
                if not (inside_x and inside_y):
                    fault = min(fault, (first + frame - 1) * every + s + 1)
                x, y = float32(qx) * spacing, float32(qy) * spacing
                base = uint32(n - base)
                xs[base + i], ys[base + i] = x, y
                dx, dy = x - x_listed, y - y_listed
                if cuda.syncthreads_or(1 if dx * dx + dy * dy > _QUARTER_SKIN_2 else 0):
                    x_listed, y_listed = x, y
                    count = _list_neighbours(i, n, xs, ys, base, kinds[run], reach2, near)
                    most = max(most, count)
                    count = min(count, uint32(CAPACITY))
                fx, fy = _sum_forces(i, n, xs, ys, base, count, near, row, c12, c6, cutoff2)
                vx += _HALF * dt * fx
                vy += _HALF * dt * fy
            frames[run, frame, i, 0], frames[run, frame, i, 1] = x, y
            potential = _sum_energies(i, n, xs, ys, base, count, near, table[kind], cutoff2)
            # The buffer that the next step writes to is free: it takes the particles' energies.
            xs[n - base + i] = potential + _HALF * (vx * vx + vy * vy)
            cuda.syncthreads()
            if i == 0:
                total = 0.0
                for j in range(n):
                    total += xs[n - base + j]
                energies[run, frame] = total
            cuda.syncthreads()
        grid[run, i, 0], grid[run, i, 1] = qx, qy
        velocities[run, i, 0], velocities[run, i, 1] = vx, vy
        cuda.atomic.min(faults, (run, 0), int32(fault))
        cuda.atomic.max(faults, (run, 1), int32(most))

    return run_boxes
