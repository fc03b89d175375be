r"""Which latent dimensions can carry a system exactly, and a realisation for each of them.

(B, D, K) is exact where D B = C and K B = B A. A full-row-rank exact realisation of dimension d
exists exactly where some d-dimensional row space V contains row(C) and V A is inside V. The
smallest such space is the row space of [C; C A; ...; C A^{n-1}], of dimension r. With orthonormal
rows B that span any such space,

    K = B A B^T,    D = C B^T.

For d > r, the rows beyond the smallest space form an invariant space of what A does to the
quotient by it. Over the real numbers every dimension has one, except that pairs of complex
eigenvalues cannot be taken apart: where the quotient has no real eigenvalue, d - r must be even.

Whether the two equations hold must not depend on latent coordinates. The first is the same in all
of them; the second is compared where the latent state has covariance I, as
C_B^{-1/2} (K B - B A) Sigma^{1/2} with C_B = B Sigma B^T, which changes by a rotation only.

Reference: the paper's appendix "Exact realizability".
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..errors import InputError
from .checks import RANK_TOLERANCE, TOLERANCE, require_count
from .linear import (
    LinearSystem,
    Realisation,
    T,
    current_loss,
    current_residual,
    transition_loss,
    transition_residual,
)

__all__ = [
    "Misfit",
    "NoRealisationError",
    "closure_misfit",
    "current_misfit",
    "is_exact",
    "level_rows",
    "observable_row_space",
    "realise",
    "refuse_batch",
    "refuse_deficient",
    "refuse_inexact",
]

ROUNDOFF_SHARE = 1e-3
"""The most that is ascribed to roundoff, as a share of what is compared: latent coordinates so
skewed that more would be needed show nothing."""


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
    """How far an equation is from holding, the same in all latent coordinates but for roundoff.

    Attributes:
        size: The norm of the difference of its sides, (...,).
        scale: What it is a fraction of, (...,).
        roundoff: What rounding may add to the size in the coordinates at hand, (...,).
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
    refuse_batch(system)
    scale = float(np.linalg.norm(system.A, 2))
    basis = new = _row_space(system.C, float(np.linalg.norm(system.C, 2)))
    while len(new) and len(basis) < system.n:
        image = new @ system.A
        for _ in range(2):  # once more, since the first subtraction leaves roundoff behind
            image = image - image @ T(basis) @ basis
        new = _row_space(image, scale)
        basis = np.concatenate([basis, new])
    return basis


def realise(system: LinearSystem, latent_dim: int | None = None) -> Realisation:
    """An exact realisation whose encoder has orthonormal rows.

    Beyond the smallest dimension r, the eigenvalues of the largest modulus are added first, since
    what they belong to lives longest.

    Arguments:
        system: One system, not a batch.
        latent_dim: The latent dimension d; where it is not given, r (or 1 for C = 0).

    Raises:
        NoRealisationError: where no exact realisation of this dimension exists, with the reason.
        InputError: where it is not from 1 to n, or rounding keeps one from being computed.
    """
    basis = observable_row_space(system)
    r = len(basis)
    d = max(r, 1) if latent_dim is None else latent_dim
    require_count(d, "latent_dim", 1)
    if d > system.n:
        raise InputError(f"`latent_dim` = {d} must be at most n = {system.n}, the rows of `A`")
    if d < r:
        raise NoRealisationError(
            f"`latent_dim` = {d} must be at least {r}: no exact realisation is smaller",
            f"the smallest A-invariant row space that contains row(C) has dimension {r}",
        )
    B = np.concatenate([basis, _extension(system, basis, d - r)])
    return Realisation(B, system.C @ T(B), B @ system.A @ T(B))


def is_exact(system: LinearSystem, r: Realisation, tolerance: float = TOLERANCE) -> bool:
    """Whether D B = C and K B = B A hold for all of a batch, in any latent coordinates.

    Arguments:
        system: The system or a batch of systems.
        r: The realisation or a batch of realisations; one that is not finite is not exact.
        tolerance: The largest sizes, as fractions of the scales, of `current_misfit` and
            `closure_misfit`; what the latent coordinates add in roundoff is allowed besides.
    """
    finite = all(np.all(np.isfinite(M)) for M in (r.B, r.D, r.K))
    misfits = (current_misfit, closure_misfit)
    return finite and all(bool(np.all(f(system, r).holds(tolerance))) for f in misfits)


