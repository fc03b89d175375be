r"""Gradients of the losses, and the update rules that follow them: joint descent, TAMPL rounds.

With E = D B - C, Delta = K B - B A and, for a target copy \bar B, \bar Delta = K B - \bar B A,

    L_joint: g_B = 2 (lambda_cur D^T E + lambda_tr K^T Delta) Sigma - 2 lambda_tr Delta Sigma A^T,
             g_D = 2 lambda_cur E Sigma B^T,     g_K = 2 lambda_tr Delta Sigma B^T,
    L_enc:   g_B = 2 (lambda_cur D^T E + lambda_tr K^T \bar Delta) Sigma,     g_D as above,
    L_rec:   g_B = 2 lambda_rec G^T F Sigma,     g_G = 2 lambda_rec F Sigma B^T,     F = G B - I.

L_enc(B, D; K, \bar B) = lambda_cur L_cur + lambda_tr ||K B - \bar B A||^2_Sigma has a detached
target, hence no term with A^T. A joint step moves all matrices at once. A TAMPL round copies the
target \bar B = B, takes N_E steps of size mu_E of (B, D) on L_enc with K and \bar B fixed, and
then N_T steps of size mu_T of K on lambda_tr L_tr with the new encoder fixed. Step sizes are those
of the weighted objectives. Joint descent shrinks the encoder where <B, g_B>_F > 0, since

    <B, g_B>_F = 2 lambda_cur <D B, E>_Sigma + 2 lambda_tr L_tr,
    <D, g_D>_F = 2 lambda_cur <D B, E>_Sigma;

their difference shows that L_tr = 0 at every stationary point. Leading axes are a batch.

Reference: the paper's section "How TAMPL changes the optimization" and its appendices "Joint
gradients and latent scaling", "Fixed-target scale anchoring" and "Local convergence for finite
alternating blocks".
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .checks import LARGEST, require_count
from .linear import LinearSystem, Realisation, T, Weights, current_residual, transition_residual

__all__ = [
    "Gradient",
    "Perturbation",
    "Round",
    "encoder_differential",
    "encoder_gradient",
    "joint_gradient",
    "joint_step",
    "recon_joint_step",
    "reconstruction_gradient",
    "require_step",
    "shrinking_step_bound",
    "tampl_round",
    "transition_differential",
    "transition_gradient",
]


@dataclass(frozen=True, eq=False)
class Gradient:
    """A gradient in B (..., d, n), D (..., m, d) and K (..., d, d)."""

    B: np.ndarray
    D: np.ndarray
    K: np.ndarray


@dataclass(frozen=True, eq=False)
class Perturbation:
    """Changes U (..., d, n) of B, V (..., m, d) of D and W (..., d, d) of K."""

    U: np.ndarray
    V: np.ndarray
    W: np.ndarray


def joint_gradient(system: LinearSystem, r: Realisation, weights: Weights) -> Gradient:
    """The gradient of L_joint in all three matrices at once."""
    E, Delta = current_residual(system, r) @ system.Sigma, transition_residual(system, r)
    Delta = Delta @ system.Sigma
    pull = weights.cur * T(r.D) @ E + weights.tr * (T(r.K) @ Delta - Delta @ T(system.A))
    return Gradient(B=2 * pull, D=2 * weights.cur * E @ T(r.B), K=2 * weights.tr * Delta @ T(r.B))


def encoder_gradient(
    system: LinearSystem, r: Realisation, weights: Weights, target: np.ndarray
) -> Gradient:
    r"""The gradient of L_enc(B, D; K, \bar B) in (B, D); K is fixed.

    Arguments:
        system: The linear system.
        r: The point (B, D, K).
        weights: The loss weights lambda_cur and lambda_tr.
        target: The target copy \bar B (..., d, n), a constant of the gradient.
    """
    E = current_residual(system, r) @ system.Sigma
    Delta = (r.K @ r.B - target @ system.A) @ system.Sigma
    pull = weights.cur * T(r.D) @ E + weights.tr * T(r.K) @ Delta
    return Gradient(B=2 * pull, D=2 * weights.cur * E @ T(r.B), K=np.zeros_like(r.K))


def transition_gradient(system: LinearSystem, r: Realisation, weights: Weights) -> Gradient:
    """The gradient of lambda_tr L_tr in K alone; B and D are fixed."""
    Delta = transition_residual(system, r) @ system.Sigma
    K = 2 * weights.tr * Delta @ T(r.B)
    return Gradient(B=np.zeros_like(r.B), D=np.zeros_like(r.D), K=K)


def reconstruction_gradient(
    system: LinearSystem, B: np.ndarray, G: np.ndarray, weights: Weights
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of lambda_rec L_rec in the encoder and in the decoder.

    Arguments:
        system: The linear system.
        B: The encoder (..., d, n).
        G: The decoder (..., n, d).
        weights: The loss weight lambda_rec.

    Returns:
        g_B (..., d, n) and g_G (..., n, d).
    """
    F = (G @ B - np.eye(system.n)) @ system.Sigma
    return 2 * weights.rec * T(G) @ F, 2 * weights.rec * F @ T(B)


