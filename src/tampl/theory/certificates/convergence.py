r"""Local convergence of TAMPL rounds at an exact realisation.

A sufficient condition has an explicit step bound. At theta = (B, D, K) with D B = C and K B = B A,
a perturbation v = (U, V, W) changes the residuals by P = D U + V B and Q = K U + W B - U A. In the
product Frobenius norm let

    R' v  = (sqrt(lambda_cur) P Sigma^{1/2}, sqrt(lambda_tr) Q Sigma^{1/2}),
    G_E v = (2 (lambda_cur D^T P + lambda_tr K^T Q) Sigma, 2 lambda_cur P Sigma B^T, 0),
    G_T v = (0, 0, 2 lambda_tr Q Sigma B^T).

All three vanish on the changes of latent coordinates (Omega B, -D Omega, Omega K - K Omega); the
columns of N are an orthonormal basis of what is perpendicular to these. Then

    s_star = sigma_min(R' N),                   epsilon_star = sqrt(lambda_tr) ||A Sigma^{1/2}||_2,
    gamma = 2 s_star (s_star - epsilon_star),   ell = ||G_E||_2 + ||G_T||_2,

and if s_star > epsilon_star, rounds with N_E = N_T = 1 and a common step mu converge from every
near start, provided that mu <= mu_max = gamma / ell^2: J = (I - mu G_T) (I - mu G_E) satisfies

    ||N^T J N||_2 <= sqrt(1 - 2 mu gamma + mu^2 ell^2) + mu^2 ||G_T|| ||G_E|| <= 1 - mu gamma / 4.

The first inequality holds for every mu > 0, so a value below one proves convergence as well.

Rounds of any N_E, N_T, mu_E, mu_T are decided by the spectrum. The differential DPsi of a round
follows a perturbation through the same steps, the target perturbed as B is at the start. DPsi is
the identity on changes of latent coordinates, and J_err = N^T DPsi N is what it does modulo these:
with a spectral radius below one, rounds converge from every near start. Where the residual does
not respond in other directions either, J_err has the eigenvalue one, possibly defective, and only
a radius clearly above one shows anything.

Reference: the paper's appendices "Precise statement and proof" of its theorem on local convergence
and "Local convergence for finite alternating blocks".
"""

from dataclasses import dataclass, fields

import numpy as np

from ..checks import ROUNDING, tell
from ..linear import LinearSystem, Realisation, T, Weights, spectral_norm
from ..realisability import require_exact, require_point
from ..updates import (
    Perturbation,
    Round,
    encoder_differential,
    encoder_gradient,
    require_step,
    transition_differential,
    transition_gradient,
)

__all__ = [
    "ConvergenceCertificate",
    "Linearisation",
    "RoundCertificate",
    "certify_convergence",
    "certify_rounds",
    "differentiate_round",
    "linearise",
    "normal_basis",
    "quotient",
    "round_jacobian",
    "spectral_radius",
]

DEFECT = 100 * float(np.sqrt(np.finfo(float).eps))
"""The change of a defective eigenvalue of a matrix of norm one by rounding, which moves a pair by
the root of the precision times the strength of its coupling."""


@dataclass(frozen=True, eq=False)
class ConvergenceCertificate:
    """The numbers of the convergence theorem at an exact realisation.

    Attributes:
        s_star: The weakest response of the residual outside changes of latent coordinates.
        epsilon_star: The size of the target-refresh term.
        margin: s_star - epsilon_star, positive where the theorem applies.
        gamma: 2 s_star (s_star - epsilon_star).
        ell: ||G_E||_2 + ||G_T||_2.
        mu_max: gamma / ell^2, the largest certified step; 0 where the margin is not positive.
        mu: The common step in question.
        error_bound: The bound on ||J_err||_2 at mu; infinite where the margin is not positive.
        coarse_bound: 1 - mu gamma / 4; infinite where the theorem does not apply to mu.
        scale: ||B Sigma^{1/2}||_F / sqrt(d).
        scale_needed: ||A Sigma^{1/2}||_2, which `scale` must exceed for a positive margin.
        scale_condition: Whether it does; necessary, not sufficient.
        s_star_bound: sqrt(lambda_tr) scale, an upper bound on s_star.
        verdict: "converges" or "undecided"; the condition proves nothing where it fails.
        words: The verdict as a sentence.
    """

    s_star: np.ndarray
    epsilon_star: np.ndarray
    margin: np.ndarray
    gamma: np.ndarray
    ell: np.ndarray
    mu_max: np.ndarray
    mu: np.ndarray
    error_bound: np.ndarray
    coarse_bound: np.ndarray
    scale: np.ndarray
    scale_needed: np.ndarray
    scale_condition: np.ndarray
    s_star_bound: np.ndarray
    verdict: np.ndarray

    @property
    def words(self) -> np.ndarray:
        sentence = lambda *values: _describe_convergence(ConvergenceCertificate(*values))
        values = (getattr(self, field.name) for field in fields(self))
        return tell(sentence, *values)


