r"""Which latent dimensions can carry a system exactly, and a realisation for each of them.

(B, D, K) is exact if D B = C and K B = B A. A full-row-rank exact realisation of dimension d
exists if and only if some d-dimensional row space V contains row(C) and V A is inside V. The
smallest such space is the row space of [C; C A; ...; C A^{n-1}], of dimension r. With orthonormal
rows B that span any such space,

    K = B A B^T,    D = C B^T.

For d > r the space grows by left eigenvectors of A on the quotient. A pair of complex eigenvalues
gives two rows, so that without a real eigenvalue d - r must be even.

Exactness does not depend on latent coordinates. D B - C is the same in all of them; K B - B A is
measured as C_B^{-1/2} (K B - B A) Sigma^{1/2} with the latent covariance C_B = B Sigma B^T, which
changes by a rotation only.

Reference: the paper's appendix "Exact realizability" and, for `shift_model`, its proposition
"One-step macrostate supervision".
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..errors import InputError
from .checks import RANK_TOLERANCE, TOLERANCE, as_matrix, require, require_count, require_finite
from .linear import (
    LinearSystem,
    Realisation,
    T,
    current_loss,
    current_residual,
    require_latent_dim,
    spectral_norm,
    transition_loss,
    transition_residual,
)

__all__ = [
    "Misfit",
    "NoRealisationError",
    "closure_misfit",
    "current_misfit",
    "is_exact",
    "latent_covariance",
    "level_rows",
    "observable_row_space",
    "realise",
    "require_closed",
    "require_exact",
    "require_full_rank",
    "require_point",
    "require_single",
    "shift_model",
]

ROUNDOFF_SHARE = 1e-3
"""The largest share of the compared terms that is ascribed to roundoff: beyond it, latent
coordinates are too skewed to show anything."""


class NoRealisationError(InputError):
    """No exact realisation of the dimension asked for exists.

    Arguments:
        rule: What the dimension must be.
        reason: Why, as the clause that follows "since".
    """

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"{rule}, since {reason}")
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Misfit:
    """The violation of an equation, the same in all latent coordinates but for roundoff.

    Attributes:
        size: The norm of the difference of its sides, (...,).
        scale: The size of the compared terms, (...,).
        roundoff: The share of the size that rounding may cause in these coordinates, (...,).
    """

    size: np.ndarray
    scale: np.ndarray
    roundoff: np.ndarray

    def holds(self, tolerance: float = TOLERANCE) -> np.ndarray:
        """Whether the size is within the tolerance, a share of the scale, and roundoff."""
        return self.size <= tolerance * self.scale + self.roundoff


def observable_row_space(system: LinearSystem) -> np.ndarray:
    """The smallest A-invariant row space that contains row(C), as orthonormal rows (r, n).

    The rows of C A^h are made orthogonal as they come, which keeps powers of A, and the loss of
    digits in them, out of the decision on the rank.
    """
    require_single(system)
    scale = float(np.linalg.norm(system.A, 2))
    basis = new = _span_rows(system.C, float(np.linalg.norm(system.C, 2)))
    while len(new) and len(basis) < system.n:
        image = new @ system.A
        for _ in range(2):  # once more, since the first subtraction leaves roundoff behind
            image = image - image @ T(basis) @ basis
        new = _span_rows(image, scale)
        basis = np.concatenate([basis, new])
    return basis


def realise(system: LinearSystem, latent_dim: int | None = None) -> Realisation:
    """An exact realisation whose encoder has orthonormal rows.

    Beyond the smallest dimension r, eigenvalues of largest modulus are added first: they belong to
    the directions that live longest.

    Arguments:
        system: One system, not a batch.
        latent_dim: The latent dimension d; where it is not given, r (or 1 for C = 0).

    Raises:
        NoRealisationError: if no exact realisation of this dimension exists, with the reason.
    """
    basis = observable_row_space(system)
    r = len(basis)
    d = max(r, 1) if latent_dim is None else latent_dim
    require_latent_dim(system, d)
    if d < r:
        raise NoRealisationError(
            f"`latent_dim` = {d} must be at least {r}: no exact realisation is smaller",
            f"the smallest A-invariant row space that contains row(C) has dimension {r}",
        )
    B = _enlarge(system, basis, d)
    return Realisation(B, system.C @ T(B), B @ system.A @ T(B))


def shift_model(system: LinearSystem, horizon: int) -> Realisation:
    """A model that predicts exact macrostates through the horizon H and zero after it.

        B = [C; C A; ...; C A^H],    D = [I 0 ... 0],    K = shift up by one block, zero at the end

    It shows that exact macrostates through any horizon do not imply those beyond, whereas
    L_cur = L_tr = 0 implies D K^h B = C A^h for every h.

    Arguments:
        system: One system, not a batch.
        horizon: The horizon H, with m (H + 1) <= n.
    """
    require_single(system)
    require_count(horizon, "horizon")
    d = system.m * (horizon + 1)
    if d > system.n:
        raise InputError(
            f"`horizon` = {horizon} stores m (H + 1) = {d} outputs, which must be at most"
            f" n = {system.n}; take a horizon of at most {system.n // system.m - 1}"
        )
    outputs = [system.C]
    for _ in range(horizon):
        outputs.append(outputs[-1] @ system.A)
    shift = np.kron(np.eye(horizon + 1, k=1), np.eye(system.m))
    return Realisation(np.concatenate(outputs), np.eye(system.m, d), shift)


def is_exact(system: LinearSystem, r: Realisation, tolerance: float = TOLERANCE) -> bool:
    """Whether D B = C and K B = B A hold for all of a batch, in any latent coordinates.

    Arguments:
        system: The system or a batch of systems.
        r: The realisation or a batch of realisations; one that is not finite is not exact.
        tolerance: The largest sizes, as fractions of the scales, of `current_misfit` and
            `closure_misfit`; their roundoff is allowed in addition.
    """
    finite = all(np.all(np.isfinite(M)) for M in (r.B, r.D, r.K))
    misfits = (current_misfit, closure_misfit)
    return finite and all(bool(np.all(f(system, r).holds(tolerance))) for f in misfits)


def current_misfit(system: LinearSystem, r: Realisation) -> Misfit:
    """||D B - C||_Sigma against ||C||_Sigma."""
    norm = lambda M: np.linalg.norm(M, axis=(-2, -1))
    size = norm(current_residual(system, r) @ system.root)
    terms = np.abs(r.D) @ np.abs(r.B) @ np.abs(system.root)
    return _make_misfit(system, size, norm(system.C @ system.root), norm(terms))


def closure_misfit(system: LinearSystem, r: Realisation) -> Misfit:
    """||C_B^{-1/2} (K B - B A) Sigma^{1/2}||_2 against K and A in the same whitened coordinates.

    The scale is ||C_B^{-1/2} K C_B^{1/2}||_2 + ||Sigma^{-1/2} A Sigma^{1/2}||_2. A singular C_B
    is taken for one at the edge of `require_full_rank`.

    Arguments:
        system: The system or a batch of systems.
        r: The realisation or a batch of realisations, finite.
    """
    X, lengths = level_rows(r.B @ system.root)
    left, values, _ = np.linalg.svd(X, full_matrices=False)
    values = np.maximum(values, RANK_TOLERANCE)
    whiten, colour = T(left) / values[..., None], left * values[..., None, :]
    size = spectral_norm(whiten @ (transition_residual(system, r) / lengths) @ system.root)
    K = whiten @ (r.K / lengths * T(lengths)) @ colour
    A = np.linalg.solve(system.root, system.A @ system.root)
    terms = np.abs(r.K) @ np.abs(r.B) + np.abs(r.B) @ np.abs(system.A)
    terms = np.abs(whiten) @ (terms / lengths) @ np.abs(system.root)
    return _make_misfit(system, size, spectral_norm(K) + spectral_norm(A), spectral_norm(terms))


def level_rows(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M with rows of largest entry one, and the (..., d, 1) numbers that they were divided by.

    Decompositions of M lose digits where its rows differ much in length; its row space does not.
    """
    lengths = np.max(np.abs(M), axis=-1, keepdims=True)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return M / lengths, lengths


