"""Molecular dynamics of many Lennard-Jones boxes at once on a GPU.

The twin of `kernels.lennard_jones`: same physics, walls and initial velocities, in the single
precision of `nve_kernel`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..kernels.lennard_jones import (
    ENERGY_BOUND,
    Schedule,
    check_start,
    draw_velocities,
    refuse_blow_up,
)
from ..kernels.pair_forces import Fluid, energy_scale
from .jit import cuda
from .nve_kernel import CAPACITY, MOST_PARTICLES, MOST_TYPES, NEVER, fits_shared, make_kernel
from .runtime import require_gpu

__all__ = ["run_trajectories"]

# Frames are kept on the GPU up to so many bytes, then copied to the host.
_FRAME_BYTES = 2**30


def run_trajectories(
    positions: NDArray[np.float64],
    types: NDArray[np.uint8],
    words: NDArray[np.uint64],
    fluid: Fluid,
    schedule: Schedule,
    out: NDArray[np.floating],
    energies: NDArray[np.float64],
    first: int = 0,
) -> None:
    """Runs n trajectories at constant energy, one from each configuration, all side by side.

    Arguments and errors are those of `kernels.lennard_jones.run_trajectories`; the frames are good
    to single precision. A GPU is busy from some hundred trajectories on.

    Raises:
        InputError: Also if there is no GPU, there are more than 1,024 particles or 32 types, or a
            particle has more neighbours than a list has room for.
    """
    require_gpu()
    positions, types = check_start(positions, types, fluid, first)
    (pairs, cutoff, box), (temperature, dt, every) = fluid, schedule
    runs, n = positions.shape[:2]
    if n > MOST_PARTICLES or len(pairs) > MOST_TYPES:
        raise InputError(
            f"`positions` has {n} particles of {len(pairs)} types; on a GPU there may be up to "
            f"{MOST_PARTICLES} of {MOST_TYPES}, use device 'cpu'"
        )
    velocities = np.empty_like(positions)
    for run in range(runs):
        draw_velocities(words[run].copy(), temperature, velocities[run])
    # The finest grid on which a particle beyond the wall by less than the box is still an int32.
    scale = 2.0 ** (30 - math.ceil(math.log2(box)))
    shared = fits_shared(n, len(pairs))
    state = (
        cuda.to_device(np.rint(positions * scale).astype(np.int32)),
        cuda.to_device(velocities.astype(np.float32)),
        cuda.to_device(types),
        cuda.to_device(pairs[..., :3].astype(np.float32)),
        cuda.device_array((1, 1) if shared else (runs, CAPACITY * n), np.uint16),
        *(np.float32(cutoff), np.int32(round(box * scale)), np.float32(scale), np.float32(dt)),
    )
    kernel = make_kernel(n, len(pairs), shared)
    bound = ENERGY_BOUND * energy_scale(pairs, temperature) * n
    frames = out.shape[1]
    chunk = max(1, _FRAME_BYTES // (runs * n * 8))
    for frame in range(0, frames, chunk):
        last = min(frame + chunk, frames)
        kept = cuda.device_array((runs, last - frame, n, 2), np.float32)
        totals = cuda.device_array((runs, last - frame), np.float64)
        faults = cuda.to_device(np.tile(np.array([NEVER, 0], np.int32), (runs, 1)))
        kernel[runs, n](*state, frame, every, kept, totals, faults)
        energies[:, frame:last] = totals.copy_to_host()
        steps, neighbours = faults.copy_to_host().T
        _refuse_overflow(neighbours, first)
        run, step = _first_blow_up(steps, energies[:, :last], frame, every, bound)
        if step < NEVER:
            refuse_blow_up(first + run, step, energies[run], schedule)
        out[:, frame:last] = kept.copy_to_host()
    out[:, 0] = positions


def _refuse_overflow(neighbours: NDArray[np.int32], first: int) -> None:
    """Raises `InputError` if a run, (n,), needed more neighbours than a list has room for."""
    run = int(neighbours.argmax())
    if neighbours[run] > CAPACITY:
        raise InputError(
            f"run {first + run} has a particle with {neighbours[run]} neighbours; on a GPU a list "
            f"has room for {CAPACITY}, use device 'cpu' or a smaller `cutoff`"
        )


def _first_blow_up(
    steps: NDArray[np.int32], energies: NDArray[np.float64], frame: int, every: int, bound: float
) -> tuple[int, int]:
    """The run that blew up first and its step, or `NEVER`.

    Arguments:
        steps: Where the kernel itself stopped each run, (n,).
        energies: Total energies up to now, (n, F), of which those from `frame` on are new.
        frame: The first new frame.
        every: Steps between frames.
        bound: Largest change of energy.
    """
    # Written so that an energy of NaN is refused too.
    drifted = ~(np.abs(energies[:, frame:] - energies[:, :1]) <= bound)
    late = np.where(drifted.any(axis=1), (frame + drifted.argmax(axis=1)) * every, NEVER)
    steps = np.minimum(late, steps)
    run = int(steps.argmin())
    return run, int(steps[run])
