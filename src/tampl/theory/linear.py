r"""Linear systems, their latent realisations, and the losses between the two.

A system x_{t+1} = A x_t, y_t = C x_t whose source states have mean zero and covariance Sigma is
modelled by an encoder z = B x, a readout y = D z and a transition z_{t+1} = K z. With
<M, N>_Sigma = tr(M Sigma N^T) and ||M||^2_Sigma = <M, M>_Sigma,

    L_cur = ||D B - C||^2_Sigma,   L_tr = ||K B - B A||^2_Sigma,   L_rec = ||G B - I||^2_Sigma,
    L_joint = lambda_cur L_cur + lambda_tr L_tr.

A change of latent coordinates S in GL(d), (B, D, K) -> (S B, D S^-1, S K S^-1), keeps every
prediction D K^h B and turns K B - B A into S (K B - B A). Leading axes are a batch everywhere.

Reference: the paper's section "Analysis".
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InputError
from .checks import (
    as_covariance,
    as_matrix,
    require_batch,
    require_count,
    require_moderate,
    require_square,
)

__all__ = [
    "LinearSystem",
    "Realisation",
    "T",
    "Weights",
    "current_loss",
    "current_residual",
    "inner",
    "joint_loss",
    "norm2",
    "reconstruction_loss",
    "require_latent_dim",
    "residual",
    "rollout_error",
    "spectral_norm",
    "transition_loss",
    "transition_residual",
]


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """The dynamics A (..., n, n), the observable C (..., m, n), the covariance Sigma (..., n, n).

    Example:
        >>> system = LinearSystem(np.diag([0.9, 0.5]), [[1.0, 1.0]], np.eye(2))
        >>> system.n, system.m
        (2, 1)
    """

    A: np.ndarray
    C: np.ndarray
    Sigma: np.ndarray

    def __post_init__(self) -> None:
        for name in ("A", "C", "Sigma"):
            matrix = as_matrix(getattr(self, name), name)
            require_moderate(matrix, name)
            object.__setattr__(self, name, matrix)
        require_square(self.A, "A")
        n = self.A.shape[-1]
        if self.C.shape[-1] != n:
            raise InputError(
                f"`C` must have n = {n} columns, as many as `A`; it has {self.C.shape[-1]}"
            )
        if self.Sigma.shape[-2:] != (n, n):
            raise InputError(
                f"`Sigma` must be (n, n) = ({n}, {n}), as `A` is; its shape is {self.Sigma.shape}"
            )
        require_batch({"A": self.A, "C": self.C, "Sigma": self.Sigma})
        object.__setattr__(self, "Sigma", as_covariance(self.Sigma, "Sigma"))

    @property
    def n(self) -> int:
        """The microscopic dimension."""
        return self.A.shape[-1]

    @property
    def m(self) -> int:
        """The macroscopic dimension."""
        return self.C.shape[-2]

    @cached_property
    def root(self) -> np.ndarray:
        """The symmetric square root Sigma^{1/2}, (..., n, n)."""
        values, vectors = np.linalg.eigh(self.Sigma)
        return (vectors * np.sqrt(values)[..., None, :]) @ T(vectors)


@dataclass(frozen=True, eq=False)
class Realisation:
    """A latent model: the encoder B (..., d, n), readout D (..., m, d), transition K (..., d, d).

    Entries may be infinite or not a number, as in the iterates of a descent that diverges.
    """

    B: np.ndarray
    D: np.ndarray
    K: np.ndarray

    def __post_init__(self) -> None:
        for name in ("B", "D", "K"):
            object.__setattr__(self, name, as_matrix(getattr(self, name), name))
        d, n = self.B.shape[-2:]
        if d > n:
            raise InputError(
                f"`B` must not have more rows than columns, d <= n; here d = {d} and n = {n}"
            )
        if self.D.shape[-1] != d:
            raise InputError(
                f"`D` must have d = {d} columns, one for each row of `B`; it has"
                f" {self.D.shape[-1]}"
            )
        if self.K.shape[-2:] != (d, d):
            raise InputError(
                f"`K` must be (d, d) = ({d}, {d}) for the {d} rows of `B`; its shape is"
                f" {self.K.shape}"
            )

    @property
    def latent_dim(self) -> int:
        """The latent dimension d."""
        return self.B.shape[-2]

    def change(self, S: np.ndarray) -> "Realisation":
        """The same model in other latent coordinates: (S B, D S^-1, S K S^-1).

        Arguments:
            S: an invertible matrix, (..., d, d).
        """
        S = as_matrix(S, "S")
        if S.shape[-2:] != self.K.shape[-2:]:
            raise InputError(
                f"`S` must be (d, d) = {self.K.shape[-2:]}, as `K` is; its shape is {S.shape}"
            )
        scales = np.linalg.svd(S, compute_uv=False)
        if np.any(scales[..., -1] <= S.shape[-1] * np.finfo(float).eps * scales[..., 0]):
            raise InputError(
                "`S` must be invertible; its smallest singular value is"
                f" {np.min(scales[..., -1]):.3g}"
            )
        D = T(np.linalg.solve(T(S), T(self.D)))
        K = T(np.linalg.solve(T(S), T(S @ self.K)))
        return Realisation(S @ self.B, D, K)

    def macro(self, h: int) -> np.ndarray:
        """The map D K^h B from a microstate to the prediction h steps ahead, (..., m, n)."""
        require_count(h, "h")
        return self.D @ np.linalg.matrix_power(self.K, h) @ self.B


@dataclass(frozen=True)
class Weights:
    """The weights lambda of the losses: current, transition, reconstruction."""

    cur: float = 1.0
    tr: float = 1.0
    rec: float = 0.0

    def __post_init__(self) -> None:
        for name in ("cur", "tr", "rec"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InputError(f"`{name}` = {value} must be a finite weight of at least 0")

    def require_positive(self, *names: str) -> None:
        """Refuses weights of zero where a theorem needs the loss that they multiply."""
        for name in names:
            value = getattr(self, name)
            if not value > 0:
                raise InputError(
                    f"`weights.{name}` = {value} must be positive for this certificate"
                )


def T(M: np.ndarray) -> np.ndarray:
    """The transpose of each matrix of a batch."""
    return np.swapaxes(M, -1, -2)


def inner(M: np.ndarray, N: np.ndarray, Sigma: np.ndarray) -> np.ndarray:
    """<M, N>_Sigma = tr(M Sigma N^T), of the batch shape."""
    return np.sum((M @ Sigma) * N, axis=(-2, -1))


def norm2(M: np.ndarray, Sigma: np.ndarray) -> np.ndarray:
    """||M||^2_Sigma = tr(M Sigma M^T), of the batch shape."""
    return inner(M, M, Sigma)


def spectral_norm(M: np.ndarray) -> np.ndarray:
    """The largest singular value of each matrix of a batch."""
    return np.linalg.norm(M, 2, axis=(-2, -1))


def current_residual(system: LinearSystem, r: Realisation) -> np.ndarray:
    """E = D B - C, (..., m, n)."""
    _require_fit(system, r)
    return r.D @ r.B - system.C


def transition_residual(system: LinearSystem, r: Realisation) -> np.ndarray:
    """Delta = K B - B A, (..., d, n)."""
    _require_fit(system, r)
    return r.K @ r.B - r.B @ system.A


def residual(system: LinearSystem, r: Realisation, weights: Weights) -> np.ndarray:
    """R(theta): both residuals times Sigma^{1/2} and the root of their weight, (..., m + d, n).

    Its squared Frobenius norm is L_joint.
    """
    E = np.sqrt(weights.cur) * current_residual(system, r)
    Delta = np.sqrt(weights.tr) * transition_residual(system, r)
    shape = np.broadcast_shapes(E.shape[:-2], Delta.shape[:-2])
    parts = [np.broadcast_to(M, (*shape, *M.shape[-2:])) for M in (E, Delta)]
    return np.concatenate(parts, axis=-2) @ system.root


def current_loss(system: LinearSystem, r: Realisation) -> np.ndarray:
    """L_cur = ||D B - C||^2_Sigma."""
    return norm2(current_residual(system, r), system.Sigma)


def transition_loss(system: LinearSystem, r: Realisation) -> np.ndarray:
    """L_tr = ||K B - B A||^2_Sigma."""
    return norm2(transition_residual(system, r), system.Sigma)


def reconstruction_loss(system: LinearSystem, B: np.ndarray, G: np.ndarray) -> np.ndarray:
    """L_rec = ||G B - I||^2_Sigma for a decoder G (..., n, d)."""
    return norm2(G @ B - np.eye(system.n), system.Sigma)


def joint_loss(system: LinearSystem, r: Realisation, weights: Weights) -> np.ndarray:
    """L_joint = lambda_cur L_cur + lambda_tr L_tr."""
    return weights.cur * current_loss(system, r) + weights.tr * transition_loss(system, r)


def rollout_error(system: LinearSystem, r: Realisation, horizon: int) -> np.ndarray:
    """||D K^h B - C A^h||^2_Sigma for h = 0 .. horizon, (..., horizon + 1)."""
    _require_fit(system, r)
    require_count(horizon, "horizon")
    Z, Y = r.B, system.C
    errors = [norm2(r.D @ Z - Y, system.Sigma)]
    for _ in range(horizon):
        Z, Y = r.K @ Z, Y @ system.A
        errors.append(norm2(r.D @ Z - Y, system.Sigma))
    return np.stack(np.broadcast_arrays(*errors), axis=-1)


def require_latent_dim(system: LinearSystem, latent_dim: int) -> None:
    """Refuses a latent dimension that is not a whole number from 1 to n."""
    require_count(latent_dim, "latent_dim", 1)
    if latent_dim > system.n:
        raise InputError(
            f"`latent_dim` = {latent_dim} must be at most n = {system.n}, the rows of `A`"
        )


def _require_fit(system: LinearSystem, r: Realisation) -> None:
    if r.B.shape[-1] != system.n:
        raise InputError(
            f"`B` must have n = {system.n} columns, as many as `A`; it has {r.B.shape[-1]}"
        )
    if r.D.shape[-2] != system.m:
        raise InputError(
            f"`D` must have m = {system.m} rows, as many as `C`; it has {r.D.shape[-2]}"
        )
