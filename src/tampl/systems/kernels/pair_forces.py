"""Lennard-Jones forces between particles of several types, from all pairs or from a list.

Two particles at distance r below the cutoff r_c have the energy, truncated and shifted,
    u(r) = 4 epsilon ((sigma / r)^12 - (sigma / r)^6) - u_c,    u(r_c) = 0,
with epsilon and sigma of their two types. With C_12 = 48 epsilon sigma^12 and C_6 = 24 epsilon
sigma^6, and q for r^-6, the force on a particle is q (C_12 q - C_6) / r^2 times the vector from
the other one to it.

Every sum has one order and no operation is contracted or reordered, so the numbers do not depend
on the vector instructions of the processor.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from ...errors import InputError
from .neighbours import PairList

__all__ = [
    "Fluid",
    "closest_pair",
    "energy_scale",
    "forces",
    "listed_energy",
    "listed_forces",
    "pair_table",
]

# Columns of the pair table.
_C12, _C6, _SHIFT, _EPSILON, _SIGMA = range(5)


class Fluid(NamedTuple):
    """What particles feel: the table of `pair_table`, its cutoff, and the edge L of the box."""

    pairs: NDArray[np.float64]
    cutoff: float
    box: float


def pair_table(epsilon: ArrayLike, sigma: ArrayLike, cutoff: float) -> NDArray[np.float64]:
    """The coefficients C_12, C_6, u_c, epsilon and sigma of each pair of types.

    Arguments:
        epsilon: Depths of the wells before the shift, (T, T), symmetric.
        sigma: Distances of zero energy before the shift, (T, T), symmetric.
        cutoff: Distance r_c, the same for all types.

    Returns:
        The table, (T, T, 5).
    """
    epsilon, sigma = np.asarray(epsilon, np.float64), np.asarray(sigma, np.float64)
    for name, matrix in (("epsilon", epsilon), ("sigma", sigma)):
        if not (np.isfinite(matrix).all() and np.array_equal(matrix, matrix.T)):
            raise InputError(
                f"`{name}` is {matrix.tolist()}; types a and b must have one finite value "
                "whichever comes first"
            )
    shift = 4 * epsilon * ((sigma / cutoff) ** 12 - (sigma / cutoff) ** 6)
    c12, c6 = 48 * epsilon * sigma**12, 24 * epsilon * sigma**6
    return np.stack([c12, c6, shift, epsilon, sigma], axis=-1)


def energy_scale(pairs: NDArray[np.float64], temperature: float) -> float:
    """What energies of a particle are measured by: the temperature or the deepest well."""
    return max(float(temperature), float(pairs[..., _EPSILON].max()))


@njit(nogil=True, cache=True, error_model="numpy")
def _energy(r2: float, pair: NDArray[np.float64]) -> float:
    q = 1.0 / (r2 * r2 * r2)
    return q * (pair[_C12] * q / 12.0 - pair[_C6] / 6.0) - pair[_SHIFT]


@njit(nogil=True, cache=True, error_model="numpy")
def _strength(r2: float, c12: float, c6: float) -> float:
    """The force divided by the distance."""
    inverse = 1.0 / r2
    q = inverse * inverse * inverse
    return inverse * q * (c12 * q - c6)


@njit(nogil=True, cache=True)
def forces(
    positions: NDArray[np.float64],
    types: NDArray[np.uint8],
    pairs: NDArray[np.float64],
    cutoff: float,
) -> tuple[float, NDArray[np.float64]]:
    """Potential energy and forces from all pairs, without a list.

    Arguments:
        positions: Particles, (N, 2).
        types: Their types, (N,), below T.
        pairs: The table of `pair_table`, (T, T, 5).
        cutoff: Distance r_c.

    Returns:
        The energy and the forces, (N, 2).
    """
    energy, force = 0.0, np.zeros(positions.shape)
    for i in range(positions.shape[0]):
        for j in range(i + 1, positions.shape[0]):
            dx, dy = positions[i, 0] - positions[j, 0], positions[i, 1] - positions[j, 1]
            r2 = dx * dx + dy * dy
            if r2 < cutoff * cutoff:
                pair = pairs[types[i], types[j]]
                energy += _energy(r2, pair)
                strength = _strength(r2, pair[_C12], pair[_C6])
                force[i, 0] += strength * dx
                force[i, 1] += strength * dy
                force[j, 0] -= strength * dx
                force[j, 1] -= strength * dy
    return energy, force


@njit(nogil=True, cache=True)
def listed_forces(
    positions: NDArray[np.float64],
    types: NDArray[np.uint8],
    pairs: NDArray[np.float64],
    cutoff: float,
    near: PairList,
    force: NDArray[np.float64],
) -> None:
    """Puts the forces of all listed pairs into `force`, (N, 2)."""
    force[:] = 0.0
    for i in range(positions.shape[0]):
        x, y = positions[i, 0], positions[i, 1]
        row = pairs[types[i]]
        fx, fy = 0.0, 0.0
        for at in range(near.first[i], near.first[i + 1]):
            j = near.partners[at]
            dx, dy = x - positions[j, 0], y - positions[j, 1]
            r2 = dx * dx + dy * dy
            if r2 < cutoff * cutoff:
                strength = _strength(r2, row[types[j], _C12], row[types[j], _C6])
                fx += strength * dx
                fy += strength * dy
                force[j, 0] -= strength * dx
                force[j, 1] -= strength * dy
        force[i, 0] += fx
        force[i, 1] += fy


@njit(nogil=True, cache=True)
def listed_energy(
    positions: NDArray[np.float64],
    types: NDArray[np.uint8],
    pairs: NDArray[np.float64],
    cutoff: float,
    near: PairList,
) -> float:
    """The potential energy of all listed pairs."""
    energy = 0.0
    for i in range(positions.shape[0]):
        for at in range(near.first[i], near.first[i + 1]):
            j = near.partners[at]
            dx, dy = positions[i, 0] - positions[j, 0], positions[i, 1] - positions[j, 1]
            r2 = dx * dx + dy * dy
            if r2 < cutoff * cutoff:
                energy += _energy(r2, pairs[types[i], types[j]])
    return energy


@njit(nogil=True, cache=True)
def closest_pair(
    positions: NDArray[np.float64], types: NDArray[np.uint8], pairs: NDArray[np.float64]
) -> tuple[int, int, float]:
    """The two particles nearest to each other in units of their sigma, and that distance."""
    first, second, closest = 0, 0, np.inf
    for i in range(positions.shape[0]):
        for j in range(i + 1, positions.shape[0]):
            dx, dy = positions[i, 0] - positions[j, 0], positions[i, 1] - positions[j, 1]
            square = (dx * dx + dy * dy) / pairs[types[i], types[j], _SIGMA] ** 2
            if square < closest:
                first, second, closest = i, j, square
    return first, second, np.sqrt(closest)
