r"""What supervision by macrostates alone leaves open, and what latent consistency closes.

L_cur = L_tr = 0 implies D K^h B = C A^h for every h. Exact macrostates through a horizon H do not
imply them at H + 1: store the outputs that are asked for and shift them,

    B = [C; C A; ...; C A^H],    D = [I 0 ... 0],    K = shift up by one block, zero at the end,

so that D K^h B = C A^h for h <= H and D K^{H+1} B = 0. Where the readout is exact, D B = C, and
Delta = K B - B A, the next two macrostates see of Delta only

    D K B - C A = D Delta,    D K^2 B - C A^2 = D K Delta + D Delta A,

so columns of Delta in ker D are free for one step. All futures factor through K B, hence exact
macrostates through H need

    row [C A; ...; C A^H] inside row(K B)    and    rank [C A; ...; C A^H] <= rank(K B).

Reference: the paper's proposition "One-step macrostate supervision" and its appendix "Macroscopic
supervision and latent consistency".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..errors import InputError
from .checks import RANK_TOLERANCE, TOLERANCE, require_count
from .linear import (
    LinearSystem,
    Realisation,
    T,
    current_loss,
    norm2,
    rollout_error,
    transition_residual,
)
from .realisability import realise, refuse_batch

__all__ = [
    "Counterexample",
    "Obstruction",
    "OneStep",
    "cyclic_system",
    "diagonal_system",
    "find_obstruction",
    "make_counterexample",
    "split_transition_error",
]


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A model that fits every supervised macrostate and fails at the first one after them.

    Attributes:
        system: The system.
        wrong: The model that stores and shifts the supervised outputs, d = m (H + 1).
        exact: An exact realisation of the same dimension, or None where there is none.
        horizon: The supervised horizon H.
        errors: ||D K^h B - C A^h||^2_Sigma of `wrong` for h = 0 .. H + 1.
        rank_encoder: The rank of B.
        rank_predicted: The rank of K B, which has lost what step H + 1 needs.
        holds: Whether the supervised errors are roundoff and the one after them is not zero.
    """

    system: LinearSystem
    wrong: Realisation
    exact: Realisation | None
    horizon: int
    errors: np.ndarray
    rank_encoder: int
    rank_predicted: int
    holds: bool


@dataclass(frozen=True, eq=False)
class OneStep:
    """What macrostates one and two steps ahead see of the transition residual.

    Attributes:
        Delta: K B - B A, (..., d, n).
        D_Delta: D Delta, the whole error of the next macrostate, (..., m, n).
        D_K_Delta: D K Delta, the error one step later where the next macrostate is exact.
        total: ||Delta||^2_Sigma, what latent supervision penalises, (...,).
        seen: ||D Delta||^2_Sigma, what next-macrostate supervision penalises, (...,).
        unseen: ||(I - P) Delta||^2_Sigma with P the projector onto row(D): the part of Delta in
            ker D, free under one-step supervision, (...,).
        later: ||D K Delta||^2_Sigma, (...,).
        free_dim: The dimension of ker D, 0 where one step determines Delta, (...,).
    """

    Delta: np.ndarray
    D_Delta: np.ndarray
    D_K_Delta: np.ndarray
    total: np.ndarray
    seen: np.ndarray
    unseen: np.ndarray
    later: np.ndarray
    free_dim: np.ndarray


@dataclass(frozen=True, eq=False)
class Obstruction:
    """Whether the predicted next latent state has lost what later macrostates need.

    Attributes:
        required_rank: The rank of [C A; ...; C A^H].
        available_rank: The rank of K B.
        missing: Orthonormal rows, (k, n): the functionals outside row(K B), one for each
            direction that the required row space has there.
        by_rank: Whether the ranks alone rule out exact macrostates through H.
        by_row_space: Whether the row spaces do. False rules nothing in: K may still carry the
            information wrongly.
    """

    required_rank: int
    available_rank: int
    missing: np.ndarray
    by_rank: bool
    by_row_space: bool


def diagonal_system(observed: Sequence[float], hidden: Sequence[float] = ()) -> LinearSystem:
    """A = diag(observed, hidden), C = (1, .., 1, 0, .., 0), Sigma = I.

    The paper's example is `diagonal_system([a, b], [c])`.
    """
    C = np.concatenate([np.ones(len(observed)), np.zeros(len(hidden))])
    return LinearSystem(np.diag([*observed, *hidden]), C[None], np.eye(len(C)))


