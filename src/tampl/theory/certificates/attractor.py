r"""Closed models that have lost the task: joint descent may stay there, TAMPL rounds may leave.

At (B_0, 0, K_0) with K_0 B_0 = B_0 A and C Sigma B_0^T = 0 the transition loss is zero and the
readout sees nothing of the macrostate. Let S_0 = B_0 Sigma B_0^T and Q an orthonormal basis of the
complement of row(B_0 Sigma^{1/2}), M = Q^T Sigma^{-1/2} A Sigma^{1/2} Q, c = Q^T Sigma^{1/2} C^T.
Half the Hessian of L_joint, minimised over the changes V of D and W of K, depends only on the
omitted part X of a change U of B, U Sigma^{1/2} = X Q^T. This reduced form is

    lambda_tr ||K_0 X - X M||^2 - lambda_cur ||S_0^{-1/2} X c||^2

in Frobenius norms, and tau_0 is the smallest singular value of X -> K_0 X - X M.

For Sigma = I and symmetric A, let A_o = Q^T A Q and C_o = C Q. Rounds with a refreshed, detached
target act on X = U Q and a change Z of D as one step mu of the closed linear system

    X' = 2 lambda_tr (K_0^T X A_o - K_0^T K_0 X) + 2 lambda_cur Z^T C_o,
    Z' = 2 lambda_cur (C_o X^T - Z S_0).

The paper has S_0 = s^2 I, which makes it self-adjoint; if moreover K_0 > 0 and lambda_max(K_0) <
lambda_min(A_o) it has an eigenvalue of at least 2 lambda_tr lambda_min(K_0) (lambda_min(A_o) -
lambda_max(K_0)) > 0.

Reference: the paper's appendices "An incorrect attracting manifold" and "Detached instability of
the incorrect fixed point".
"""

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..checks import ROUNDING, TOLERANCE, require, tell
from ..linear import LinearSystem, Realisation, T, Weights, norm2, spectral_norm
from ..realisability import level_rows, require_closed, require_point
from ..updates import Perturbation

__all__ = [
    "AttractorCertificate",
    "DetachedInstability",
    "SchurTest",
    "SpectralOrdering",
    "detached_instability",
    "incorrect_attractor",
    "require_incorrect_point",
    "schur_test",
    "spectral_ordering",
]


@dataclass(frozen=True, eq=False)
class AttractorCertificate:
    """The sufficient condition lambda_tr tau_0^2 lambda_min(S_0) > lambda_cur ||C Sigma^{1/2}||^2.

    Attributes:
        tau_0: The smallest gain of the transition residual on omitted directions.
        smallest_variance: lambda_min(S_0).
        barrier: lambda_tr tau_0^2 lambda_min(S_0).
        gain: lambda_cur ||C Sigma^{1/2}||_2^2.
        margin: barrier - gain.
        current_loss: ||C||^2_Sigma, the loss that joint descent keeps.
        verdict: "attractor" or "undecided"; the condition proves nothing where it fails.
        words: The verdict as a sentence.
    """

    tau_0: np.ndarray
    smallest_variance: np.ndarray
    barrier: np.ndarray
    gain: np.ndarray
    margin: np.ndarray
    current_loss: np.ndarray
    verdict: np.ndarray
    words: np.ndarray


@dataclass(frozen=True, eq=False)
class SchurTest:
    """The sign of the reduced form itself, which needs no norm bound.

    Attributes:
        smallest: The smallest value of the reduced form over ||U||_Sigma = 1, U Sigma B_0^T = 0.
        largest: The largest one.
        rounding: The size below which the sign of `smallest` is not trusted.
        direction: A perturbation (U, V, W) in which half the second derivative of L_joint is
            `smallest`: the way out of a saddle, the softest way into an attractor.
        verdict: "attractor", "saddle" or "undecided" (zero within rounding).
        words: The verdict as a sentence.
    """

    smallest: np.ndarray
    largest: np.ndarray
    rounding: np.ndarray
    direction: Perturbation
    verdict: np.ndarray
    words: np.ndarray