def encoder_differential(
    system: LinearSystem,
    r: Realisation,
    weights: Weights,
    *,
    target: np.ndarray,
    change: Perturbation,
    target_change: np.ndarray,
) -> Gradient:
    r"""The first-order change of `encoder_gradient`.

    With P = D U + V B and Q = K U + W B - \bar U A, the changes of E and \bar Delta,

        g_B' = 2 (lambda_cur (D^T P + V^T E) + lambda_tr (K^T Q + W^T \bar Delta)) Sigma,
        g_D' = 2 lambda_cur (P Sigma B^T + E Sigma U^T).

    Where both residuals vanish only the terms with P and Q remain.

    Arguments:
        system: The linear system.
        r: The point (B, D, K).
        weights: The loss weights lambda_cur and lambda_tr.
        target: The target copy \bar B (..., d, n).
        change: The perturbation (U, V, W) of the point.
        target_change: The perturbation \bar U (..., d, n) of the target.
    """
    U, V, W = change.U, change.V, change.W
    E = current_residual(system, r) @ system.Sigma
    Delta = (r.K @ r.B - target @ system.A) @ system.Sigma
    P = (r.D @ U + V @ r.B) @ system.Sigma
    Q = (r.K @ U + W @ r.B - target_change @ system.A) @ system.Sigma
    pull = weights.cur * (T(r.D) @ P + T(V) @ E) + weights.tr * (T(r.K) @ Q + T(W) @ Delta)
    return Gradient(B=2 * pull, D=2 * weights.cur * (P @ T(r.B) + E @ T(U)), K=np.zeros_like(W))


def transition_differential(
    system: LinearSystem, r: Realisation, weights: Weights, change: Perturbation
) -> Gradient:
    """The first-order change of `transition_gradient`.

    g_K' = 2 lambda_tr (Q Sigma B^T + Delta Sigma U^T),   Q = K U + W B - U A.

    Arguments:
        system: The linear system.
        r: The point (B, D, K).
        weights: The loss weight lambda_tr.
        change: The perturbation (U, V, W) of the point.
    """
    U, W = change.U, change.W
    Delta = transition_residual(system, r) @ system.Sigma
    Q = (r.K @ U + W @ r.B - U @ system.A) @ system.Sigma
    K = 2 * weights.tr * (Q @ T(r.B) + Delta @ T(U))
    return Gradient(B=np.zeros_like(U), D=np.zeros_like(change.V), K=K)


MOST_STEPS = 100_000
"""Steps of either kind in a round."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """The schedule of a TAMPL round: N_E steps of size mu_E, then N_T steps of size mu_T.

    Example:
        >>> Round(mu_encoder=0.003, mu_transition=0.003).encoder_steps
        1
    """

    encoder_steps: int = 1
    transition_steps: int = 1
    mu_encoder: float
    mu_transition: float

    def __post_init__(self) -> None:
        for name in ("encoder_steps", "transition_steps"):
            require_count(getattr(self, name), name, least=1)
            if getattr(self, name) > MOST_STEPS:
                raise InputError(
                    f"`{name}` = {getattr(self, name)} must be at most {MOST_STEPS:,}, since a "
                    "certificate follows every step"
                )
        for name in ("mu_encoder", "mu_transition"):
            require_step(getattr(self, name), name)


def require_step(mu: float, name: str = "mu") -> None:
    """Refuse a step size that is not positive and finite."""
    if not 0 < mu <= LARGEST:
        raise InputError(
            f"`{name}` = {mu} must be a positive, finite step size of at most {LARGEST:.0e}"
        )


def joint_step(system: LinearSystem, r: Realisation, weights: Weights, mu: float) -> Realisation:
    """One simultaneous gradient step of size mu on L_joint."""
    g = joint_gradient(system, r, weights)
    return Realisation(r.B - mu * g.B, r.D - mu * g.D, r.K - mu * g.K)


def shrinking_step_bound(system: LinearSystem, r: Realisation, weights: Weights) -> np.ndarray:
    """The step size below which a joint step lowers ||B||_F; 0 if there is none, (...,).

    2 <B, g_B>_F / ||g_B||_F^2 where <B, g_B>_F > 0, in particular for E = 0 and Delta != 0.
    """
    g = joint_gradient(system, r, weights).B
    radial, size = np.sum(r.B * g, axis=(-2, -1)), np.sum(g * g, axis=(-2, -1))
    # Where g_B = 0 the radial component is 0 as well, and the quotient is not used.
    return np.where(radial > 0, 2 * radial / np.where(size > 0, size, 1.0), 0.0)


def recon_joint_step(
    system: LinearSystem, r: Realisation, G: np.ndarray, weights: Weights, mu: float
) -> tuple[Realisation, np.ndarray]:
    """One simultaneous gradient step of size mu on L_joint + lambda_rec L_rec.

    Arguments:
        system: The linear system.
        r: The point (B, D, K).
        G: The decoder (..., n, d).
        weights: The loss weights lambda_cur, lambda_tr and lambda_rec.
        mu: The step size.

    Returns:
        The moved realisation and the moved decoder.
    """
    g = joint_gradient(system, r, weights)
    g_B, g_G = reconstruction_gradient(system, r.B, G, weights)
    moved = Realisation(r.B - mu * (g.B + g_B), r.D - mu * g.D, r.K - mu * g.K)
    return moved, G - mu * g_G


def tampl_round(
    system: LinearSystem, r: Realisation, weights: Weights, round: Round
) -> Realisation:
    r"""One TAMPL round from \bar B = B.

    Arguments:
        system: The linear system.
        r: The point (B, D, K) at the start of the round.
        weights: The loss weights lambda_cur and lambda_tr.
        round: The numbers and sizes of the steps.
    """
    target = r.B
    for _ in range(round.encoder_steps):
        g = encoder_gradient(system, r, weights, target)
        r = Realisation(r.B - round.mu_encoder * g.B, r.D - round.mu_encoder * g.D, r.K)
    for _ in range(round.transition_steps):
        g = transition_gradient(system, r, weights)
        r = Realisation(r.B, r.D, r.K - round.mu_transition * g.K)
    return r
