r"""The differential of a TAMPL round, and what it is modulo changes of latent coordinates.

A round maps theta = (B, D, K) to Psi(theta): N_E encoder steps of size mu_E towards the target
\bar B = B, then N_T transition steps of size mu_T. Its differential follows a perturbation through
the same steps; the target is perturbed as B is at the start of the round,

    U_{s+1} = U_s - mu_E g_B',   V_{s+1} = V_s - mu_E g_D',   W_{q+1} = W_q - mu_T g_K',

with the differentials of `gradients`. At an exact realisation these are the paper's formulas, but
they hold at every point. Psi fixes every exact realisation, so DPsi is the identity on the changes
of latent coordinates, and with N an orthonormal basis of their complement J_err = N^T DPsi N is
the induced map on perturbations modulo coordinates. Where its spectral radius is below one, rounds
converge from every near start. Where the residual stands still in other directions too, J_err has
the eigenvalue one, and it may be defective: only a radius clearly above one then shows anything.

Reference: the paper's appendix "Local convergence for finite alternating blocks".
"""

from dataclasses import dataclass

import numpy as np

from ..gradients import (
    Perturbation,
    encoder_differential,
    encoder_gradient,
    transition_differential,
    transition_gradient,
)
from ..linear import LinearSystem, Realisation, T, Weights
from ..updates import Round
from .conditions import ROUNDING, tell
from .convergence import as_columns, linearise, normal_basis, unit_perturbations
from .verdicts import Verdict

__all__ = [
    "RoundCertificate",
    "certify_rounds",
    "differentiate_round",
    "quotient",
    "round_jacobian",
    "spectral_radius",
]

DEFECT = 100 * float(np.sqrt(np.finfo(float).eps))
"""What rounding may do to a defective eigenvalue of a matrix of norm one: it moves a pair by the
root of the precision times how strongly the two are coupled."""


@dataclass(frozen=True, eq=False)
class RoundCertificate:
    """The linearised round at an exact realisation.

    Attributes:
        jacobian: DPsi (..., p, p) on vectorised (U, V, W), each block row by row.
        quotient: J_err (..., p - d^2, p - d^2).
        radius: The spectral radius of J_err.
        norm: ||J_err||_2, what a single round may do at most.
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
    radius, norm = spectral_radius(induced), np.linalg.norm(induced, 2, axis=(-2, -1))
    s_star = np.min(response, axis=-1)
    # A further direction in which the residual stands still has the eigenvalue one exactly, and
    # rounding may move a defective one by the root of the machine precision.
    moves = s_star > ROUNDING * response[..., 0]
    rounding = np.where(moves, ROUNDING, DEFECT) * np.maximum(norm, 1.0)
    signs = [moves & (radius < 1 - rounding), radius > 1 + rounding]
    verdict = np.select(signs, [Verdict.CONVERGES, Verdict.UNSTABLE], Verdict.UNDECIDED)[()]
    words = tell(_words, verdict, radius, moves)
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
    v = differentiate_round(system, r, weights, steps, unit_perturbations(system, r))
    return as_columns(v.U, v.V, v.W)


def differentiate_round(
    system: LinearSystem, r: Realisation, weights: Weights, steps: Round, change: Perturbation
) -> Perturbation:
    """What a round makes of a perturbation of its start, to first order.

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
    """N^T J N: what a map that leaves changes of latent coordinates at r alone does to the rest.

    Arguments:
        jacobian: The map (..., p, p).
        r: The point, which must be fixed by the round together with its coordinate changes.
    """
    N = normal_basis(r)
    return T(N) @ jacobian @ N


def spectral_radius(M: np.ndarray) -> np.ndarray:
    """The largest modulus of an eigenvalue of each matrix."""
    return np.max(np.abs(np.linalg.eigvals(M)), axis=-1)


def _words(verdict: Verdict, radius: float, moves: bool) -> str:
    said = {
        Verdict.CONVERGES: "Rounds converge from every near start, in the long run by"
        f" {radius:.6g} each (spectral radius modulo latent coordinates)",
        Verdict.UNSTABLE: "Rounds leave the neighbourhood of this model from almost every near"
        f" start: the spectral radius modulo latent coordinates is {radius:.6g}",
        Verdict.UNDECIDED: "The spectral radius modulo latent coordinates is one within rounding"
        f" ({radius:.6g})",
    }[verdict]
    still = "; rounds stand still in directions that are no change of latent coordinates"
    return f"{said}{'' if moves else still}."
