r"""How the two blocks of a TAMPL round act: fixed coordinates and a fixed target.

Fixed coordinates. For a full-row-rank encoder with C_B = B Sigma B^T, beta I <= C_B <= Lambda I,

    K*(B) = B A Sigma B^T C_B^-1,
    ||K B - B A||^2_Sigma = min + tr[(K - K*) C_B (K - K*)^T],
    K^+ - K* = (K - K*) (I - 2 lambda_tr mu C_B)        for one step of size mu on lambda_tr L_tr,

so that mu <= 1 / (2 lambda_tr Lambda) contracts ||K - K*||_F by 1 - 2 lambda_tr mu beta.

Fixed target. Along B = alpha \bar B, with x = <K \bar B, K \bar B - \bar B A>_Sigma,

    ||alpha K \bar B - \bar B A||^2 = ||K \bar B - \bar B A||^2 + (alpha - 1)^2 ||K \bar B||^2
                                      + 2 (alpha - 1) x,

and x = 0 at K = K*(\bar B): the target anchors the scale at alpha = 1. As alpha -> 0 the loss goes
to ||\bar B A||^2, which is zero only where \bar B A = 0. For another K it is least at
alpha_star = <K \bar B, \bar B A> / ||K \bar B||^2, and where that is not positive the encoder
shrinks along the ray in spite of the target. Both are statements about one block; `convergence`
and `attractor` are about repeated rounds.

Reference: the paper's appendices "Fixed-coordinate transition regression" and "Fixed-target scale
anchoring".
"""

from dataclasses import dataclass

import numpy as np

from ..checks import ROUNDING, TOLERANCE, tell
from ..linear import LinearSystem, Realisation, T, Weights, inner, norm2
from ..realisability import latent_covariance, require_point
from ..updates import require_step

__all__ = [
    "ScaleAnchoring",
    "TransitionFit",
    "fit_transition",
    "optimal_transition",
    "scale_anchoring",
]


@dataclass(frozen=True, eq=False)
class TransitionFit:
    """The transition of a model beside the best one in the same latent coordinates.

    Attributes:
        K_star: K*(B) (..., d, d).
        loss: L_tr at K.
        minimum: L_tr at K*(B).
        excess: tr[(K - K*) C_B (K - K*)^T]; loss = minimum + excess.
        distance: ||K - K*(B)||_F; the excess lies between beta and Lambda times its square.
        beta: The smallest eigenvalue of C_B.
        Lambda: The largest one.
        step_bound: 1 / (2 lambda_tr Lambda).
        mu: The step size in question.
        factor: max |1 - 2 lambda_tr mu lambda| over the eigenvalues of C_B; for mu up to the step
            bound this is the paper's 1 - 2 lambda_tr mu beta.
        verdict: "contracts", "diverges" or "undecided" (a factor of one within rounding).
        words: The verdict as a sentence.
    """

    K_star: np.ndarray
    loss: np.ndarray
    minimum: np.ndarray
    excess: np.ndarray
    distance: np.ndarray
    beta: np.ndarray
    Lambda: np.ndarray
    step_bound: np.ndarray
    mu: np.ndarray
    factor: np.ndarray
    verdict: np.ndarray
    words: np.ndarray


def optimal_transition(system: LinearSystem, B: np.ndarray) -> np.ndarray:
    """K*(B) = B A Sigma B^T (B Sigma B^T)^-1 (..., d, d), the only minimiser of L_tr in K.

    Arguments:
        system: The linear system.
        B: An encoder (..., d, n) of full row rank.

    Example:
        >>> system = LinearSystem(np.diag([0.8, 0.2]), [[1.0, 0.0]], np.eye(2))
        >>> print(optimal_transition(system, np.array([[1.0, 1.0]])))
        [[0.5]]
    """
    C_B = latent_covariance(system, B)
    return T(np.linalg.solve(C_B, B @ system.Sigma @ T(B @ system.A)))


def fit_transition(
    system: LinearSystem, r: Realisation, weights: Weights, mu: float | None = None
) -> TransitionFit:
    """Decomposes the transition loss at fixed B and says how fast K is fitted.

    Arguments:
        system: The linear system.
        r: The model; its readout plays no role.
        weights: The loss weight lambda_tr, positive.
        mu: The step size on lambda_tr L_tr; the step bound of each system where it is not given.
    """
    weights.require_positive("tr")
    C_B, K_star = require_point(system, r), optimal_transition(system, r.B)
    values = np.linalg.eigvalsh(C_B)
    beta, Lambda = np.min(values, axis=-1), np.max(values, axis=-1)
    bound = 1 / (2 * weights.tr * Lambda)
    if mu is not None:
        require_step(mu)
    step = bound if mu is None else mu + 0 * bound
    shrink = np.abs(1 - 2 * weights.tr * step[..., None] * values)
    factor = np.max(shrink, axis=-1)
    signs = [factor < 1 - ROUNDING, factor > 1 + ROUNDING]
    verdict = np.select(signs, ["contracts", "diverges"], "undecided")[()]
    return TransitionFit(
        K_star=K_star,
        loss=norm2(r.K @ r.B - r.B @ system.A, system.Sigma),
        minimum=norm2(K_star @ r.B - r.B @ system.A, system.Sigma),
        excess=norm2(r.K - K_star, C_B),
        distance=np.linalg.norm(r.K - K_star, axis=(-2, -1)),
        beta=beta,
        Lambda=Lambda,
        step_bound=bound,
        mu=step,
        factor=factor,
        verdict=verdict,
        words=tell(_describe_fit, verdict, step, bound, factor),
    )


