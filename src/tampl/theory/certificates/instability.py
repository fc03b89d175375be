r"""When TAMPL rounds leave a closed model that has lost the task.

At (B_0, 0, K_0) with K_0 B_0 = B_0 A and C B_0^T = 0, for Sigma = I and symmetric A, let Q be an
orthonormal basis of ker B_0 and A_o = Q^T A Q, C_o = C Q, S_0 = B_0 B_0^T. For the omitted part
X = U Q of a change of B and a change Z of D, rounds with a refreshed, detached target linearise to

    X' = 2 lambda_tr (K_0^T X A_o - K_0^T K_0 X) + 2 lambda_cur Z^T C_o,
    Z' = 2 lambda_cur (C_o X^T - Z S_0),

a closed system: one round of one step mu per block multiplies (X, Z) by I + mu times it. The paper
has S_0 = s^2 I, which makes K_0 symmetric and the system self-adjoint; if moreover K_0 > 0 and
lambda_max(K_0) < lambda_min(A_o) it has an eigenvalue of at least
2 lambda_tr lambda_min(K_0) (lambda_min(A_o) - lambda_max(K_0)) > 0.

Reference: the paper's appendix "Detached instability of the incorrect fixed point".
"""

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..checks import TOLERANCE
from ..linear import LinearSystem, Realisation, T, Weights
from ..updates import require_step
from .attractor import omitted_basis, require_incorrect_point
from .conditions import (
    ROUNDING,
    require,
    require_closed,
    require_point,
    require_weights,
    tell,
)
from .verdicts import Verdict

__all__ = [
    "DetachedInstability",
    "SpectralOrdering",
    "detached_instability",
    "spectral_ordering",
]


@dataclass(frozen=True, eq=False)
class SpectralOrdering:
    """Whether A grows less on the kept subspace than on the omitted one, for symmetric A.

    Attributes:
        smallest_kept: lambda_min(K_0), which has the spectrum of A on row(B_0).
        largest_kept: lambda_max(K_0).
        smallest_omitted: lambda_min of A on ker B_0.
        margin: smallest_omitted - largest_kept.
        verdict: "ordered" where K_0 > 0 and the margin is positive, else "not ordered".
        words: The verdict as a sentence.
    """

    smallest_kept: np.ndarray
    largest_kept: np.ndarray
    smallest_omitted: np.ndarray
    margin: np.ndarray
    verdict: np.ndarray
    words: np.ndarray


def spectral_ordering(system: LinearSystem, r: Realisation) -> SpectralOrdering:
    """Compares the spectrum of A on the kept and on the omitted subspace of a closed encoder.

    Arguments:
        system: The linear system, with Sigma = I and symmetric A.
        r: A model with K B = B A and fewer latent than microscopic dimensions.
    """
    kept, omitted = _split_spectrum(system, r)
    low, high = np.min(kept, axis=-1), np.max(kept, axis=-1)
    least = np.min(omitted, axis=-1)
    margin = least - high
    rounding = ROUNDING * np.linalg.norm(system.A, axis=(-2, -1))
    ordered = (low > rounding) & (margin > rounding)
    verdict = np.where(ordered, Verdict.ORDERED, Verdict.NOT_ORDERED)[()]
    words = tell(_ordering_words, verdict, low, high, least)
    return SpectralOrdering(low, high, least, margin, verdict, words)


@dataclass(frozen=True, eq=False)
class DetachedInstability:
    """The linearised TAMPL round at a closed model without the task, on what the model omits.

    Attributes:
        eigenvalues: All eigenvalues of the system, complex, (..., d (n - d) + m d).
        growth: The largest real part among them.
        bound: 2 lambda_tr lambda_min(K_0) (lambda_min(A_o) - lambda_max(K_0)), the paper's lower
            bound on the growth where `proven`.
        ordering: The spectral ordering the bound rests on.
        isotropy: ||S_0 / s^2 - I||_2 with s^2 = tr(S_0) / d; the bound needs zero.
        proven: Whether the paper's conditions hold: K_0 > 0, the ordering, S_0 = s^2 I.
        verdict: "unstable" where the growth is positive, else "undecided": the calculation then
            says nothing about the directions outside (X, Z).
        words: The verdict as a sentence.
    """

    eigenvalues: np.ndarray
    growth: np.ndarray
    bound: np.ndarray
    ordering: SpectralOrdering
    isotropy: np.ndarray
    proven: np.ndarray
    verdict: np.ndarray
    words: np.ndarray

    def factor(self, mu: float) -> np.ndarray:
        """The largest factor of (X, Z) in one round with mu_E = mu, N_E = 1."""
        require_step(mu)
        return np.max(np.abs(1 + mu * self.eigenvalues), axis=-1)