@dataclass(frozen=True, eq=False)
class Linearisation:
    """Matrices on vectorised perturbations (U, V, W), each block row by row, p numbers in all.

    Attributes:
        R: R' (..., (m + d) n, p).
        G_E: (..., p, p).
        G_T: (..., p, p).
    """

    R: np.ndarray
    G_E: np.ndarray
    G_T: np.ndarray


def certify_convergence(
    system: LinearSystem, r: Realisation, weights: Weights, mu: float | None = None
) -> ConvergenceCertificate:
    """Evaluates the sufficient condition at an exact realisation.

    Arguments:
        system: The linear system.
        r: An exact realisation of full row rank; any other is refused.
        weights: The loss weights lambda_cur and lambda_tr, both positive.
        mu: The common step size; mu_max of each system where it is not given.

    Example:
        >>> system = LinearSystem(np.zeros((4, 4)), np.eye(2, 4), np.eye(4))
        >>> r = Realisation(np.eye(2, 4), np.eye(2), np.zeros((2, 2)))
        >>> found = certify_convergence(system, r, Weights())
        >>> print(f"{found.s_star:.3f} {found.epsilon_star:.3f} {found.verdict}")
        1.000 0.000 converges
    """
    if mu is not None:
        require_step(mu)
    operators = linearise(system, r, weights)
    response = np.linalg.svd(operators.R @ normal_basis(r), compute_uv=False)
    s_star, strength = np.min(response, axis=-1), spectral_norm(system.A @ system.root)
    epsilon_star = np.sqrt(weights.tr) * strength
    gamma = 2 * s_star * (s_star - epsilon_star)
    e, t = spectral_norm(operators.G_E), spectral_norm(operators.G_T)
    ell, margin = e + t, s_star - epsilon_star
    applies = margin > ROUNDING * (response[..., 0] + epsilon_star)
    mu_max = np.where(applies, gamma / ell**2, 0.0)[()]
    step = mu_max if mu is None else mu + 0 * mu_max
    # gamma <= ell keeps the radicand from being negative but for rounding.
    radicand = np.maximum(1 - 2 * step * gamma + (step * ell) ** 2, 0.0)
    bound = np.where(applies, np.sqrt(radicand) + step**2 * e * t, np.inf)[()]
    within = applies & (step <= mu_max)
    verdict = np.where(within | (bound < 1), "converges", "undecided")[()]
    scale = np.linalg.norm(r.B @ system.root, axis=(-2, -1)) / np.sqrt(r.latent_dim)
    return ConvergenceCertificate(
        s_star=s_star,
        epsilon_star=epsilon_star + 0 * s_star,
        margin=margin,
        gamma=gamma,
        ell=ell,
        mu_max=mu_max,
        mu=step,
        error_bound=bound,
        coarse_bound=np.where(within, 1 - step * gamma / 4, np.inf)[()],
        scale=scale + 0 * s_star,
        scale_needed=strength + 0 * s_star,
        scale_condition=scale > strength,
        s_star_bound=np.sqrt(weights.tr) * scale + 0 * s_star,
        verdict=verdict,
    )