@dataclass(frozen=True, eq=False)
class ScaleAnchoring:
    r"""The transition loss along B = alpha \bar B with K and \bar B fixed.

    Attributes:
        loss_at_target: ||K \bar B - \bar B A||^2_Sigma, the loss at alpha = 1, and half the radial
            component of its joint gradient.
        stiffness: ||K \bar B||^2_Sigma, the factor of (alpha - 1)^2.
        cross: <K \bar B, K \bar B - \bar B A>_Sigma, half the radial component of the detached
            gradient; zero at K = K*(\bar B).
        limit: ||\bar B A||^2_Sigma, the loss as alpha -> 0.
        alpha_star: Where the loss along the ray is least; not a number where it is constant.
        verdict: "anchored" (least at alpha = 1 only), "displaced" (only at another alpha > 0),
            "shrinks" (only at an alpha <= 0) or "free" (K \bar B = 0: every scale is as good).
        words: The verdict as a sentence.
    """

    loss_at_target: np.ndarray
    stiffness: np.ndarray
    cross: np.ndarray
    limit: np.ndarray
    alpha_star: np.ndarray
    verdict: np.ndarray
    words: np.ndarray

    def loss(self, alpha: float | np.ndarray) -> np.ndarray:
        """The loss at a scale by the identity; alpha must broadcast with the batch."""
        away = np.asarray(alpha) - 1
        return self.loss_at_target + away**2 * self.stiffness + 2 * away * self.cross


def scale_anchoring(system: LinearSystem, r: Realisation) -> ScaleAnchoring:
    r"""Says whether the fixed target holds the scale of the encoder.

    Arguments:
        system: The linear system.
        r: The target encoder \bar B and the transition K; the readout plays no role. The paper's
            identity is the one for K = `optimal_transition(system, r.B)`.
    """
    require_point(system, r)
    KB, BA = r.K @ r.B, r.B @ system.A
    loss, stiffness = norm2(KB - BA, system.Sigma), norm2(KB, system.Sigma)
    limit, cross = norm2(BA, system.Sigma), inner(KB, KB - BA, system.Sigma)
    free = stiffness <= ROUNDING**2 * limit
    alpha_star = np.where(free, np.nan, 1 - cross / np.where(free, 1.0, stiffness))[()]
    shrinks = inner(KB, BA, system.Sigma) <= ROUNDING * np.sqrt(stiffness * limit)
    anchored = np.abs(cross) <= TOLERANCE * np.sqrt(stiffness * (stiffness + limit))
    signs = [free, shrinks, anchored]
    choices = ["free", "shrinks", "anchored"]
    verdict = np.select(signs, choices, "displaced")[()]
    words = tell(_describe_anchor, verdict, alpha_star, stiffness, limit)
    return ScaleAnchoring(loss, stiffness, cross, limit, alpha_star, verdict, words)


def _describe_fit(verdict: str, mu: float, bound: float, factor: float) -> str:
    side = "within" if mu <= bound else "beyond"
    step = f"Steps of size {mu:.4g} ({side} the bound {bound:.4g})"
    return {
        "contracts": f"{step} bring K nearer to K*(B) by a factor of at most {factor:.6g} each.",
        "diverges": f"{step} drive K away from K*(B) by a factor of up to {factor:.6g} each.",
        "undecided": f"{step} keep the distance to K*(B) in some direction.",
    }[verdict]


def _describe_anchor(verdict: str, alpha: float, stiffness: float, limit: float) -> str:
    if verdict == "free":
        return "K B = 0: the fixed target does not hold the scale of the encoder."
    end = f"; as the encoder shrinks to zero the transition loss goes to {limit:.4g}"
    clause = end if limit > 0 else ""
    if verdict == "shrinks":
        return (
            "The fixed target does not hold the scale: along the ray the transition loss is least"
            f" at alpha = {alpha:.6g}, and the encoder shrinks towards zero{clause}."
        )
    hold = f"The fixed target holds the scale at alpha = {alpha:.6g}"
    return f"{hold} with stiffness {stiffness:.4g}{clause}."