def require_exact(
    system: LinearSystem, r: Realisation, name: str = "r", tolerance: float = TOLERANCE
) -> None:
    """Raises an `InputError` that gives both residuals where `is_exact` does not hold.

    Arguments:
        system: The system or a batch of systems.
        r: The realisation or a batch of realisations.
        name: The name of the realisation in the message.
        tolerance: As in `is_exact`.
    """
    if not is_exact(system, r, tolerance):
        current = np.sqrt(np.max(current_loss(system, r)))
        transition = np.sqrt(np.max(transition_loss(system, r)))
        raise InputError(
            f"`{name}` must be an exact realisation, D B = C and K B = B A; it has"
            f" ||D B - C||_Sigma = {current:.3g} and ||K B - B A||_Sigma = {transition:.3g}, where"
            f" a fraction of {tolerance:.3g} of C and, once the latent state is whitened, of K and"
            " A is roundoff"
        )


def latent_covariance(system: LinearSystem, B: np.ndarray, name: str = "B") -> np.ndarray:
    """C_B = B Sigma B^T (..., d, d) of an encoder, which must have full row rank."""
    B = as_matrix(B, name)
    require_finite(B, name)
    if B.shape[-1] != system.n:
        raise InputError(
            f"`{name}` must have n = {system.n} columns, as many as `A`; it has {B.shape[-1]}"
        )
    require_full_rank(system, B, name)
    return B @ system.Sigma @ T(B)