def linearise(system: LinearSystem, r: Realisation, weights: Weights) -> Linearisation:
    """The matrices of R', G_E and G_T at an exact realisation.

    Arguments:
        system: The linear system.
        r: An exact realisation of full row rank; any other is refused.
        weights: The loss weights lambda_cur and lambda_tr, both positive.
    """
    weights.require_positive("cur", "tr")
    require_point(system, r)
    require_exact(system, r, "r")
    v = _make_unit_perturbations(system, r)
    P = np.sqrt(weights.cur) * (r.D @ v.U + v.V @ r.B) @ system.root
    Q = np.sqrt(weights.tr) * (r.K @ v.U + v.W @ r.B - v.U @ system.A) @ system.root
    # The target is refreshed to the encoder between rounds: it is perturbed as the encoder is.
    g = encoder_differential(system, r, weights, target=r.B, change=v, target_change=v.U)
    h = transition_differential(system, r, weights, v)
    return Linearisation(_as_columns(P, Q), _as_columns(g.B, g.D, g.K), _as_columns(h.B, h.D, h.K))


def normal_basis(r: Realisation) -> np.ndarray:
    """N (..., p, p - d^2): orthonormal, perpendicular to changes of latent coordinates at r."""
    d = r.latent_dim
    batch = max(r.B.ndim, r.D.ndim, r.K.ndim) - 2
    Omega = np.eye(d * d).reshape(d * d, *(1,) * batch, d, d)
    tangent = _as_columns(Omega @ r.B, -r.D @ Omega, Omega @ r.K - r.K @ Omega)
    return np.linalg.qr(tangent, mode="complete").Q[..., d * d :]


@dataclass(frozen=True, eq=False)
class RoundCertificate:
    """The linearised round at an exact realisation.

    Attributes:
        jacobian: DPsi (..., p, p) on vectorised (U, V, W), each block row by row.
        quotient: J_err (..., p - d^2, p - d^2).
        radius: The spectral radius of J_err.
        norm: ||J_err||_2, the largest factor of a single round.
        s_star: The weakest response of the residual outside changes of latent coordinates; zero
            where rounds stand still in other directions too.
        verdict: "converges", "unstable" or "undecided" (a radius of one within rounding).
        words: The verdict as a sentence.
    """

    jacobian: np.ndarray
    quotient: np.ndarray
    radius: np.ndarray
    norm: np.ndarray
    s_star: np.ndarray
    verdict: np.ndarray
    words: np.ndarray


def certify_rounds(
    system: LinearSystem, r: Realisation, weights: Weights, steps: Round
) -> RoundCertificate:
    """Decides local convergence of rounds of any shape by the spectral radius.

    Arguments:
        system: The linear system.
        r: An exact realisation of full row rank; any other is refused.
        weights: The loss weights lambda_cur and lambda_tr, both positive.
        steps: The numbers and sizes of the steps.
    """
    response = np.linalg.svd(linearise(system, r, weights).R @ normal_basis(r), compute_uv=False)
    jacobian = round_jacobian(system, r, weights, steps)
    induced = quotient(jacobian, r)
    radius, norm = spectral_radius(induced), spectral_norm(induced)
    s_star = np.min(response, axis=-1)
    # A further direction in which the residual stands still has the eigenvalue one exactly, and
    # rounding may move a defective one by the root of the machine precision.
    moves = s_star > ROUNDING * response[..., 0]
    rounding = np.where(moves, ROUNDING, DEFECT) * np.maximum(norm, 1.0)
    signs = [moves & (radius < 1 - rounding), radius > 1 + rounding]
    verdict = np.select(signs, ["converges", "unstable"], "undecided")[()]
    words = tell(_describe_rounds, verdict, radius, moves)
    return RoundCertificate(jacobian, induced, radius, norm, s_star, verdict, words)


def round_jacobian(
    system: LinearSystem, r: Realisation, weights: Weights, steps: Round
) -> np.ndarray:
    """The differential of `tampl_round` at any point, (..., p, p) with p = d n + m d + d^2.

    Arguments:
        system: The linear system.
        r: The point.
        weights: The loss weights lambda_cur and lambda_tr.
        steps: The numbers and sizes of the steps.
    """
    v = differentiate_round(system, r, weights, steps, _make_unit_perturbations(system, r))
    return _as_columns(v.U, v.V, v.W)


