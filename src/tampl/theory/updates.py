r"""The update rules as maps on (B, D, K): joint descent, joint with reconstruction, TAMPL rounds.

A joint step moves all matrices against the gradient of L_joint (plus lambda_rec L_rec, with the
decoder G) at once. A TAMPL round copies the target \bar B = B, takes N_E simultaneous (B, D) steps
of size mu_E on L_enc with K and \bar B fixed, and then, with the new encoder fixed, N_T steps of
size mu_T of K on lambda_tr L_tr. Step sizes apply to the weighted objectives: mu_T here is
lambda_tr mu_T on the unweighted transition loss. Gradients are those of the population, so every
rule is deterministic. Leading axes are a batch everywhere.

Reference: the paper's section "How TAMPL changes the optimization" and its appendix "Local
convergence for finite alternating blocks".
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .checks import require_count
from .gradients import (
    encoder_gradient,
    joint_gradient,
    reconstruction_gradient,
    transition_gradient,
)
from .linear import LinearSystem, Realisation, Weights

__all__ = ["Round", "joint_step", "recon_joint_step", "require_step", "tampl_round"]


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
        for name in ("mu_encoder", "mu_transition"):
            require_step(getattr(self, name), name)


def require_step(mu: float, name: str = "mu") -> None:
    """Refuse a step size that is not positive and finite."""
    if not 0 < mu < np.inf:
        raise InputError(f"`{name}` = {mu} must be a positive, finite step size")


def joint_step(system: LinearSystem, r: Realisation, weights: Weights, mu: float) -> Realisation:
    """One simultaneous gradient step of size mu on L_joint."""
    g = joint_gradient(system, r, weights)
    return Realisation(r.B - mu * g.B, r.D - mu * g.D, r.K - mu * g.K)


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