def require_point(system: LinearSystem, r: Realisation) -> np.ndarray:
    """Refuses a model with infinite entries or an encoder of deficient row rank; gives C_B."""
    for name in ("B", "D", "K"):
        require_finite(getattr(r, name), f"r.{name}")
    return latent_covariance(system, r.B, "r.B")


def require_closed(system: LinearSystem, r: Realisation) -> None:
    """Refuses a model that is not closed, K B = B A, by the size of `closure_misfit`."""
    misfit = closure_misfit(system, r)
    require("r.K", "K B = B A", size=misfit.size, of=misfit.scale, roundoff=misfit.roundoff)


def require_full_rank(system: LinearSystem, B: np.ndarray, name: str = "B") -> None:
    """Raises an `InputError` where B Sigma^{1/2} does not have full row rank.

    Arguments:
        system: The system or a batch of systems.
        B: The encoder (..., d, n).
        name: The name of the encoder in the message.
    """
    scales = np.linalg.svd(B @ system.root, compute_uv=False)
    if B.shape[-2] > B.shape[-1] or np.any(scales[..., -1] <= RANK_TOLERANCE * scales[..., 0]):
        raise InputError(
            f"`{name}` must have full row rank {B.shape[-2]}; the smallest singular value of"
            f" {name} Sigma^(1/2) is {np.min(scales[..., -1]):.3g}, its largest"
            f" {np.max(scales):.3g}"
        )


def require_single(system: LinearSystem) -> None:
    """Raises an `InputError` for a batch of systems, whose ranks may differ from one another."""
    for name in ("A", "C", "Sigma"):
        matrix = getattr(system, name)
        if matrix.ndim > 2:
            raise InputError(
                f"`{name}` must be one matrix here, not a batch; its shape is {matrix.shape}:"
                " call once for each member"
            )


def _enlarge(system: LinearSystem, rows: np.ndarray, size: int) -> np.ndarray:
    """Adds orthonormal rows to those of an invariant row space until it has `size` dimensions."""
    noise = RANK_TOLERANCE * float(np.linalg.norm(system.A, 2))
    smallest = len(rows)
    while (count := size - len(rows)) > 0:
        complement = linalg.null_space(rows).T if len(rows) else np.eye(system.n)
        values, vectors = np.linalg.eig(T(complement @ system.A @ T(complement)))
        # The norm of the eigenvector's imaginary part tells a pair from a defective real
        # eigenvalue, which roundoff splits into two that share one real eigenvector.
        real = np.abs(values.imag) * np.linalg.norm(vectors.imag, axis=0) <= noise
        if count % 2 and not np.any(real):
            raise NoRealisationError(
                f"`latent_dim` = {size} must differ from the smallest dimension {smallest} by an"
                " even number: no exact realisation of this dimension exists",
                f"the other {len(values)} eigenvalues of `A` are complex pairs (smallest imaginary"
                f" part {np.min(np.abs(values.imag)):.3g}), which an invariant row space holds"
                " both or neither of",
            )
        # The last real eigenvalue is kept for an odd number of rows.
        allowed = np.where(real, count % 2 == 1 or np.sum(real) > 1, count > 1)
        best = np.argmax(np.where(allowed, np.abs(values), -1.0))
        v = vectors[:, best]
        new = v.real[:, None] if real[best] else np.stack([v.real, v.imag], axis=1)
        rows = np.concatenate([rows, T(np.linalg.qr(new).Q) @ complement])
    return rows


def _span_rows(M: np.ndarray, scale: float) -> np.ndarray:
    """Orthonormal rows that span the rows of M, where singular values up to roundoff are zero."""
    _, values, rows = np.linalg.svd(M, full_matrices=False)
    return rows[values > RANK_TOLERANCE * scale]


def _make_misfit(
    system: LinearSystem, size: np.ndarray, scale: np.ndarray, terms: np.ndarray
) -> Misfit:
    """The misfit of products whose terms add up to `terms` in absolute value."""
    roundoff = 8 * system.n * np.finfo(float).eps * terms
    return Misfit(size, scale, np.minimum(roundoff, ROUNDOFF_SHARE * scale))
