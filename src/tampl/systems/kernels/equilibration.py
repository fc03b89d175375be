"""Initial configurations: overlaps taken away and temperature given, each type in its own region.

An *owner* grid over the box says which type may be where: particles of type a stay in cells with
the number a or `ANY`. It is a uint8 array (G, G), indexed by the cell along x, then along y.

Langevin dynamics at temperature T with friction gamma gives the canonical distribution. A step is
split as BAOAB: half a kick, half a move, the exact change of velocities by friction and noise
    v <- c v + sqrt((1 - c^2) T) xi,    c = exp(-gamma dt),
half a move, half a kick. Half a move goes along one axis after the other, x first in the first
half and y first in the second. Where it would leave the particle's own region or the box, it is
not made and the velocity along that axis is reversed. That rule is reversible and keeps volumes,
so the distribution is the canonical one restricted to the pattern. (Moves along both axes at once
would trap a particle in a corner of its region, where the way on and the way back are both
refused.)

References:
    Leimkuhler and Matthews, Appl. Math. Res. Express (2013) 34.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...errors import InputError
from .lennard_jones import OVERLAP, check_particles, check_start, draw_velocities, has_moved, kick
from .neighbours import SKIN, empty_list, list_pairs
from .pair_forces import Fluid, closest_pair, energy_scale, listed_forces
from .random import draw_normals

__all__ = ["ANY", "Bath", "equilibrate", "minimise"]

ANY = np.uint8(255)
"""The number of a cell where every type may be."""

# Moves of the descent are at most 0.1 first and shrink by 1.5 % each: 400 of them go down to 2e-4.
_MOVES, _FIRST_MOVE, _SHRINK = 400, 0.1, 0.985
# Along a force a particle moves by 1e-3 times it: stable up to a curvature of 2,000, above that of
# any configuration without overlaps; the stiffest bonds have 57 epsilon / sigma^2.
_RATE = 1e-3
# A thermal particle is that fast with probability exp(-50).
_FASTEST = 100.0


class Bath(NamedTuple):
    """Temperature T, time step, number of steps, and the rate gamma that renews velocities."""

    temperature: float
    dt: float
    steps: int
    friction: float


@njit(nogil=True, cache=True)
def _allowed(x: float, y: float, kind: int, owner: NDArray[np.uint8], box: float) -> bool:
    """Whether a particle of type `kind` may be at (x, y); NaN is nowhere allowed."""
    if not (0.0 <= x <= box and 0.0 <= y <= box):
        return False
    cells = owner.shape[0]
    cell = owner[min(int(x * cells / box), cells - 1), min(int(y * cells / box), cells - 1)]
    return cell == kind or cell == ANY


@njit(nogil=True, cache=True)
def _descend(
    positions: NDArray[np.float64],
    types: NDArray[np.uint8],
    fluid: Fluid,
    owner: NDArray[np.uint8],
) -> None:
    pairs, cutoff, box = fluid
    near, force = empty_list(positions.shape[0], box, cutoff + SKIN), np.empty_like(positions)
    list_pairs(positions, box, cutoff + SKIN, near)
    longest = _FIRST_MOVE
    for _ in range(_MOVES):
        listed_forces(positions, types, pairs, cutoff, near, force)
        for i in range(positions.shape[0]):
            size = np.hypot(force[i, 0], force[i, 1])
            # Two particles in the same place have no direction to part; `minimise` refuses them.
            if not 0.0 < size < np.inf:
                continue
            x, y = positions[i, 0], positions[i, 1]
            scale = min(_RATE, longest / size)
            # One axis after the other, so that particles can slide along the edges of regions.
            if _allowed(x + scale * force[i, 0], y, types[i], owner, box):
                x += scale * force[i, 0]
            if _allowed(x, y + scale * force[i, 1], types[i], owner, box):
                y += scale * force[i, 1]
            positions[i, 0], positions[i, 1] = x, y
        longest *= _SHRINK
        if has_moved(positions, near):
            list_pairs(positions, box, cutoff + SKIN, near)


@njit(nogil=True, cache=True)
def _drift(
    positions: NDArray[np.float64],
    velocities: NDArray[np.float64],
    types: NDArray[np.uint8],
    owner: NDArray[np.uint8],
    box: float,
    time: float,
    first_axis: int,
) -> None:
    """Moves each particle freely during `time`, or turns it round along an axis it may not go."""
    for i in range(positions.shape[0]):
        for k in (first_axis, 1 - first_axis):
            here = positions[i, k]
            positions[i, k] = here + time * velocities[i, k]
            if not _allowed(positions[i, 0], positions[i, 1], types[i], owner, box):
                positions[i, k], velocities[i, k] = here, -velocities[i, k]


@njit(nogil=True, cache=True)
def _thermostat(
    velocities: NDArray[np.float64], state: NDArray[np.uint64], keep: float, noise: float
) -> float:
    """Applies friction and noise; returns the largest v^2 before, or NaN if there is one."""
    fastest = 0.0
    for i in range(velocities.shape[0]):
        square = velocities[i, 0] ** 2 + velocities[i, 1] ** 2
        fastest = fastest if square <= fastest else square
        x, y = draw_normals(state)
        velocities[i, 0] = keep * velocities[i, 0] + noise * x
        velocities[i, 1] = keep * velocities[i, 1] + noise * y
    return fastest


@njit(nogil=True, cache=True)
def _heat(
    positions: NDArray[np.float64],
    types: NDArray[np.uint8],
    state: NDArray[np.uint64],
    fluid: Fluid,
    owner: NDArray[np.uint8],
    bath: Bath,
    bound: float,
) -> tuple[int, float]:
    """Langevin dynamics; returns the step and v^2 at which it was stopped, or -1 and the last."""
    pairs, cutoff, box = fluid
    temperature, dt, steps, friction = bath
    near, force = empty_list(positions.shape[0], box, cutoff + SKIN), np.empty_like(positions)
    velocities = np.empty_like(positions)
    keep, fastest = np.exp(-friction * dt), 0.0
    noise = np.sqrt((1.0 - keep * keep) * temperature)
    draw_velocities(state, temperature, velocities)
    list_pairs(positions, box, cutoff + SKIN, near)
    listed_forces(positions, types, pairs, cutoff, near, force)
    for step in range(steps):
        kick(velocities, force, 0.5 * dt)
        _drift(positions, velocities, types, owner, box, 0.5 * dt, 0)
        fastest = _thermostat(velocities, state, keep, noise)
        # Moves that are too long are never made, so positions alone would not show a blow-up.
        if not fastest <= bound:
            return step + 1, fastest
        _drift(positions, velocities, types, owner, box, 0.5 * dt, 1)
        if has_moved(positions, near):
            list_pairs(positions, box, cutoff + SKIN, near)
        listed_forces(positions, types, pairs, cutoff, near, force)
        kick(velocities, force, 0.5 * dt)
    return -1, fastest


def minimise(
    positions: NDArray[np.float64],
    types: NDArray[np.uint8],
    fluid: Fluid,
    owner: NDArray[np.uint8],
) -> NDArray[np.float64]:
    """Takes the overlaps of a random placement away by moving particles along their forces.

    Arguments:
        positions: Particles, each in the region of its type, (N, 2).
        types: Their types, (N,).
        fluid: What the particles feel.
        owner: Which type may be where, (G, G).

    Returns:
        New positions, (N, 2), each still in the region of its type.

    Raises:
        InputError: If a particle starts outside of its region, or some still overlap in the end,
            as they do where there are too many.
    """
    stack, kinds = check_particles(positions[None], types[None], fluid)
    moved, types = stack[0], kinds[0]
    _check_regions(moved, types, owner, fluid.box)
    _descend(moved, types, fluid, owner)
    i, j, distance = closest_pair(moved, types, fluid.pairs)
    if distance < OVERLAP:
        raise InputError(
            f"particles {i} and {j} of {len(moved)} still overlap after `minimise`, at a distance "
            f"of {distance:.3g} sigma; use fewer particles or a larger `box`"
        )
    return moved


def equilibrate(
    positions: NDArray[np.float64],
    types: NDArray[np.uint8],
    words: NDArray[np.uint64],
    fluid: Fluid,
    owner: NDArray[np.uint8],
    bath: Bath,
) -> NDArray[np.float64]:
    """Draws a configuration at the bath's temperature by Langevin dynamics that keeps the pattern.

    Arguments:
        positions: Particles without overlaps, each in the region of its type, (N, 2).
        types: Their types, (N,).
        words: What starts the random generator, (4,).
        fluid: What the particles feel.
        owner: Which type may be where, (G, G).
        bath: The heat bath and for how long.

    Returns:
        New positions, (N, 2), each still in the region of its type.

    Raises:
        InputError: If a particle starts outside of its region, particles overlap, or the run blows
            up.
    """
    stack, kinds = check_start(positions[None], types[None], fluid)
    moved, types = stack[0], kinds[0]
    _check_regions(moved, types, owner, fluid.box)
    bound = _FASTEST * energy_scale(fluid.pairs, bath.temperature)
    step, fastest = _heat(moved, types, words.copy(), fluid, owner, bath, bound)
    if step >= 0:
        raise InputError(
            f"equilibration blew up at step {step}: a particle has the kinetic energy "
            f"{fastest / 2:.6g} at temperature {bath.temperature}; `dt` is {bath.dt}, use a "
            "smaller one"
        )
    return moved


def _check_regions(
    positions: NDArray[np.float64], types: NDArray[np.uint8], owner: NDArray[np.uint8], box: float
) -> None:
    for i in range(len(positions)):
        if not _allowed(positions[i, 0], positions[i, 1], types[i], owner, box):
            raise InputError(
                f"`positions` has particle {i} of type {types[i]} at {positions[i]}; it must be "
                "inside the box where `owner` has its type"
            )