def differentiate_round(
    system: LinearSystem, r: Realisation, weights: Weights, steps: Round, change: Perturbation
) -> Perturbation:
    """The perturbation of the end of a round by one of its start, to first order.

    Arguments:
        system: The linear system.
        r: The start of the round.
        weights: The loss weights lambda_cur and lambda_tr.
        steps: The numbers and sizes of the steps.
        change: The perturbation; it may have further leading axes.
    """
    target, target_change, mu = r.B, change.U, steps.mu_encoder
    for _ in range(steps.encoder_steps):
        g = encoder_gradient(system, r, weights, target)
        h = encoder_differential(
            system, r, weights, target=target, change=change, target_change=target_change
        )
        change = Perturbation(change.U - mu * h.B, change.V - mu * h.D, change.W)
        r = Realisation(r.B - mu * g.B, r.D - mu * g.D, r.K)
    for _ in range(steps.transition_steps):
        g = transition_gradient(system, r, weights)
        h = transition_differential(system, r, weights, change)
        change = Perturbation(change.U, change.V, change.W - steps.mu_transition * h.K)
        r = Realisation(r.B, r.D, r.K - steps.mu_transition * g.K)
    return change


def quotient(jacobian: np.ndarray, r: Realisation) -> np.ndarray:
    """N^T J N: a map J modulo the changes of latent coordinates at r, which it must keep.

    Arguments:
        jacobian: The map (..., p, p).
        r: The point, which must be fixed by the round together with its coordinate changes.
    """
    N = normal_basis(r)
    return T(N) @ jacobian @ N


def spectral_radius(M: np.ndarray) -> np.ndarray:
    """The largest modulus of an eigenvalue of each matrix."""
    return np.max(np.abs(np.linalg.eigvals(M)), axis=-1)


def _make_unit_perturbations(system: LinearSystem, r: Realisation) -> Perturbation:
    """All p unit vectors of (U, V, W) along a leading axis before the axes of the batch."""
    d, n, m = r.latent_dim, system.n, system.m
    batch = max(system.A.ndim, system.C.ndim, system.Sigma.ndim, r.B.ndim, r.D.ndim, r.K.ndim) - 2
    p = d * n + m * d + d * d
    units = np.eye(p).reshape(p, *(1,) * batch, p)
    U, V, W = np.split(units, [d * n, d * n + m * d], axis=-1)
    return Perturbation(
        U.reshape(*units.shape[:-1], d, n),
        V.reshape(*units.shape[:-1], m, d),
        W.reshape(*units.shape[:-1], d, d),
    )


def _as_columns(*blocks: np.ndarray) -> np.ndarray:
    """The matrix (..., q, p) of a map whose images of p unit vectors are blocks (p, ..., i, j)."""
    lead = np.broadcast_shapes(*(block.shape[:-2] for block in blocks))
    spread = [np.broadcast_to(block, (*lead, *block.shape[-2:])) for block in blocks]
    flat = np.concatenate([block.reshape(*lead, -1) for block in spread], axis=-1)
    return np.moveaxis(flat, 0, -1)


def _describe_convergence(found: ConvergenceCertificate) -> str:
    numbers = f"s_star = {found.s_star:.4g}, epsilon_star = {found.epsilon_star:.4g}"
    limit = f"{found.mu_max:.4g}"
    if found.verdict == "converges":
        why = (
            f"certified steps up to {limit}"
            if found.mu <= found.mu_max
            else f"by the finer bound {found.error_bound:.6g} on a round, though beyond mu_max ="
            f" {limit}"
        )
        return (
            f"TAMPL rounds of one step per block with the common size {found.mu:.4g} converge from"
            f" every near start to this model up to latent coordinates ({numbers}, {why})."
        )
    if found.mu_max > 0:
        return (
            f"The common size {found.mu:.4g} is too large for rounds of one step per block to be"
            f" certified ({numbers}, mu_max = {limit})."
        )
    if not found.scale_condition:
        numbers += (
            f"; the encoder scale {found.scale:.4g} would have to exceed {found.scale_needed:.4g}"
        )
    condition = "The sufficient condition for rounds of one step per block fails"
    return f"{condition}, which proves nothing ({numbers})."


def _describe_rounds(verdict: str, radius: float, moves: bool) -> str:
    said = {
        "converges": "Rounds converge from every near start, in the long run by"
        f" {radius:.6g} each (spectral radius modulo latent coordinates)",
        "unstable": "Rounds leave the neighbourhood of this model from almost every near"
        f" start: the spectral radius modulo latent coordinates is {radius:.6g}",
        "undecided": "The spectral radius modulo latent coordinates is one within rounding"
        f" ({radius:.6g})",
    }[verdict]
    still = "; rounds stand still in directions that are no change of latent coordinates"
    return f"{said}{'' if moves else still}."