def detached_instability(
    system: LinearSystem, r: Realisation, weights: Weights
) -> DetachedInstability:
    """Says whether TAMPL rounds leave a closed model that has lost the task.

    The eigenvalues are exact for every full-row-rank B_0; only the paper's proof that one of them
    is positive needs S_0 = s^2 I and the spectral ordering.

    Arguments:
        system: The linear system, with Sigma = I and symmetric A.
        r: The point (B_0, 0, K_0) with K_0 B_0 = B_0 A and C Sigma B_0^T = 0.
        weights: The loss weights lambda_cur and lambda_tr, both positive.
    """
    require_weights(weights, "cur", "tr")
    S_0, ordering = require_incorrect_point(system, r), spectral_ordering(system, r)
    matrix = _omitted_system(system, r, weights)
    eigenvalues = np.linalg.eigvals(matrix).astype(np.complex128)
    growth = np.max(eigenvalues.real, axis=-1)
    scale = np.trace(S_0, axis1=-2, axis2=-1)[..., None, None] / r.latent_dim
    isotropy = np.linalg.norm(S_0 / scale - np.eye(r.latent_dim), 2, axis=(-2, -1))
    proven = (isotropy <= TOLERANCE) & (ordering.verdict == Verdict.ORDERED)
    # Eigenvalues of a matrix that is not symmetric may be off by the root of the precision.
    rounding = np.where(isotropy <= TOLERANCE, ROUNDING, np.sqrt(np.finfo(float).eps))
    unstable = growth > rounding * np.linalg.norm(matrix, axis=(-2, -1))
    verdict = np.where(unstable, Verdict.UNSTABLE, Verdict.UNDECIDED)[()]
    return DetachedInstability(
        eigenvalues=eigenvalues,
        growth=growth,
        bound=2 * weights.tr * ordering.smallest_kept * ordering.margin,
        ordering=ordering,
        isotropy=isotropy,
        proven=proven,
        verdict=verdict,
        words=tell(_instability_words, verdict, growth, proven),
    )


def _split_spectrum(system: LinearSystem, r: Realisation) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of A on row(B) and on ker B, ascending, where A leaves both alone."""
    require_point(system, r)
    spectral = lambda M: np.linalg.norm(M, 2, axis=(-2, -1))
    require("system.Sigma", "Sigma = I", size=spectral(system.Sigma - np.eye(system.n)))
    require("system.A", "A = A^T", size=spectral(system.A - T(system.A)), of=spectral(system.A))
    require_closed(system, r)
    if r.latent_dim == system.n:
        raise InputError(f"`r.B` must omit a direction, d < n; here d = n = {system.n}")
    rows = T(np.linalg.svd(r.B, full_matrices=True).Vh)
    kept, omitted = rows[..., : r.latent_dim], rows[..., r.latent_dim :]
    restrict = lambda V: np.linalg.eigvalsh(T(V) @ system.A @ V)
    return restrict(kept), restrict(omitted)


def _omitted_system(system: LinearSystem, r: Realisation, weights: Weights) -> np.ndarray:
    """The matrix of (X, Z) -> (X', Z'), both in row-major order."""
    Q = omitted_basis(system, r.B)
    A_o, C_o, S_0 = T(Q) @ system.A @ Q, system.C @ Q, r.B @ T(r.B)
    d, omitted, m = r.latent_dim, Q.shape[-1], system.m
    size = d * omitted + m * d
    # A leading axis of unit vectors goes through the formulas as one batch.
    units = np.eye(size).reshape(size, *(1,) * (A_o.ndim - 2), size)
    X = units[..., : d * omitted].reshape(*units.shape[:-1], d, omitted)
    Z = units[..., d * omitted :].reshape(*units.shape[:-1], m, d)
    X_dot = 2 * weights.tr * T(r.K) @ (X @ A_o - r.K @ X) + 2 * weights.cur * T(Z) @ C_o
    Z_dot = 2 * weights.cur * (C_o @ T(X) - Z @ S_0)
    flat = lambda M: M.reshape(*M.shape[:-2], -1)
    return np.moveaxis(np.concatenate([flat(X_dot), flat(Z_dot)], axis=-1), 0, -1)


def _ordering_words(verdict: Verdict, low: float, high: float, least: float) -> str:
    return (
        f"The spectra are {verdict}: A has eigenvalues from {low:.4g} to {high:.4g} on the kept"
        f" subspace and from {least:.4g} on the omitted one."
    )


def _instability_words(verdict: Verdict, growth: float, proven: bool) -> str:
    if verdict is Verdict.UNDECIDED:
        return (
            f"No rate on what the model omits is positive beyond rounding (largest {growth:.4g}),"
            " so this calculation does not show that TAMPL rounds of small steps leave the model."
        )
    why = "as the paper proves" if proven else "by computation, not by the paper's conditions"
    return (
        "TAMPL rounds of one step mu per block leave this closed model from almost every near"
        f" start for every mu, {why}: in the long run a perturbation grows by at least"
        f" 1 + {growth:.4g} mu in each."
    )
