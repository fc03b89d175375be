"""Requirements on matrices, with messages that give the size of a violation.

A rank is the number of singular values above `RANK_TOLERANCE` times the largest one that the
matrix could have. Residuals count as zero below `TOLERANCE` times the size of the terms that they
compare. The sign of a difference counts as known above `ROUNDING` times the size of its terms.
This is an estimate, not a proven bound: matrices that are far from normal or badly conditioned may
lose more digits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError

__all__ = [
    "LARGEST",
    "RANK_TOLERANCE",
    "ROUNDING",
    "TOLERANCE",
    "as_covariance",
    "as_matrix",
    "require",
    "require_batch",
    "require_count",
    "require_finite",
    "require_moderate",
    "require_square",
    "tell",
]

# The first two leave room for the roundoff of a few hundred products of float64 matrices.
TOLERANCE = 1e-9
RANK_TOLERANCE = 1e-10
ROUNDING = 1e-12

LARGEST = 1e12
"""Entries, weights and steps: tenth powers of matrices, and squares of these, stay finite."""

SMALLEST = 1e-50
"""The largest entry of a matrix that is not zero: its fourth power is not zero either."""


def as_matrix(value: object, name: str) -> np.ndarray:
    """The argument as a float64 matrix or batch of matrices."""
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"`{name}` must be a matrix of real numbers; it is {value!r}") from None
    if matrix.ndim < 2 or 0 in matrix.shape[-2:]:
        raise InputError(
            f"`{name}` must be a matrix or a batch of matrices, none of them empty; its shape is"
            f" {matrix.shape}"
        )
    return matrix


def as_covariance(Sigma: np.ndarray, name: str) -> np.ndarray:
    """The argument, made exactly symmetric; it must be positive definite up to rounding."""
    mirror = np.swapaxes(Sigma, -1, -2)
    asymmetry = np.max(np.abs(Sigma - mirror))
    if asymmetry > TOLERANCE * np.max(np.abs(Sigma)):
        raise InputError(
            f"`{name}` must be symmetric; entries differ from their mirror images by up to"
            f" {asymmetry:.3g}"
        )
    Sigma = (Sigma + mirror) / 2
    values = np.linalg.eigvalsh(Sigma)
    # Below this an eigenvalue cannot be told from zero in float64.
    if np.any(values[..., 0] <= Sigma.shape[-1] * np.finfo(float).eps * values[..., -1]):
        raise InputError(
            f"`{name}` must be positive definite; its smallest eigenvalue is"
            f" {np.min(values[..., 0]):.3g}"
        )
    return Sigma


def require_count(value: int, name: str, least: int = 0) -> None:
    """Refuses a number of steps or dimensions that is not a whole number of at least `least`."""
    if not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"`{name}` = {value} must be a whole number of at least {least}")


def require_finite(matrix: np.ndarray, name: str) -> None:
    """Refuses a matrix with infinite or undefined entries."""
    wrong = np.count_nonzero(~np.isfinite(matrix))
    if wrong:
        raise InputError(f"`{name}` must be finite; {wrong} of its {matrix.size} entries are not")


def require_moderate(matrix: np.ndarray, name: str) -> None:
    """Refuses a matrix of entries that are not finite, or too large or small to be multiplied."""
    require_finite(matrix, name)
    largest = np.max(np.abs(matrix), initial=0.0)
    if largest and not SMALLEST <= largest <= LARGEST:
        raise InputError(
            f"`{name}` has {largest:.3g} as its largest entry; for products of entries to be"
            f" finite and not zero it must be from {SMALLEST:.0e} to {LARGEST:.0e}: use other"
            " units"
        )


def require_square(matrix: np.ndarray, name: str) -> None:
    """Refuses a matrix with more rows than columns or the reverse."""
    rows, columns = matrix.shape[-2:]
    if rows != columns:
        raise InputError(f"`{name}` must be square; it has {rows} rows and {columns} columns")


def require_batch(matrices: dict[str, np.ndarray]) -> None:
    """Refuses matrices, given by their names, whose leading axes do not broadcast."""
    leading = {name: matrix.shape[:-2] for name, matrix in matrices.items()}
    try:
        np.broadcast_shapes(*leading.values())
    except ValueError:
        shapes = ", ".join(f"`{name}` {shape}" for name, shape in leading.items())
        raise InputError(f"leading axes must broadcast to one batch; they are {shapes}") from None


def require(
    name: str,
    condition: str,
    *,
    size: Any,  # noqa: ANN401
    of: Any = 1.0,  # noqa: ANN401
    roundoff: Any = 0.0,  # noqa: ANN401
) -> None:
    """Refuses an argument that violates a condition for any member of a batch.

    Arguments:
        name: The argument.
        condition: The condition, as a formula.
        size: The size of the violation.
        of: The scale of the violation; at most `TOLERANCE` of it is accepted.
        roundoff: The roundoff that is accepted in addition.
    """
    size, limit = np.broadcast_arrays(size, TOLERANCE * np.asarray(of) + roundoff)
    bad = ~(size <= limit)
    if np.any(bad):
        worst = np.flatnonzero(bad)[np.argmax(size[bad])]
        raise InputError(
            f"`{name}` must satisfy {condition}; the violation is {size.flat[worst]:.3g}, and"
            f" {limit.flat[worst]:.3g} would count as rounding"
        )


def tell(sentence: Callable[..., str], *values: Any) -> Any:  # noqa: ANN401
    """Applies `sentence` to the values of each member of a batch, or once if there is no batch."""
    return np.vectorize(sentence, otypes=[str])(*values)[()]
