"""Rods of length one after a step: constraint forces by Newton's method, compiled.

A step moves the beads freely, which turns the rod u_k into a trial w_k, and adds a force of
strength lambda_k along each *old* rod to the two beads at its ends. The new rods are
    v_k = w_k + lambda_{k-1} u_{k-1} - 2 lambda_k u_k + lambda_{k+1} u_{k+1},    |v_k|^2 = 1,
one quadratic equation per rod. Each Newton iteration solves the tridiagonal system
    (v_k u_{k-1}) d_{k-1} - 2 (v_k u_k) d_k + (v_k u_{k+1}) d_{k+1} = (1 - |v_k|^2) / 2
for the change d of lambda, starting at lambda = 0.

Moving back along the old gradient of the constraints is an Euler scheme for Brownian motion
projected onto the rigid chain. Its equilibrium is therefore the *rigid* measure, the random walk's
times sqrt(det G) with G_kk = 2 and G_k,k+1 = -u_k u_{k+1}, and not the random walk itself.

Rods and lambda carry a zero at either end, so that no rod is a special case: rod k is at k + 1.

References:
    Ciccotti, Lelievre and Vanden-Eijnden, Comm. Pure Appl. Math. 61 (2008) 371; Hinch, J. Fluid
    Mech. 271 (1994) 219, on rigid rods and stiff springs.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["LIMIT", "TOLERANCE", "make_room", "project"]

TOLERANCE = 1e-6
"""What the square root of the sum over the rods of (|v|^2 - 1)^2 may be after a step."""

LIMIT = 20
"""Newton iterations after which a step counts as unsolvable; three are usual."""


@njit(nogil=True, cache=True)
def make_room(beads: int) -> NDArray[np.float64]:
    """Room for the linear system of a chain: its three diagonals and right side, (4, n).

    An even number n of rows is needed; where there is one row too many, it says d = 0.
    """
    system = np.zeros((4, beads // 2 * 2))
    system[1, -1] = 1.0
    return system


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _linearise(
    rods: NDArray[np.float64],
    trial: NDArray[np.float64],
    strength: NDArray[np.float64],
    moved: NDArray[np.float64],
    system: NDArray[np.float64],
) -> float:
    """Writes the rods v, (3, R), and the first R columns of the system, (4, n).

    Returns:
        The sum of the squared right sides (1 - |v|^2) / 2; not finite where a rod is not.
    """
    error = 0.0
    for k in range(trial.shape[1]):
        left, here, right = strength[k], 2.0 * strength[k + 1], strength[k + 2]
        squared, below, centre, above = 0.0, 0.0, 0.0, 0.0
        for a in range(3):
            v = trial[a, k] + left * rods[a, k] - here * rods[a, k + 1] + right * rods[a, k + 2]
            moved[a, k] = v
            squared += v * v
            below += v * rods[a, k]
            centre += v * rods[a, k + 1]
            above += v * rods[a, k + 2]
        residual = 0.5 - 0.5 * squared
        system[0, k], system[1, k] = below, -2.0 * centre
        system[2, k], system[3, k] = above, residual
        error += residual * residual
    return error


@njit(nogil=True, cache=True, fastmath={"contract"})
def _solve(system: NDArray[np.float64], strength: NDArray[np.float64]) -> None:
    """Adds the solution of the system (4, n), which is used up, to `strength`, (R + 2,).

    Rows are eliminated from both ends until two are left, and resolved from these outward. Each
    division waits for the one before it, so two chains of them take half the time of one.
    """
    below, centre, above, right = system
    half, i, j = centre.size // 2, 0, centre.size - 1
    top_centre, top_right, low_centre, low_right = centre[i], right[i], centre[j], right[j]
    for _ in range(half - 1):
        top, low = 1.0 / top_centre, 1.0 / low_centre
        centre[i], right[i], centre[j], right[j] = top, top_right, low, low_right
        top_centre = centre[i + 1] - (below[i + 1] * above[i]) * top
        top_right = right[i + 1] - (below[i + 1] * top) * top_right
        low_centre = centre[j - 1] - (above[j - 1] * below[j]) * low
        low_right = right[j - 1] - (above[j - 1] * low) * low_right
        i, j = i + 1, j - 1
    determinant = top_centre * low_centre - above[i] * below[j]
    x = (top_right * low_centre - above[i] * low_right) / determinant
    y = (low_right * top_centre - below[j] * top_right) / determinant
    strength[i + 1] += x
    strength[j + 1] += y
    for _ in range(half - 1):
        i, j = i - 1, j + 1
        # The inverse of what was eliminated stands where the centre was.
        x = right[i] * centre[i] - (above[i] * centre[i]) * x
        y = right[j] * centre[j] - (below[j] * centre[j]) * y
        strength[i + 1] += x
        strength[j + 1] += y


@njit(nogil=True, cache=True)
def project(
    rods: NDArray[np.float64],
    trial: NDArray[np.float64],
    strength: NDArray[np.float64],
    moved: NDArray[np.float64],
    system: NDArray[np.float64],
) -> bool:
    """Finds the constraint forces that give all rods the length one.

    Arguments:
        rods: Rods before the step with a zero rod at either end, (3, R + 2).
        trial: Rods after the step without constraint forces, (3, R).
        strength: Receives lambda with a zero at either end, (R + 2,).
        moved: Receives the rods after the step, (3, R).
        system: What `make_room` returned.

    Returns:
        Whether the lengths are one within `TOLERANCE` after at most `LIMIT` iterations.
    """
    strength[:] = 0.0
    for _ in range(LIMIT):
        # The comparison is false for NaN, so that a broken chain never passes.
        if 4.0 * _linearise(rods, trial, strength, moved, system) <= TOLERANCE**2:
            return True
        _solve(system, strength)
    return False