def cyclic_system(horizon: int, decay: float = 0.9) -> LinearSystem:
    """H + 1 coordinates that pass their value on in a circle, the first observed, and one hidden.

    Up to the decay, its outputs are any H + 1 numbers, repeated: unlike those of many distinct
    real eigenvalues, they stay independent in float64 for every horizon. Both have an exact
    realisation of dimension H + 1.
    """
    require_count(horizon, "horizon")
    cycle = np.roll(np.eye(horizon + 1), 1, axis=1)
    return LinearSystem(
        decay * linalg.block_diag(cycle, [[0.5]]),
        np.eye(1, horizon + 2),
        np.eye(horizon + 2),
    )


def make_counterexample(system: LinearSystem, horizon: int) -> Counterexample:
    """Builds the shift model for the horizon H and checks it; needs m (H + 1) <= n."""
    refuse_batch(system)
    require_count(horizon, "horizon")
    d, m = system.m * (horizon + 1), system.m
    if d > system.n:
        raise InputError(
            f"`horizon` = {horizon} stores m (H + 1) = {d} outputs, which must be at most"
            f" n = {system.n}; take a horizon of at most {system.n // m - 1}"
        )
    outputs = _outputs(system, horizon + 1)
    wrong = Realisation(
        np.concatenate(outputs[:-1]), np.eye(m, d), np.kron(np.eye(horizon + 1, k=1), np.eye(m))
    )
    errors = rollout_error(system, wrong, horizon + 1)
    sizes = np.array([norm2(Y, system.Sigma) for Y in outputs])
    supervised = np.all(errors[:-1] <= TOLERANCE**2 * sizes[:-1])
    return Counterexample(
        system=system,
        wrong=wrong,
        exact=_realise_if_possible(system, d),
        horizon=horizon,
        errors=errors,
        rank_encoder=_rank(wrong.B),
        rank_predicted=_rank(wrong.K @ wrong.B),
        # D K^{H+1} B is zero exactly: the last error is the size of the output itself.
        holds=bool(supervised and errors[-1] > 0),
    )


def split_transition_error(system: LinearSystem, r: Realisation) -> OneStep:
    """Splits Delta by what the readout sees of it; refuses a readout that is not exact."""
    size = norm2(system.C, system.Sigma) + norm2(r.D @ r.B, system.Sigma)
    loss = current_loss(system, r)
    if np.any(loss > TOLERANCE**2 * size):
        raise InputError(
            f"`r` must have an exact readout, D B = C; ||D B - C||_Sigma ="
            f" {np.sqrt(np.max(loss)):.3g}"
        )
    Delta = transition_residual(system, r)
    D_Delta, D_K_Delta = r.D @ Delta, r.D @ r.K @ Delta
    rest = Delta - np.linalg.pinv(r.D, rcond=RANK_TOLERANCE) @ D_Delta
    return OneStep(
        Delta=Delta,
        D_Delta=D_Delta,
        D_K_Delta=D_K_Delta,
        total=norm2(Delta, system.Sigma),
        seen=norm2(D_Delta, system.Sigma),
        unseen=norm2(rest, system.Sigma),
        later=norm2(D_K_Delta, system.Sigma),
        free_dim=r.latent_dim - np.linalg.matrix_rank(r.D, rtol=RANK_TOLERANCE),
    )


def find_obstruction(system: LinearSystem, r: Realisation, horizon: int) -> Obstruction:
    """Compares row(K B) with the row space that exact macrostates through H >= 1 require."""
    refuse_batch(system)
    require_count(horizon, "horizon", 1)
    required = _rows(np.concatenate(_outputs(system, horizon)[1:]))
    available = _rows(r.K @ r.B)
    outside = required - required @ T(available) @ available
    # Both bases are orthonormal, so a singular value here is the sine of an angle between them.
    _, sines, missing = np.linalg.svd(outside, full_matrices=False)
    missing = missing[sines > TOLERANCE]
    return Obstruction(
        required_rank=len(required),
        available_rank=len(available),
        missing=missing,
        by_rank=len(required) > len(available),
        by_row_space=len(missing) > 0,
    )


def _outputs(system: LinearSystem, horizon: int) -> list[np.ndarray]:
    """C A^h for h = 0 .. horizon."""
    outputs = [system.C]
    for _ in range(horizon):
        outputs.append(outputs[-1] @ system.A)
    return outputs


def _rows(M: np.ndarray) -> np.ndarray:
    _, values, rows = np.linalg.svd(M, full_matrices=False)
    return rows[values > RANK_TOLERANCE * values[0]]


def _rank(M: np.ndarray) -> int:
    return len(_rows(M))


def _realise_if_possible(system: LinearSystem, latent_dim: int) -> Realisation | None:
    try:
        return realise(system, latent_dim)
    except InputError:
        return None