def incorrect_attractor(
    system: LinearSystem, r: Realisation, weights: Weights
) -> AttractorCertificate:
    """Tests the theorem's sufficient condition at a closed model without the task.

    Arguments:
        system: The linear system.
        r: The point (B_0, 0, K_0); any other point is refused.
        weights: The loss weights lambda_cur and lambda_tr, both positive.

    Example:
        >>> A = np.diag([0.65, 0.75, 0.85, 0.10, 0.15, 0.20, 0.65])
        >>> system = LinearSystem(A, np.eye(1, 7), np.eye(7))
        >>> wrong = Realisation(4 * np.eye(3, 7, 3), np.zeros((1, 3)), A[3:6, 3:6])
        >>> found = incorrect_attractor(system, wrong, Weights())
        >>> print(f"{found.tau_0:.2f} {found.margin:.2f} {found.verdict}")
        0.45 2.24 attractor
    """
    form = _reduce(system, r, weights)
    gains = np.linalg.svd(form.sylvester, compute_uv=False)
    tau_0 = np.min(gains, axis=-1)
    # Not by the eigenvalues of S_0, which has lost half of the digits of B_0 to its largest rows.
    variance = np.linalg.svd(r.B @ system.root, compute_uv=False)[..., -1] ** 2
    barrier = weights.tr * tau_0**2 * variance
    gain = weights.cur * spectral_norm(system.C @ system.root) ** 2
    margin = barrier - gain
    rounding = ROUNDING * (weights.tr * gains[..., 0] ** 2 * variance + gain)
    verdict = np.where(margin > rounding, "attractor", "undecided")[()]
    loss = norm2(system.C, system.Sigma)
    words = tell(_describe_attractor, verdict, tau_0, barrier, gain, loss)
    return AttractorCertificate(
        tau_0, variance, barrier, gain, margin, loss + 0 * margin, verdict, words
    )


def schur_test(system: LinearSystem, r: Realisation, weights: Weights) -> SchurTest:
    """Decides by the eigenvalues of the reduced form at a closed model without the task.

    Arguments:
        system: The linear system.
        r: The point (B_0, 0, K_0); any other point is refused.
        weights: The loss weights lambda_cur and lambda_tr, both positive.
    """
    form = _reduce(system, r, weights)
    cost = weights.tr * T(form.sylvester) @ form.sylvester
    gain = weights.cur * _kron(np.linalg.inv(form.S_0), form.c @ T(form.c))
    values, vectors = np.linalg.eigh(cost - gain)
    smallest, largest = np.min(values, axis=-1), np.max(values, axis=-1)
    norm = lambda M: np.linalg.norm(M, axis=(-2, -1))
    rounding = ROUNDING * (norm(cost) + norm(gain))
    X = vectors[..., 0].reshape(*vectors.shape[:-2], r.latent_dim, -1)
    signs = [smallest > rounding, smallest < -rounding]
    verdict = np.select(signs, ["attractor", "saddle"], "undecided")[()]
    words = tell(_describe_curvature, verdict, smallest)
    return SchurTest(smallest, largest, rounding, _complete(system, r, form, X), verdict, words)


