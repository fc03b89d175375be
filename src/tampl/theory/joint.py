r"""Why joint descent shrinks the latent scale, and what that does to learning the transition.

With E = D B - C, Delta = K B - B A and the gradients G_B, G_D, G_K of L_joint,

    <B, G_B>_F = 2 lambda_cur <D B, E>_Sigma + 2 lambda_tr ||Delta||^2_Sigma,
    <D, G_D>_F = 2 lambda_cur <D B, E>_Sigma,

so that a step eta changes ||B||_F^2 by -2 eta <B, G_B>_F + eta^2 ||G_B||_F^2 and shrinks it for
0 < eta < 2 <B, G_B>_F / ||G_B||_F^2 where <B, G_B>_F > 0. The difference of the two identities is
2 lambda_tr L_tr, hence L_tr = 0 at every stationary point. Meanwhile G_K weakens with the scale:
along B = alpha B^ it is alpha^2 times its value at B^, and for a unit eigenvector u of B Sigma B^T
with eigenvalue s^2, ||G_K u|| <= 2 lambda_tr s sqrt(L_tr). Leading axes are a batch everywhere.

Reference: the paper's appendices "Coordinate transformations and scale non-coercivity" and "Joint
gradients and latent scaling".
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .gradients import joint_gradient
from .linear import (
    LinearSystem,
    Realisation,
    T,
    Weights,
    current_residual,
    inner,
    transition_loss,
    transition_residual,
)

__all__ = [
    "DirectionBounds",
    "Radial",
    "bound_directions",
    "bound_transition_loss",
    "norm_change",
    "radial_identities",
    "scale",
    "scaled_transition_gradient",
    "shrinking_step_bound",
]


@dataclass(frozen=True, eq=False)
class Radial:
    """Both sides of the radial identities, each of the batch shape.

    Attributes:
        encoder: <B, G_B>_F, from the gradient.
        readout: <D, G_D>_F, from the gradient.
        current: 2 lambda_cur <D B, E>_Sigma, to which `readout` is equal.
        transition: 2 lambda_tr L_tr; with `current` it adds up to `encoder`.
    """

    encoder: np.ndarray
    readout: np.ndarray
    current: np.ndarray
    transition: np.ndarray


@dataclass(frozen=True, eq=False)
class DirectionBounds:
    """The gradient of the transition, direction by direction of the latent space.

    Attributes:
        directions: The unit eigenvectors u of B Sigma B^T as columns, (..., d, d).
        scales: The roots s of their eigenvalues, rising, (..., d).
        gradients: ||G_K u||_2, (..., d).
        bounds: 2 lambda_tr s sqrt(L_tr), (..., d).
    """

    directions: np.ndarray
    scales: np.ndarray
    gradients: np.ndarray
    bounds: np.ndarray


def scale(r: Realisation, alpha: float | np.ndarray) -> Realisation:
    """(alpha B, D / alpha, K): the same predictions at another latent scale.

    L_tr becomes alpha^2 L_tr, so that shrinking lowers L_joint and corrects nothing.

    Arguments:
        r: The realisation.
        alpha: Positive scales, of any shape that broadcasts with the batch.
    """
    ray = _scales(alpha)
    return Realisation(ray * r.B, r.D / ray, r.K)


def radial_identities(system: LinearSystem, r: Realisation, weights: Weights) -> Radial:
    """Both sides of <B, G_B>_F and <D, G_D>_F."""
    gradient = joint_gradient(system, r, weights)
    E = current_residual(system, r)
    return Radial(
        encoder=_dot(r.B, gradient.B),
        readout=_dot(r.D, gradient.D),
        current=2 * weights.cur * inner(r.D @ r.B, E, system.Sigma),
        transition=2 * weights.tr * transition_loss(system, r),
    )


def norm_change(
    system: LinearSystem, r: Realisation, weights: Weights, eta: float | np.ndarray
) -> np.ndarray:
    """||B^+||_F^2 - ||B||_F^2 of one joint step of size eta, (...,)."""
    G = joint_gradient(system, r, weights).B
    return -2 * eta * _dot(r.B, G) + eta**2 * _dot(G, G)


def shrinking_step_bound(system: LinearSystem, r: Realisation, weights: Weights) -> np.ndarray:
    """Every joint step below this shrinks ||B||_F; 0 where none of them must, (...,).

    2 <B, G_B>_F / ||G_B||_F^2 where <B, G_B>_F > 0, in particular for E = 0 and Delta != 0.
    """
    G = joint_gradient(system, r, weights).B
    radial, size = _dot(r.B, G), _dot(G, G)
    # G_B = 0 has radial = 0 as well; its quotient is not asked for.
    return np.where(radial > 0, 2 * radial / np.where(size > 0, size, 1.0), 0.0)


def scaled_transition_gradient(
    system: LinearSystem, r: Realisation, weights: Weights, alpha: float | np.ndarray
) -> np.ndarray:
    """G_K at the encoder alpha B: 2 lambda_tr alpha^2 Delta Sigma B^T, (..., d, d)."""
    Delta = transition_residual(system, r)
    return 2 * weights.tr * _scales(alpha) ** 2 * (Delta @ system.Sigma @ T(r.B))


def bound_directions(system: LinearSystem, r: Realisation, weights: Weights) -> DirectionBounds:
    """||G_K u||_2 and its bound for each eigenvector u of B Sigma B^T."""
    values, directions = np.linalg.eigh(r.B @ system.Sigma @ T(r.B))
    # Roundoff makes the zero eigenvalues of a collapsed encoder negative now and then.
    scales = np.sqrt(np.maximum(values, 0.0))
    gradient = joint_gradient(system, r, weights).K
    return DirectionBounds(
        directions=directions,
        scales=scales,
        gradients=np.linalg.norm(gradient @ directions, axis=-2),
        bounds=2 * weights.tr * scales * np.sqrt(transition_loss(system, r))[..., None],
    )


def bound_transition_loss(system: LinearSystem, r: Realisation, weights: Weights) -> np.ndarray:
    """An upper bound on L_tr that is zero where G_B and G_D are, (...,).

        L_tr = (<B, G_B> - <D, G_D>) / (2 lambda_tr)
            <= (||B|| ||G_B|| + ||D|| ||G_D||) / (2 lambda_tr)

    Hence every finite stationary point of L_joint is closed, K B = B A, whatever it predicts.
    """
    if weights.tr == 0:
        raise InputError("`weights` must have tr > 0; without L_tr nothing bounds it")
    gradient = joint_gradient(system, r, weights)
    pairs = ((r.B, gradient.B), (r.D, gradient.D))
    return sum(np.sqrt(_dot(M, M) * _dot(G, G)) for M, G in pairs) / (2 * weights.tr)


def _dot(M: np.ndarray, N: np.ndarray) -> np.ndarray:
    return np.sum(M * N, axis=(-2, -1))


def _scales(alpha: float | np.ndarray) -> np.ndarray:
    alpha = np.asarray(alpha, dtype=np.float64)
    if not np.all(alpha > 0):
        raise InputError(f"`alpha` must be positive; its smallest value is {np.min(alpha):.3g}")
    return alpha[..., None, None]
