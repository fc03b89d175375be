r"""When joint descent is drawn to a closed model that has lost the task.

At (B_0, 0, K_0) with K_0 B_0 = B_0 A and C Sigma B_0^T = 0 the transition loss is zero and the
readout sees nothing of the macrostate. Let S_0 = B_0 Sigma B_0^T and P_0 the projector onto
row(B_0 Sigma^{1/2}). Half the Hessian of L_joint there, minimised over the changes V of D and W of
K that go with a change U of B, is the reduced form

    lambda_tr ||(K_0 U - U A) Sigma^{1/2} (I - P_0)||^2 - lambda_cur ||S_0^{-1/2} U Sigma C^T||^2

in Frobenius norms. It depends only on the part of U with U Sigma B_0^T = 0, that is on X in
U Sigma^{1/2} = X Q^T, Q an orthonormal basis of the complement of row(B_0 Sigma^{1/2}). With
M = Q^T Sigma^{-1/2} A Sigma^{1/2} Q and c = Q^T Sigma^{1/2} C^T it reads

    lambda_tr ||K_0 X - X M||^2 - lambda_cur ||S_0^{-1/2} X c||^2,

and tau_0 is the smallest singular value of X -> K_0 X - X M.

Reference: the paper's appendix "An incorrect attracting manifold".
"""

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..gradients import Perturbation
from ..linear import LinearSystem, Realisation, T, Weights, norm2
from ..realisability import level_rows
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
    "AttractorCertificate",
    "SchurTest",
    "incorrect_attractor",
    "omitted_basis",
    "require_incorrect_point",
    "schur_test",
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
        rounding: What the sign of `smallest` is compared with.
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
    gain = weights.cur * np.linalg.norm(system.C @ system.root, 2, axis=(-2, -1)) ** 2
    margin = barrier - gain
    rounding = ROUNDING * (weights.tr * gains[..., 0] ** 2 * variance + gain)
    verdict = np.where(margin > rounding, Verdict.ATTRACTOR, Verdict.UNDECIDED)[()]
    loss = norm2(system.C, system.Sigma)
    words = tell(_attractor_words, verdict, tau_0, barrier, gain, loss)
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
    verdict = np.select(signs, [Verdict.ATTRACTOR, Verdict.SADDLE], Verdict.UNDECIDED)[()]
    words = tell(_schur_words, verdict, smallest)
    return SchurTest(smallest, largest, rounding, _complete(system, r, form, X), verdict, words)


def require_incorrect_point(system: LinearSystem, r: Realisation) -> np.ndarray:
    """Refuses all but (B_0, 0, K_0) with K_0 B_0 = B_0 A, C Sigma B_0^T = 0, C not 0.

    No violation depends on latent coordinates: that of C Sigma B_0^T = 0 is
    ||C Sigma^{1/2} P_0||_F and that of D_0 = 0 is ||D_0 B_0||_Sigma, both against ||C||_Sigma.

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
    # So far may rounding turn the row space of a skewed encoder.
    turn = system.n * np.finfo(float).eps * values[..., 0] / values[..., -1]
    require("r.B", "C Sigma B_0^T = 0", size=overlap, of=task, roundoff=turn * task)
    require("r.D", "D_0 = 0", size=norm(r.D @ r.B @ system.root), of=task)
    require_closed(system, r)
    return S_0


def omitted_basis(system: LinearSystem, B: np.ndarray) -> np.ndarray:
    """Q (..., n, n - d): orthonormal, orthogonal to row(B Sigma^{1/2})."""
    rows = np.linalg.svd(level_rows(B @ system.root)[0], full_matrices=True).Vh
    return T(rows[..., B.shape[-2] :, :])


@dataclass(frozen=True, eq=False)
class _Form:
    """The ingredients of the reduced form; `sylvester` acts on X in row-major order."""

    S_0: np.ndarray
    Q: np.ndarray
    c: np.ndarray
    sylvester: np.ndarray


def _reduce(system: LinearSystem, r: Realisation, weights: Weights) -> _Form:
    require_weights(weights, "cur", "tr")
    S_0 = require_incorrect_point(system, r)
    # C Sigma B_0^T = 0 with C != 0 leaves at least one direction omitted, so Q has columns.
    Q = omitted_basis(system, r.B)
    M = T(Q) @ np.linalg.solve(system.root, system.A @ system.root) @ Q
    sylvester = _kron(r.K, np.eye(Q.shape[-1])) - _kron(np.eye(r.latent_dim), T(M))
    return _Form(S_0, Q, T(Q) @ system.root @ T(system.C), sylvester)


def _complete(system: LinearSystem, r: Realisation, form: _Form, X: np.ndarray) -> Perturbation:
    """U from its coordinates X, with the V and W that minimise the quadratic form."""
    U = T(np.linalg.solve(system.root, T(X @ T(form.Q))))
    inverse = np.linalg.inv(form.S_0)
    W = -(r.K @ U - U @ system.A) @ system.Sigma @ T(r.B) @ inverse
    return Perturbation(U, system.C @ system.Sigma @ T(U) @ inverse, W)


def _kron(M: np.ndarray, N: np.ndarray) -> np.ndarray:
    product = np.einsum("...ij,...kl->...ikjl", M, N)
    rows, columns = M.shape[-2] * N.shape[-2], M.shape[-1] * N.shape[-1]
    return product.reshape(*product.shape[:-4], rows, columns)


def _attractor_words(
    verdict: Verdict, tau_0: float, barrier: float, gain: float, loss: float
) -> str:
    numbers = f"tau_0 = {tau_0:.4g}, transition barrier {barrier:.4g}, readout gain {gain:.4g}"
    if verdict is Verdict.ATTRACTOR:
        return (
            f"Joint descent with small steps goes from every near start to this closed model up to"
            f" latent coordinates and keeps the current loss {loss:.4g} ({numbers})."
        )
    return (
        f"The sufficient condition fails, which proves neither attraction nor escape ({numbers})."
    )


def _schur_words(verdict: Verdict, smallest: float) -> str:
    curvature = f"the reduced curvature is at least {smallest:.4g}"
    return {
        Verdict.ATTRACTOR: "Joint descent with small steps goes from every near start to this"
        f" closed model up to latent coordinates: {curvature}.",
        Verdict.SADDLE: f"The closed model is a saddle of the joint loss: {curvature}, attained,"
        " and descent from almost every near start leaves it.",
        Verdict.UNDECIDED: f"Second order decides nothing: {curvature}, zero within rounding.",
    }[verdict]