def require_incorrect_point(system: LinearSystem, r: Realisation) -> np.ndarray:
    """Refuses all but (B_0, 0, K_0) with K_0 B_0 = B_0 A, C Sigma B_0^T = 0, C not 0.

    No violation depends on latent coordinates: that of C Sigma B_0^T = 0 is ||C Sigma^{1/2} P||_F
    with P the projector onto row(B_0 Sigma^{1/2}), that of D_0 = 0 is ||D_0 B_0||_Sigma, both
    against ||C||_Sigma.

    Returns:
        S_0 = B_0 Sigma B_0^T (..., d, d).
    """
    S_0 = require_point(system, r)
    norm = lambda M: np.linalg.norm(M, axis=(-2, -1))
    task = norm(system.C @ system.root)
    if np.any(task == 0):
        raise InputError("`system.C` must not be 0: with ||C||_Sigma = 0 there is no task to lose")
    _, values, rows = np.linalg.svd(level_rows(r.B @ system.root)[0], full_matrices=False)
    overlap = norm(system.C @ system.root @ T(rows))
    # Rounding may turn the row space of a skewed encoder by this angle.
    turn = system.n * np.finfo(float).eps * values[..., 0] / values[..., -1]
    require("r.B", "C Sigma B_0^T = 0", size=overlap, of=task, roundoff=turn * task)
    require("r.D", "D_0 = 0", size=norm(r.D @ r.B @ system.root), of=task)
    require_closed(system, r)
    return S_0


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
    require_point(system, r)
    require("system.Sigma", "Sigma = I", size=spectral_norm(system.Sigma - np.eye(system.n)))
    skew = spectral_norm(system.A - T(system.A))
    require("system.A", "A = A^T", size=skew, of=spectral_norm(system.A))
    require_closed(system, r)
    if r.latent_dim == system.n:
        raise InputError(f"`r.B` must omit a direction, d < n; here d = n = {system.n}")
    # A leaves row(B) and ker B invariant, each with an orthonormal basis among these columns.
    columns = T(np.linalg.svd(r.B, full_matrices=True).Vh)
    kept, omitted = (
        np.linalg.eigvalsh(T(V) @ system.A @ V)
        for V in (columns[..., : r.latent_dim], columns[..., r.latent_dim :])
    )
    low, high, least = kept[..., 0], kept[..., -1], omitted[..., 0]
    margin = least - high
    rounding = ROUNDING * np.linalg.norm(system.A, axis=(-2, -1))
    ordered = (low > rounding) & (margin > rounding)
    verdict = np.where(ordered, "ordered", "not ordered")[()]
    words = tell(_describe_ordering, verdict, low, high, least)
    return SpectralOrdering(low, high, least, margin, verdict, words)


