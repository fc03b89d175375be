r"""Which row space reconstruction and prediction of the current macrostate select together.

Over encoders of rank d, min_{D, G} lambda_cur L_cur + lambda_rec L_rec is smallest if and only if
row(B Sigma^{1/2}) is a top-d eigenspace of

    M = M_cur + lambda_rec Sigma,    M_cur = lambda_cur Sigma^{1/2} C^T C Sigma^{1/2}:

M_cur rewards directions that predict y, lambda_rec Sigma directions of large variance. A
functional q x of the microstate keeps the fraction q~ P_B q~^T / q~ q~^T of its variance in
z = B x, where q~ = q Sigma^{1/2} and P_B projects onto row(B Sigma^{1/2}). This is the coefficient
of determination of its best readout; for a single observable it never grows with lambda_rec.

In two dimensions, x = (u, n) and y = c u, one latent coordinate has to choose between u and the
irrelevant n by the larger of the eigenvalues

    (lambda_cur c^2 + lambda_rec) variance_u    and    lambda_rec variance_n.

Reference: Theorem 1 of the paper, its two-dimensional illustration, and its appendix "When
reconstruction harms macroscopic prediction".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .checks import RANK_TOLERANCE, as_matrix, require_finite
from .linear import (
    LinearSystem,
    T,
    Weights,
    norm2,
    reconstruction_loss,
    require_latent_dim,
    spectral_norm,
)
from .realisability import require_full_rank, require_single

__all__ = [
    "Illustration",
    "SpectralSelection",
    "Threshold",
    "find_threshold",
    "kept_variance",
    "run_selection",
    "select",
    "spectral_matrix",
    "two_dimensional_system",
    "two_dimensional_threshold",
]

SEARCHED = 400
"""Weights at which a threshold is searched before it is refined by bisection."""

POINTS = 240
"""Weights of the illustration; even, so that none is the threshold, where both coordinates tie."""

DECADES = 1.5
"""Range of the illustration to either side of the threshold."""


@dataclass(frozen=True, eq=False)
class SpectralSelection:
    """An encoder that Theorem 1 selects, and whether the theorem selects any other row space.

    Attributes:
        B: An optimal encoder with B Sigma B^T = I, (..., d, n).
        D: Its best readout, (..., m, d).
        G: Its best decoder, (..., n, d).
        basis: Orthonormal rows that span row(B Sigma^{1/2}), (..., d, n).
        eigenvalues: The eigenvalues of M, falling, (..., n).
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
    """The weight at which reconstruction drives a direction out of the latent space.

    Attributes:
        rec: The smallest lambda_rec at which the direction is lost; 0 if it is lost without
            reconstruction already, infinite if it is kept up to lambda_rec = `searched`.
        kept_before: The fraction of its variance kept just below `rec`, or at `searched`.
        kept_after: The fraction kept just above `rec`: an exchange of eigenvalues makes it jump.
        kept_last: The fraction kept at `searched`.
        searched: The largest lambda_rec that was tried.
    """

    rec: float
    kept_before: float
    kept_after: float
    kept_last: float
    searched: float


def spectral_matrix(system: LinearSystem, weights: Weights) -> np.ndarray:
    """M = lambda_cur Sigma^{1/2} C^T C Sigma^{1/2} + lambda_rec Sigma, (..., n, n)."""
    Y = system.C @ system.root
    return weights.cur * T(Y) @ Y + weights.rec * system.Sigma


