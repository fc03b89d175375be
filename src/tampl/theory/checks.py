"""What the theory requires of matrices, and the messages where a requirement is not met.

A rank is the number of singular values above `RANK_TOLERANCE` times the largest one that the
matrix could have; residuals count as zero below `TOLERANCE` times the size of what they compare.
"""

import numpy as np

from ..errors import InputError

__all__ = [
    "RANK_TOLERANCE",
    "TOLERANCE",
    "as_covariance",
    "as_matrix",
    "require_batch",
    "require_count",
    "require_finite",
    "require_square",
]

# Both leave room for the roundoff of a few hundred products of float64 matrices.
TOLERANCE = 1e-9
RANK_TOLERANCE = 1e-10


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
    """The argument made exactly symmetric, where it is a symmetric positive definite matrix."""
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
