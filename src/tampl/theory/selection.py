r"""Which row space reconstruction and prediction of the current macrostate select together.

Over encoders of rank d, min_{D, G} lambda_cur L_cur + lambda_rec L_rec is smallest exactly where
row(B Sigma^{1/2}) is a top-d eigenspace of

    M = M_cur + lambda_rec Sigma,    M_cur = lambda_cur Sigma^{1/2} C^T C Sigma^{1/2},

and with P_B the orthogonal projector onto that row space the inner minimum is tr[(I - P_B) M]:
M_cur rewards directions that predict y, lambda_rec Sigma directions of large variance.

A functional q x of the microstate keeps the fraction q~ P_B q~^T / q~ q~^T, q~ = q Sigma^{1/2},
of its variance in z = B x: the coefficient of determination of its best readout. It counts as
lost where this is below a given fraction. For a single observable (m = 1, q = C) what is kept
never grows with lambda_rec, since it is tr(P_B M_cur) / tr(M_cur), which P_B trades against
tr(P_B Sigma).

Reference: Theorem 1 of the paper and its appendix "When reconstruction harms macroscopic
prediction".
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .checks import RANK_TOLERANCE, as_matrix, require_count, require_finite
from .linear import LinearSystem, T, Weights
from .realisability import refuse_batch, refuse_deficient

__all__ = [
    "Selection",
    "Threshold",
    "find_threshold",
    "kept_variance",
    "profiled_loss",
    "select",
    "spectral_matrix",
    "two_dimensional_system",
    "two_dimensional_threshold",
]


@dataclass(frozen=True, eq=False)
class Selection:
    """The encoders that Theorem 1 selects, by one of them, and how firmly.

    Attributes:
        B: An optimal encoder with B Sigma B^T = I, (..., d, n).
        D: Its best readout, (..., m, d).
        G: Its best decoder, (..., n, d).
        basis: Orthonormal rows that span row(B Sigma^{1/2}), (..., d, n).
        eigenvalues: Those of M, falling, (..., n).
        gap: The d-th eigenvalue less the next one, (...,); infinite for d = n.
        loss: The smallest objective, the sum of the eigenvalues after the d-th, (...,).
        unique: Whether the gap is above roundoff, so that no other row space is optimal.
    """

    B: np.ndarray
    D: np.ndarray
    G: np.ndarray
    basis: np.ndarray
    eigenvalues: np.ndarray
    gap: np.ndarray
    loss: np.ndarray
    unique: np.ndarray


@dataclass(frozen=True)
class Threshold:
    """Where reconstruction drives a direction out of the latent space.

    Attributes:
        rec: The smallest lambda_rec at which it is lost; 0 where it is lost at any, infinite
            where it never is.
        kept_before: The fraction of its variance kept just below `rec`.
        kept_after: The fraction kept just above: an exchange of eigenvalues makes it jump.
        kept_last: The fraction kept at the largest weight searched, where reconstruction rules.
    """

    rec: float
    kept_before: float
    kept_after: float
    kept_last: float


def spectral_matrix(system: LinearSystem, weights: Weights) -> np.ndarray:
    """M = lambda_cur Sigma^{1/2} C^T C Sigma^{1/2} + lambda_rec Sigma, (..., n, n)."""
    Y = system.C @ system.root
    return weights.cur * T(Y) @ Y + weights.rec * system.Sigma


def select(system: LinearSystem, weights: Weights, *, latent_dim: int) -> Selection:
    """The top-d eigenspace of M, with an encoder, readout and decoder that attain the minimum."""
    _require_latent_dim(system, latent_dim)
    values, vectors = np.linalg.eigh(spectral_matrix(system, weights))
    values, vectors = values[..., ::-1], vectors[..., ::-1]
    basis = T(vectors[..., :latent_dim])
    B = T(np.linalg.solve(system.root, T(basis)))
    whole = latent_dim == system.n
    gap = values[..., latent_dim - 1] - (-np.inf if whole else values[..., latent_dim])
    return Selection(
        B=B,
        # B Sigma B^T = I leaves nothing to invert in the least-squares readout and decoder.
        D=system.C @ system.Sigma @ T(B),
        G=system.Sigma @ T(B),
        basis=basis,
        eigenvalues=values,
        gap=gap,
        loss=np.sum(values[..., latent_dim:], axis=-1),
        unique=gap > RANK_TOLERANCE * values[..., 0],
    )


def profiled_loss(system: LinearSystem, B: np.ndarray, weights: Weights) -> np.ndarray:
    """min_{D, G} lambda_cur L_cur + lambda_rec L_rec of an encoder of full row rank, (...,)."""
    M = spectral_matrix(system, weights)
    Q = _whitened_rows(system, B)
    return np.trace(M, axis1=-2, axis2=-1) - np.trace(Q @ M @ T(Q), axis1=-2, axis2=-1)


def kept_variance(system: LinearSystem, B: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """The fraction of the variance of `direction` x, a functional (n,), that B x keeps, (...,)."""
    q = _direction(system, direction) @ system.root
    part = q @ T(_whitened_rows(system, B))
    return np.sum(part**2, axis=(-2, -1)) / np.sum(q**2, axis=(-2, -1))


def find_threshold(
    system: LinearSystem,
    direction: np.ndarray,
    *,
    latent_dim: int,
    cur: float = 1.0,
    fraction: float = 0.5,
) -> Threshold:
    """The smallest lambda_rec at which the selected latent space loses a direction.

    lambda_rec is searched over eighteen decades around lambda_max(M_cur) / lambda_max(Sigma),
    forty points each, and the first loss then bisected to roundoff. Where what is kept never
    grows with lambda_rec (one observable) that is the answer; otherwise a loss that is undone
    within a fortieth of a decade is passed over.

    Arguments:
        system: One system, not a batch.
        direction: A functional q of the microstate (n,), for instance a row of C.
        latent_dim: The latent dimension d.
        cur: The weight lambda_cur.
        fraction: The direction is lost where less than this fraction of its variance is kept.
    """
    refuse_batch(system)
    _require_latent_dim(system, latent_dim)
    if not 0 < fraction <= 1:
        raise InputError(f"`fraction` = {fraction} must be above 0 and at most 1")
    q = _direction(system, direction) @ system.root
    M_cur = spectral_matrix(system, Weights(cur=cur))
    if np.linalg.norm(M_cur) == 0:
        raise InputError(f"`cur` = {cur} and `C` must not be zero: no task competes with Sigma")

    def kept(rec: float) -> float:
        top = np.linalg.eigh(M_cur + rec * system.Sigma)[1][:, -latent_dim:]
        return float(np.sum((q @ top) ** 2) / np.sum(q**2))

    unit = np.linalg.norm(M_cur, 2) / np.linalg.norm(system.Sigma, 2)
    grid = unit * np.logspace(-9, 9, 18 * 40 + 1)
    # The fraction 1 would be missed by roundoff alone.
    limit = fraction - RANK_TOLERANCE
    lost = next((i for i, rec in enumerate(grid) if kept(rec) < limit), None)
    last = kept(grid[-1])
    if lost is None:
        return Threshold(rec=np.inf, kept_before=last, kept_after=last, kept_last=last)
    if lost == 0:
        first = kept(grid[0])
        return Threshold(rec=0.0, kept_before=first, kept_after=first, kept_last=last)
    rec = _bisect(lambda rec: kept(rec) < limit, float(grid[lost - 1]), float(grid[lost]))
    # Closer than this, roundoff mixes the two eigenvectors that change places.
    before, after = kept(rec * (1 - 1e-6)), kept(rec * (1 + 1e-6))
    return Threshold(rec=rec, kept_before=before, kept_after=after, kept_last=last)


def two_dimensional_system(
    c: float, *, variance_u: float, variance_n: float, a: float = 0.9, b: float = 0.5
) -> LinearSystem:
    """The paper's illustration: x = (u, n) uncorrelated, A = diag(a, b), y = c u.

    Arguments:
        c: The coefficient c_u of the observable, not zero.
        variance_u: The variance of the relevant coordinate u.
        variance_n: The variance of the irrelevant coordinate n.
        a: The eigenvalue of u.
        b: The eigenvalue of n.
    """
    return LinearSystem(np.diag([a, b]), np.array([[c, 0.0]]), np.diag([variance_u, variance_n]))


def two_dimensional_threshold(
    c: float, *, variance_u: float, variance_n: float, cur: float = 1.0
) -> float:
    """Above this lambda_rec one latent coordinate is the irrelevant n; infinite where it never is.

        lambda_rec variance_n > (lambda_cur c^2 + lambda_rec) variance_u

    Example:
        >>> two_dimensional_threshold(1.0, variance_u=1.0, variance_n=3.0)
        0.5
    """
    two_dimensional_system(c, variance_u=variance_u, variance_n=variance_n)
    excess = variance_n - variance_u
    return cur * c**2 * variance_u / excess if excess > 0 else np.inf


def _bisect(lost: Callable[[float], bool], low: float, high: float) -> float:
    """The point between `low`, not lost, and `high`, lost, where that changes, to roundoff."""
    while high / low > 1 + 1e-15:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if lost(middle) else (middle, high)
    return high


def _whitened_rows(system: LinearSystem, B: np.ndarray) -> np.ndarray:
    """Orthonormal rows that span row(B Sigma^{1/2})."""
    B = as_matrix(B, "B")
    refuse_deficient(system, B)
    return np.linalg.svd(B @ system.root, full_matrices=False)[2]


def _direction(system: LinearSystem, direction: np.ndarray) -> np.ndarray:
    q = as_matrix(np.atleast_2d(direction), "direction")
    require_finite(q, "direction")
    if q.shape != (1, system.n) or not np.any(q):
        raise InputError(
            f"`direction` must be one functional of the n = {system.n} coordinates, not zero; its"
            f" shape is {q.shape}, its norm {np.linalg.norm(q):.3g}"
        )
    return q


def _require_latent_dim(system: LinearSystem, latent_dim: int) -> None:
    require_count(latent_dim, "latent_dim", 1)
    if latent_dim > system.n:
        raise InputError(
            f"`latent_dim` = {latent_dim} must be at most n = {system.n}, the rows of `A`"
        )