def current_misfit(system: LinearSystem, r: Realisation) -> Misfit:
    """||D B - C||_Sigma against ||C||_Sigma."""
    norm = lambda M: np.linalg.norm(M, axis=(-2, -1))
    size = norm(current_residual(system, r) @ system.root)
    terms = np.abs(r.D) @ np.abs(r.B) @ np.abs(system.root)
    return _misfit(system, size, norm(system.C @ system.root), norm(terms))


def closure_misfit(system: LinearSystem, r: Realisation) -> Misfit:
    """||C_B^{-1/2} (K B - B A) Sigma^{1/2}||_2 against K and A in the same whitened coordinates.

    The scale is ||C_B^{-1/2} K C_B^{1/2}||_2 + ||Sigma^{-1/2} A Sigma^{1/2}||_2. A singular C_B
    is taken for one at the edge of `refuse_deficient`.

    Arguments:
        system: The system or a batch of systems.
        r: The realisation or a batch of realisations, finite.
    """
    X, lengths = level_rows(r.B @ system.root)
    left, values, _ = np.linalg.svd(X, full_matrices=False)
    values = np.maximum(values, RANK_TOLERANCE)
    whiten, colour = T(left) / values[..., None], left * values[..., None, :]
    size = _spectral(whiten @ (transition_residual(system, r) / lengths) @ system.root)
    K = whiten @ (r.K / lengths * T(lengths)) @ colour
    A = np.linalg.solve(system.root, system.A @ system.root)
    terms = np.abs(r.K) @ np.abs(r.B) + np.abs(r.B) @ np.abs(system.A)
    terms = np.abs(whiten) @ (terms / lengths) @ np.abs(system.root)
    return _misfit(system, size, _spectral(K) + _spectral(A), _spectral(terms))


