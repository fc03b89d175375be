r"""Exact population gradients of the losses of a linear system.

With E = D B - C, Delta = K B - B A and, for a target copy \bar B, \bar Delta = K B - \bar B A,

    L_joint: g_B = 2 (lambda_cur D^T E + lambda_tr K^T Delta) Sigma - 2 lambda_tr Delta Sigma A^T,
             g_D = 2 lambda_cur E Sigma B^T,     g_K = 2 lambda_tr Delta Sigma B^T,
    L_enc:   g_B = 2 (lambda_cur D^T E + lambda_tr K^T \bar Delta) Sigma,     g_D as above,
    L_rec:   g_B = 2 lambda_rec G^T F Sigma,     g_G = 2 lambda_rec F Sigma B^T,     F = G B - I.

L_enc(B, D; K, \bar B) = lambda_cur L_cur + lambda_tr ||K B - \bar B A||^2_Sigma is what a TAMPL
round descends in (B, D): the target is data, so the term with A^T is missing. The differentials
say how the gradients of a round change when (B, D, K) change by (U, V, W), the target by \bar U.
Leading axes are a batch everywhere; a perturbation may have more of them than the point.

Reference: the paper's appendices "Joint gradients and latent scaling" and "Fixed-target scale
anchoring".
"""

from dataclasses import dataclass

import numpy as np

from .linear import LinearSystem, Realisation, T, Weights, current_residual, transition_residual

__all__ = [
    "Gradient",
    "Perturbation",
    "encoder_differential",
    "encoder_gradient",
    "joint_gradient",
    "reconstruction_gradient",
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
    r"""The gradient of L_enc(B, D; K, \bar B) in (B, D); K stands still.

    Arguments:
        system: The linear system.
        r: The point (B, D, K).
        weights: The loss weights lambda_cur and lambda_tr.
        target: The target copy \bar B (..., d, n), which the gradient does not see through.
    """
    E = current_residual(system, r) @ system.Sigma
    Delta = (r.K @ r.B - target @ system.A) @ system.Sigma
    pull = weights.cur * T(r.D) @ E + weights.tr * T(r.K) @ Delta
    return Gradient(B=2 * pull, D=2 * weights.cur * E @ T(r.B), K=np.zeros_like(r.K))


def transition_gradient(system: LinearSystem, r: Realisation, weights: Weights) -> Gradient:
    """The gradient of lambda_tr L_tr in K alone; B and D stand still."""
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
    r"""How `encoder_gradient` changes to first order.

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
    """How `transition_gradient` changes to first order.

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