@dataclass(frozen=True, eq=False)
class DetachedInstability:
    """The linearised TAMPL round at a closed model without the task, on omitted directions.

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
    weights.require_positive("cur", "tr")
    S_0, ordering = require_incorrect_point(system, r), spectral_ordering(system, r)
    matrix = _linearise_omitted(system, r, weights)
    eigenvalues = np.linalg.eigvals(matrix).astype(np.complex128)
    growth = np.max(eigenvalues.real, axis=-1)
    scale = np.trace(S_0, axis1=-2, axis2=-1)[..., None, None] / r.latent_dim
    isotropy = spectral_norm(S_0 / scale - np.eye(r.latent_dim))
    proven = (isotropy <= TOLERANCE) & (ordering.verdict == "ordered")
    # Eigenvalues of a matrix that is not symmetric may be off by the root of the precision.
    rounding = np.where(isotropy <= TOLERANCE, ROUNDING, np.sqrt(np.finfo(float).eps))
    unstable = growth > rounding * np.linalg.norm(matrix, axis=(-2, -1))
    verdict = np.where(unstable, "unstable", "undecided")[()]
    return DetachedInstability(
        eigenvalues=eigenvalues,
        growth=growth,
        bound=2 * weights.tr * ordering.smallest_kept * ordering.margin,
        ordering=ordering,
        isotropy=isotropy,
        proven=proven,
        verdict=verdict,
        words=tell(_describe_instability, verdict, growth, proven),
    )


@dataclass(frozen=True, eq=False)
class _Form:
    """The ingredients of the reduced form; `sylvester` acts on X in row-major order."""

    S_0: np.ndarray
    Q: np.ndarray
    c: np.ndarray
    sylvester: np.ndarray


def _reduce(system: LinearSystem, r: Realisation, weights: Weights) -> _Form:
    weights.require_positive("cur", "tr")
    S_0 = require_incorrect_point(system, r)
    # C Sigma B_0^T = 0 with C != 0 leaves at least one direction omitted, so Q has columns.
    Q = _find_complement(system, r.B)
    M = T(Q) @ np.linalg.solve(system.root, system.A @ system.root) @ Q
    sylvester = _kron(r.K, np.eye(Q.shape[-1])) - _kron(np.eye(r.latent_dim), T(M))
    return _Form(S_0, Q, T(Q) @ system.root @ T(system.C), sylvester)


def _complete(system: LinearSystem, r: Realisation, form: _Form, X: np.ndarray) -> Perturbation:
    """U from its coordinates X, with the V and W that minimise the quadratic form."""
    U = T(np.linalg.solve(system.root, T(X @ T(form.Q))))
    inverse = np.linalg.inv(form.S_0)
    W = -(r.K @ U - U @ system.A) @ system.Sigma @ T(r.B) @ inverse
    return Perturbation(U, system.C @ system.Sigma @ T(U) @ inverse, W)


def _find_complement(system: LinearSystem, B: np.ndarray) -> np.ndarray:
    """Q (..., n, n - d): orthonormal, orthogonal to row(B Sigma^{1/2})."""
    rows = np.linalg.svd(level_rows(B @ system.root)[0], full_matrices=True).Vh
    return T(rows[..., B.shape[-2] :, :])


def _kron(M: np.ndarray, N: np.ndarray) -> np.ndarray:
    product = np.einsum("...ij,...kl->...ikjl", M, N)
    rows, columns = M.shape[-2] * N.shape[-2], M.shape[-1] * N.shape[-1]
    return product.reshape(*product.shape[:-4], rows, columns)


def _describe_attractor(
    verdict: str, tau_0: float, barrier: float, gain: float, loss: float
) -> str:
    numbers = f"tau_0 = {tau_0:.4g}, transition barrier {barrier:.4g}, readout gain {gain:.4g}"
    if verdict == "attractor":
        return (
            f"Joint descent with small steps goes from every near start to this closed model up to"
            f" latent coordinates and keeps the current loss {loss:.4g} ({numbers})."
        )
    return (
        f"The sufficient condition fails, which proves neither attraction nor escape ({numbers})."
    )


def _describe_curvature(verdict: str, smallest: float) -> str:
    curvature = f"the reduced curvature is at least {smallest:.4g}"
    return {
        "attractor": "Joint descent with small steps goes from every near start to this"
        f" closed model up to latent coordinates: {curvature}.",
        "saddle": f"The closed model is a saddle of the joint loss: {curvature}, attained,"
        " and descent from almost every near start leaves it.",
        "undecided": f"Second order decides nothing: {curvature}, zero within rounding.",
    }[verdict]


def _linearise_omitted(system: LinearSystem, r: Realisation, weights: Weights) -> np.ndarray:
    """The matrix of (X, Z) -> (X', Z'), both in row-major order."""
    Q = _find_complement(system, r.B)
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


def _describe_ordering(verdict: str, low: float, high: float, least: float) -> str:
    return (
        f"The spectra are {verdict}: A has eigenvalues from {low:.4g} to {high:.4g} on the kept"
        f" subspace and from {least:.4g} on the omitted one."
    )


def _describe_instability(verdict: str, growth: float, proven: bool) -> str:
    if verdict == "undecided":
        return (
            f"No rate on omitted directions is positive beyond rounding (largest {growth:.4g}),"
            " so this calculation does not show that TAMPL rounds of small steps leave the model."
        )
    why = "as the paper proves" if proven else "by computation, not by the paper's conditions"
    return (
        "TAMPL rounds of one step mu per block leave this closed model from almost every near"
        f" start for every mu, {why}: in the long run a perturbation grows by at least"
        f" 1 + {growth:.4g} mu in each."
    )