def level_rows(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M with rows of largest entry one, and the (..., d, 1) numbers that they were divided by.

    Rows of different length cost the decompositions of M digits that its row space has.
    """
    lengths = np.max(np.abs(M), axis=-1, keepdims=True)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return M / lengths, lengths


def refuse_inexact(
    system: LinearSystem, r: Realisation, name: str = "r", tolerance: float = TOLERANCE
) -> None:
    """Raises an `InputError` that gives both residuals where `is_exact` does not hold.

    Arguments:
        system: The system or a batch of systems.
        r: The realisation or a batch of realisations.
        name: What the caller calls the realisation.
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


def refuse_deficient(system: LinearSystem, B: np.ndarray, name: str = "B") -> None:
    """Raises an `InputError` where B Sigma^{1/2} does not have full row rank.

    Arguments:
        system: The system or a batch of systems.
        B: The encoder (..., d, n).
        name: What the caller calls the encoder.
    """
    scales = np.linalg.svd(B @ system.root, compute_uv=False)
    if B.shape[-2] > B.shape[-1] or np.any(scales[..., -1] <= RANK_TOLERANCE * scales[..., 0]):
        raise InputError(
            f"`{name}` must have full row rank {B.shape[-2]}; the smallest singular value of"
            f" {name} Sigma^(1/2) is {np.min(scales[..., -1]):.3g}, its largest"
            f" {np.max(scales):.3g}"
        )


def refuse_batch(system: LinearSystem) -> None:
    """Raises an `InputError` for a batch of systems, whose ranks may differ from one another."""
    for name in ("A", "C", "Sigma"):
        matrix = getattr(system, name)
        if matrix.ndim > 2:
            raise InputError(
                f"`{name}` must be one matrix here, not a batch; its shape is {matrix.shape}:"
                " call once for each member"
            )


def _extension(system: LinearSystem, basis: np.ndarray, count: int) -> np.ndarray:
    """Orthonormal rows that make an invariant space larger by `count` dimensions."""
    if count == 0:
        return np.empty((0, system.n))
    complement = linalg.null_space(basis).T if len(basis) else np.eye(system.n)
    quotient = complement @ system.A @ T(complement)
    form, vectors = linalg.schur(T(quotient), output="real")
    _split_roundoff_pairs(form, vectors, RANK_TOLERANCE * float(np.linalg.norm(system.A, 2)))
    chosen = _choose(form, count)
    if chosen is None:
        raise NoRealisationError(
            f"`latent_dim` = {len(basis) + count} must differ from the smallest dimension"
            f" {len(basis)} by an even number: no exact realisation of this dimension exists",
            f"the other {len(quotient)} eigenvalues of `A` are complex pairs (smallest imaginary"
            f" part {np.min(np.abs(np.linalg.eigvals(quotient).imag)):.3g}), which an invariant"
            " row space holds both or neither of",
        )
    ordered = linalg.lapack.dtrsen(chosen, form, vectors, job="N")
    if ordered[-1] != 0:
        raise InputError(
            f"`A` has eigenvalues too close to each other to be told apart in float64; no"
            f" realisation of dimension {len(basis) + count} could be computed"
        )
    return T(ordered[1][:, :count]) @ complement


def _split_roundoff_pairs(form: np.ndarray, vectors: np.ndarray, noise: float) -> None:
    """Makes the 2 x 2 blocks of a real Schur form triangular, in place, where they nearly are.

    Roundoff splits a repeated real eigenvalue into a complex pair, with one of the two entries
    beside the diagonal still at roundoff: without it the eigenvalues are real again.
    """
    for i in range(len(form) - 1):
        if abs(form[i, i + 1]) <= noise < abs(form[i + 1, i]):
            swap = [i + 1, i]
            form[[i, i + 1]] = form[swap]
            form[:, [i, i + 1]] = form[:, swap]
            vectors[:, [i, i + 1]] = vectors[:, swap]
        if abs(form[i + 1, i]) <= noise:
            form[i + 1, i] = 0.0


def _choose(form: np.ndarray, count: int) -> np.ndarray | None:
    """Marks `count` diagonal positions of a real Schur form that leave no 2 x 2 block half in.

    Blocks are taken by falling modulus; None where the count is odd and all blocks are pairs.
    """
    pairs = [i for i in range(len(form) - 1) if form[i + 1, i] != 0]
    singles = [i for i in range(len(form)) if i not in pairs and i - 1 not in pairs]
    if count % 2 and not singles:
        return None
    modulus = {i: np.sqrt(np.linalg.det(form[i : i + 2, i : i + 2])) for i in pairs}
    modulus |= {i: abs(form[i, i]) for i in singles}
    chosen: list[int] = []
    left = count
    for i in sorted(modulus, key=lambda i: modulus[i], reverse=True):
        width = 1 + (i in pairs)
        if width <= left:
            chosen.append(i)
            left -= width
    if left:
        # One place is left and only pairs are: the last single taken makes room for the next pair.
        chosen.remove(max((i for i in chosen if i in singles), key=chosen.index))
        chosen.append(max((i for i in pairs if i not in chosen), key=lambda i: modulus[i]))
    mask = np.zeros(len(form), dtype=np.int32)
    for i in chosen:
        mask[i : i + 1 + (i in pairs)] = 1
    return mask


def _row_space(M: np.ndarray, scale: float) -> np.ndarray:
    """Orthonormal rows that span the rows of M, where singular values up to roundoff are zero."""
    _, values, rows = np.linalg.svd(M, full_matrices=False)
    return rows[values > RANK_TOLERANCE * scale]


def _misfit(
    system: LinearSystem, size: np.ndarray, scale: np.ndarray, terms: np.ndarray
) -> Misfit:
    """The misfit with the roundoff of products whose terms add up to so much in absolute value."""
    roundoff = 8 * system.n * np.finfo(float).eps * terms
    return Misfit(size, scale, np.minimum(roundoff, ROUNDOFF_SHARE * scale))


def _spectral(M: np.ndarray) -> np.ndarray:
    return np.linalg.norm(M, 2, axis=(-2, -1))
