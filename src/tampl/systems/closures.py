"""Textbook closures of the SIRS model: mean field and pair approximation.

Mean field puts S I in place of the probability p(S, I) of an ordered pair of neighbours:
    dS/dt = mu R - beta S I,  dI/dt = beta S I - gamma I,  dR/dt = gamma I - mu R.
The pair approximation keeps p(S, I), puts beta p(S, I) in place of beta S I above, and treats two
neighbours of one site as independent given that site, with q = p(S, I) / S:
    dp(S,I)/dt = mu p(R,I) - (gamma + beta/4) p(S,I) + 3/4 beta q (S - 2 p(S,I) - p(S,R)),
    dp(S,R)/dt = gamma p(S,I) + mu (R - p(R,I) - 2 p(S,R)) - 3/4 beta q p(S,R),
    dp(R,I)/dt = gamma (I - p(S,I)) - (2 gamma + mu) p(R,I) + 3/4 beta q p(S,R).
R = 1 - S - I throughout, and p(A,S) + p(A,I) + p(A,R) = A gives the pairs that are not evolved.

References:
    Joo and Lebowitz, Phys. Rev. E 70 (2004) 036114.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from ..errors import InputError

__all__ = ["mean_field", "pair_approximation", "pair_fractions"]

_Array = NDArray[np.float64]

# Below the integrator's absolute tolerance, so the guard acts where S is zero to its accuracy.
_NO_SUSCEPTIBLE = 1e-12


def pair_fractions(lattices: NDArray[Any]) -> _Array:
    """Fractions p(A, B) of ordered nearest-neighbour pairs on periodic lattices.

    Each bond counts in both directions, so p is symmetric and its rows sum to the site fractions.

    Arguments:
        lattices: Sites in S = 0, I = 1 or R = 2, (n, L, L).

    Returns:
        Pair fractions in the order S, I, R, (n, 3, 3).
    """
    pairs = np.zeros((len(lattices), 3, 3))
    for axis in (1, 2):
        codes = 3 * lattices.astype(np.int64) + np.roll(lattices, -1, axis=axis)
        for n, code in enumerate(codes):
            pairs[n] += np.bincount(code.ravel(), minlength=9).reshape(3, 3)
    n_pairs = 4 * lattices.shape[1] * lattices.shape[2]
    return (pairs + pairs.transpose(0, 2, 1)) / n_pairs


def mean_field(sites: _Array, times: _Array, *, beta: float, gamma: float, mu: float) -> _Array:
    """Integrates the mean-field equations from each initial state.

    Arguments:
        sites: Initial fractions S, I, R, (n, 3).
        times: Increasing times, the first one that of the initial states, (F,).
        beta: Rate of infection with all neighbours infected.
        gamma: Rate of recovery.
        mu: Rate of loss of immunity.

    Returns:
        Fractions S, I, R at the times, (n, F, 3).

    Example:
        >>> mean_field(np.array([[0.0, 1.0, 0.0]]), np.array([0.0, 1.0]), beta=0, gamma=1, mu=0)
        array([[[0.        , 1.        , 0.        ],
                [0.        , 0.36787944, 0.63212056]]])
    """

    def velocity(_: float, y: _Array) -> list[float]:
        S, I = y.tolist()
        infection = beta * S * I
        return [mu * (1 - S - I) - infection, infection - gamma * I]

    return _integrate(velocity, sites[:, :2], times)


def pair_approximation(
    pairs: _Array, times: _Array, *, beta: float, gamma: float, mu: float
) -> _Array:
    """Integrates the pair approximation from each initial state.

    Arguments:
        pairs: Initial fractions of ordered pairs, from `pair_fractions`, (n, 3, 3).
        times: Increasing times, the first one that of the initial states, (F,).
        beta: Rate of infection with all neighbours infected.
        gamma: Rate of recovery.
        mu: Rate of loss of immunity.

    Returns:
        Fractions S, I, R at the times, (n, F, 3).
    """

    def velocity(_: float, y: _Array) -> list[float]:
        S, I, SI, SR, RI = y.tolist()
        R = 1 - S - I
        # q is a conditional probability; where S vanishes so does all that it multiplies.
        q = min(max(SI, 0.0) / max(S, _NO_SUSCEPTIBLE), 1.0)
        indirect = 0.75 * beta * q
        return [
            mu * R - beta * SI,
            beta * SI - gamma * I,
            mu * RI - (gamma + beta / 4) * SI + indirect * (S - 2 * SI - SR),
            gamma * SI + mu * (R - RI - 2 * SR) - indirect * SR,
            gamma * (I - SI) - (2 * gamma + mu) * RI + indirect * SR,
        ]

    S, I, R = 0, 1, 2
    sites = pairs.sum(axis=-1)[:, :2]
    initial = np.column_stack([sites, pairs[:, S, I], pairs[:, S, R], pairs[:, R, I]])
    return _integrate(velocity, initial, times)


def _integrate(
    velocity: Callable[[float, _Array], list[float]], initial: _Array, times: _Array
) -> _Array:
    """Solves dy/dt = velocity(t, y), where y begins with S and I, from each row of `initial`.

    Returns:
        Fractions S, I, R at the times, (n, F, 3).
    """
    fractions = np.empty((len(initial), len(times), 3))
    for n, y in enumerate(initial):
        # LSODA changes to a stiff method by itself where beta is far above the other rates.
        solution = solve_ivp(
            velocity, (times[0], times[-1]), y, "LSODA", t_eval=times, rtol=1e-10, atol=1e-12
        )
        if not solution.success:
            raise InputError(
                f"the closure equations could not be integrated ({solution.message}); "
                "use rates and times of moderate size"
            )
        S, I = solution.y[:2]
        fractions[n] = np.column_stack([S, I, 1 - S - I])
    return fractions