def select(system: LinearSystem, weights: Weights, *, latent_dim: int) -> SpectralSelection:
    """The top-d eigenspace of M, with an encoder, readout and decoder that attain the minimum."""
    require_latent_dim(system, latent_dim)
    values, vectors = np.linalg.eigh(spectral_matrix(system, weights))
    values, vectors = values[..., ::-1], vectors[..., ::-1]
    basis = T(vectors[..., :latent_dim])
    B = T(np.linalg.solve(system.root, T(basis)))
    whole = latent_dim == system.n
    gap = values[..., latent_dim - 1] - (-np.inf if whole else values[..., latent_dim])
    return SpectralSelection(
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


def kept_variance(system: LinearSystem, B: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """The fraction of the variance of `direction` x, a functional (n,), that B x keeps, (...,)."""
    q = as_matrix(np.atleast_2d(direction), "direction")
    require_finite(q, "direction")
    if q.shape != (1, system.n) or not np.any(q):
        raise InputError(
            f"`direction` must be one functional of the n = {system.n} coordinates, not zero; its"
            f" shape is {q.shape}, its norm {np.linalg.norm(q):.3g}"
        )
    B = as_matrix(B, "B")
    require_full_rank(system, B)
    rows = np.linalg.svd(B @ system.root, full_matrices=False)[2]
    # Of a size near one, so that no square vanishes; a power of two rounds nothing.
    q = q / np.exp2(np.floor(np.log2(np.max(np.abs(q))))) @ system.root
    return np.sum((q @ T(rows)) ** 2, axis=(-2, -1)) / np.sum(q**2, axis=(-2, -1))


def find_threshold(
    system: LinearSystem,
    direction: np.ndarray,
    *,
    latent_dim: int,
    cur: float = 1.0,
    fraction: float = 0.5,
) -> Threshold:
    """The smallest lambda_rec at which the selected latent space loses a direction.

    The weights tried range from a thousandth of the smallest positive eigenvalue of M_cur to a
    million times its largest, both over the largest eigenvalue of Sigma, but not so far that
    roundoff would hide the smallest. The first loss among them is bisected. With several
    observables, a loss that a slightly larger weight undoes may be missed.

    Arguments:
        system: One system, not a batch.
        direction: A functional q of the microstate (n,), for instance a row of C.
        latent_dim: The latent dimension d.
        cur: The weight lambda_cur.
        fraction: The direction is lost where less than this fraction of its variance is kept.
    """
    require_single(system)
    if not 0 < fraction <= 1:
        raise InputError(f"`fraction` = {fraction} must be above 0 and at most 1")
    if cur == 0 or not np.any(system.C):
        raise InputError(f"`cur` = {cur} and `C` must not be zero: no task competes with Sigma")

    def keep(rec: float) -> float:
        selected = select(system, Weights(cur=cur, rec=rec), latent_dim=latent_dim)
        return float(kept_variance(system, selected.B, direction))

    gains = np.linalg.eigvalsh(spectral_matrix(system, Weights(cur=cur)))
    gains = gains[gains > RANK_TOLERANCE * gains[-1]] / spectral_norm(system.Sigma)
    end = min(1e6 * gains[-1], 1e12 * gains[0])
    tried = np.geomspace(1e-3 * gains[0], end, SEARCHED).tolist()
    # The fraction 1 would be missed by roundoff alone.
    limit, last = fraction - RANK_TOLERANCE, keep(tried[-1])
    first = next((i for i, rec in enumerate(tried) if keep(rec) < limit), None)
    if first is None:
        return Threshold(np.inf, last, last, last, tried[-1])
    if first == 0:
        start = keep(tried[0])
        return Threshold(0.0, start, start, last, tried[-1])
    low, high = tried[first - 1], tried[first]
    while high / low > 1 + 1e-15:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if keep(middle) < limit else (middle, high)
    # At the threshold itself two eigenvalues are equal, and roundoff would choose.
    return Threshold(high, keep((1 - 1e-6) * high), keep((1 + 1e-6) * high), last, tried[-1])


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
    if not (np.isfinite(c) and c != 0):
        raise InputError(f"`c` = {c} must be finite and not zero: without it there is no task")
    for name, variance in (("variance_u", variance_u), ("variance_n", variance_n)):
        if not 0 < variance < np.inf:
            raise InputError(f"`{name}` = {variance} must be a positive, finite variance")
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


@dataclass(frozen=True, eq=False)
class Illustration:
    """The selected coordinate at each weight `rec` of the reconstruction, (points,).

    Attributes:
        system: The system.
        cur: The weight of the current loss.
        threshold: The weight above which n is selected; infinite where it never is.
        rec: The weights of the reconstruction.
        eigenvalues: The competing eigenvalues, of u and of n, (points, 2).
        kept: The fraction of the variance of y that the selected coordinate determines.
        l_cur: The current loss of the selected encoder with its best readout.
        l_rec: Its reconstruction loss with its best decoder.
    """

    system: LinearSystem
    cur: float
    threshold: float
    rec: np.ndarray
    eigenvalues: np.ndarray
    kept: np.ndarray
    l_cur: np.ndarray
    l_rec: np.ndarray

    def summary(self) -> dict[str, Any]:
        """The threshold, and what is kept of the task to either side of it."""
        ends = {
            side: {
                "lambda_rec": float(self.rec[at]),
                "kept": float(self.kept[at]),
                "l_cur": float(self.l_cur[at]),
                "l_rec": float(self.l_rec[at]),
            }
            for side, at in (("below", 0), ("above", -1))
        }
        variances = np.diagonal(self.system.Sigma).tolist()
        return {
            "c": float(self.system.C[0, 0]),
            "variance_u": variances[0],
            "variance_n": variances[1],
            "lambda_cur": self.cur,
            "threshold": self.threshold,
            **ends,
        }


def run_selection(
    c: float = 1.0, *, variance_u: float = 1.0, variance_n: float = 4.0, cur: float = 1.0
) -> Illustration:
    """Varies the weight of the reconstruction around its threshold, or around 1 if there is none.

    Arguments:
        c: The coefficient of the observable y = c u.
        variance_u: The variance of the coordinate the observable is read from.
        variance_n: The variance of the irrelevant coordinate.
        cur: The weight of the current loss.
    """
    system = two_dimensional_system(c, variance_u=variance_u, variance_n=variance_n)
    threshold = two_dimensional_threshold(c, variance_u=variance_u, variance_n=variance_n, cur=cur)
    centre = threshold if 0 < threshold < np.inf else 1.0
    rec = centre * np.logspace(-DECADES, DECADES, POINTS)
    chosen = [
        select(system, Weights(cur=cur, rec=weight), latent_dim=1) for weight in rec.tolist()
    ]
    encoders = np.stack([selection.B for selection in chosen])
    return Illustration(
        system,
        cur,
        threshold,
        rec,
        eigenvalues=np.stack([(cur * c**2 + rec) * variance_u, rec * variance_n], axis=-1),
        kept=kept_variance(system, encoders, system.C[0]),
        l_cur=np.array([norm2(s.D @ s.B - system.C, system.Sigma) for s in chosen]),
        l_rec=np.array([reconstruction_loss(system, s.B, s.G) for s in chosen]),
    )
