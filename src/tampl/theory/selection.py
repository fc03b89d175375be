r"""Which row space reconstruction and prediction of the current macrostate select together.

Over encoders of rank d, min_{D, G} lambda_cur L_cur + lambda_rec L_rec is smallest exactly where
row(B Sigma^{1/2}) is a top-d eigenspace of

    M = M_cur + lambda_rec Sigma,    M_cur = lambda_cur Sigma^{1/2} C^T C Sigma^{1/2},

and with P_B the orthogonal projector onto that row space the inner minimum is tr[(I - P_B) M]:
M_cur rewards directions that predict y, lambda_rec Sigma directions of large variance.

A functional q x of the microstate keeps the fraction q~ P_B q~^T / q~ q~^T, q~ = q Sigma^{1/2},
of its variance in z = B x: the coefficient of determination of its best readout. It counts as
lost where this is below a given fraction. For a single observable (m = 1, q = C) what is kept
never grows with lambda_rec, since it is tr(P_B M_cur) / tr(M_cur), which P_B trades against
tr(P_B Sigma).

Reference: Theorem 1 of the paper and its appendix "When reconstruction harms macroscopic
prediction".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .checks import RANK_TOLERANCE, as_matrix, require_count, require_finite
from .linear import LinearSystem, T, Weights
from .realisability import refuse_batch, refuse_deficient

__all__ = [
    "Selection",
    "Threshold",
    "find_threshold",
    "kept_variance",
    "profiled_loss",
    "select",
    "spectral_matrix",
    "two_dimensional_system",
    "two_dimensional_threshold",
]


@dataclass(frozen=True, eq=False)
class Selection:
    """The encoders that Theorem 1 selects, by one of them, and how firmly.

    Attributes:
        B: An optimal encoder with B Sigma B^T = I, (..., d, n).
        D: Its best readout, (..., m, d).
        G: Its best decoder, (..., n, d).
        basis: Orthonormal rows that span row(B Sigma^{1/2}), (..., d, n).
        eigenvalues: Those of M, falling, (..., n).
        gap: The d-th eigenvalue less the next one, (...,); infinite for d = n.
        loss: The smallest objective, the sum of the eigenvalues after the d-th, (...,).
        unique: Whether the gap is above roundoff, so that no other row space is optimal.
    """

    B: np.ndarray
    D: np.ndarray
    G: np.ndarray
    basis: np.ndarray
    eigenvalues: np.ndarray
    gap: np.ndarray
    loss: np.ndarray
    unique: np.ndarray


@dataclass(frozen=True)
class Threshold:
    """Where reconstruction drives a direction out of the latent space.

    Attributes:
        rec: The smallest lambda_rec at which it is lost; 0 where it is lost without
            reconstruction already (a larger weight may bring it back), infinite where no loss
            was found up to lambda_rec = `searched`.
        kept_before: The fraction of its variance kept just below `rec`, or at `searched`.
        kept_after: The fraction kept just above: an exchange of eigenvalues makes it jump.
        kept_last: The fraction kept in the limit of large lambda_rec, where reconstruction rules.
        searched: The largest lambda_rec below `rec` at which roundoff leaves no doubt that the
            direction is kept; 0 where there is none.
    """

    rec: float
    kept_before: float
    kept_after: float
    kept_last: float
    searched: float


def spectral_matrix(system: LinearSystem, weights: Weights) -> np.ndarray:
    """M = lambda_cur Sigma^{1/2} C^T C Sigma^{1/2} + lambda_rec Sigma, (..., n, n)."""
    Y = system.C @ system.root
    return weights.cur * T(Y) @ Y + weights.rec * system.Sigma


def select(system: LinearSystem, weights: Weights, *, latent_dim: int) -> Selection:
    """The top-d eigenspace of M, with an encoder, readout and decoder that attain the minimum."""
    _require_latent_dim(system, latent_dim)
    values, vectors = np.linalg.eigh(spectral_matrix(system, weights))
    values, vectors = values[..., ::-1], vectors[..., ::-1]
    basis = T(vectors[..., :latent_dim])
    B = T(np.linalg.solve(system.root, T(basis)))
    whole = latent_dim == system.n
    gap = values[..., latent_dim - 1] - (-np.inf if whole else values[..., latent_dim])
    return Selection(
        B=B,
        # B Sigma B^T = I leaves nothing to invert in the least-squares readout and decoder.
        D=system.C @ system.Sigma @ T(B),
        G=system.Sigma @ T(B),
        basis=basis,
        eigenvalues=values,
        gap=gap,
        loss=np.sum(values[..., latent_dim:], axis=-1),
        unique=gap > RANK_TOLERANCE * values[..., 0],
    )


def profiled_loss(system: LinearSystem, B: np.ndarray, weights: Weights) -> np.ndarray:
    """min_{D, G} lambda_cur L_cur + lambda_rec L_rec of an encoder of full row rank, (...,)."""
    M = spectral_matrix(system, weights)
    Q = _whitened_rows(system, B)
    return np.trace(M, axis1=-2, axis2=-1) - np.trace(Q @ M @ T(Q), axis1=-2, axis2=-1)


def kept_variance(system: LinearSystem, B: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """The fraction of the variance of `direction` x, a functional (n,), that B x keeps, (...,)."""
    q = _direction(system, direction) @ system.root
    part = q @ T(_whitened_rows(system, B))
    return np.sum(part**2, axis=(-2, -1)) / np.sum(q**2, axis=(-2, -1))


def find_threshold(
    system: LinearSystem,
    direction: np.ndarray,
    *,
    latent_dim: int,
    cur: float = 1.0,
    fraction: float = 0.5,
) -> Threshold:
    """The smallest lambda_rec at which the selected latent space loses a direction.

    What is kept without reconstruction and in the limit of large lambda_rec is known from the
    eigenvectors of M_cur and of Sigma, ties among them broken by the other matrix. Between the
    two, lambda_rec is searched over thirty decades around lambda_max(M_cur) / lambda_max(Sigma),
    forty points each, and the first loss then bisected to roundoff. Points at which roundoff of M
    could decide, because eigenvalues about the d-th are too close, are passed over. So an
    infinite answer holds up to lambda_rec = `searched`, and `kept_last` tells the limit. Where
    what is kept never grows with lambda_rec (one observable) there is nothing between them;
    otherwise a loss that is undone within a fortieth of a decade is passed over too.

    Arguments:
        system: One system, not a batch.
        direction: A functional q of the microstate (n,), for instance a row of C.
        latent_dim: The latent dimension d.
        cur: The weight lambda_cur.
        fraction: The direction is lost where less than this fraction of its variance is kept.
    """
    refuse_batch(system)
    _require_latent_dim(system, latent_dim)
    if not 0 < fraction <= 1:
        raise InputError(f"`fraction` = {fraction} must be above 0 and at most 1")
    q = _direction(system, direction) @ system.root
    M_cur = spectral_matrix(system, Weights(cur=cur))
    if np.linalg.norm(M_cur) == 0:
        raise InputError(f"`cur` = {cur} and `C` must not be zero: no task competes with Sigma")

    # The fraction 1 would be missed by roundoff alone.
    limit = fraction - RANK_TOLERANCE
    contest = _Contest(M_cur, system.Sigma, q[0] / np.linalg.norm(q), latent_dim)
    start, last = contest.kept_without(), contest.kept_last()
    if start < limit:
        return Threshold(0.0, start, start, last, searched=0.0)
    unit = np.linalg.norm(M_cur, 2) / np.linalg.norm(system.Sigma, 2)
    grid = (unit * np.logspace(-15, 15, 30 * 40 + 1)).tolist()
    searched, lost = _first_loss(contest, grid, limit)
    if lost is None:
        before = contest.kept(searched) if searched else start
        return Threshold(np.inf, before, last, last, searched)
    rec = _bisect(lambda rec: contest.kept(rec) < limit, searched or grid[0], lost)
    return Threshold(rec, contest.beside(rec, -1), contest.beside(rec, 1), last, searched)


def two_dimensional_system(
    c: float, *, variance_u: float, variance_n: float, a: float = 0.9, b: float = 0.5
) -> LinearSystem:
    """The paper's illustration: x = (u, n) uncorrelated, A = diag(a, b), y = c u.

    Arguments:
        c: The coefficient c_u of the observable, not zero.
        variance_u: The variance of the relevant coordinate u.
        variance_n: The variance of the irrelevant coordinate n.
        a: The eigenvalue of u.
        b: The eigenvalue of n.
    """
    if not (np.isfinite(c) and c != 0):
        raise InputError(f"`c` = {c} must be finite and not zero: without it there is no task")
    for name, variance in (("variance_u", variance_u), ("variance_n", variance_n)):
        if not 0 < variance < np.inf:
            raise InputError(f"`{name}` = {variance} must be a positive, finite variance")
    return LinearSystem(np.diag([a, b]), np.array([[c, 0.0]]), np.diag([variance_u, variance_n]))


def two_dimensional_threshold(
    c: float, *, variance_u: float, variance_n: float, cur: float = 1.0
) -> float:
    """Above this lambda_rec one latent coordinate is the irrelevant n; infinite where it never is.

        lambda_rec variance_n > (lambda_cur c^2 + lambda_rec) variance_u

    Example:
        >>> two_dimensional_threshold(1.0, variance_u=1.0, variance_n=3.0)
        0.5
    """
    two_dimensional_system(c, variance_u=variance_u, variance_n=variance_n)
    excess = variance_n - variance_u
    return cur * c**2 * variance_u / excess if excess > 0 else np.inf


@dataclass(frozen=True, eq=False)
class _Contest:
    """M_cur and rec Sigma contend for d places; a unit vector `q` (n,) watches what is kept."""

    M_cur: np.ndarray
    Sigma: np.ndarray
    q: np.ndarray
    latent_dim: int

    @property
    def roundoff(self) -> float:
        """What roundoff may do to the eigenvalues of a matrix, as a fraction of its norm."""
        # A few units for each of the n terms of a product, in Sigma, in M and in `eigh`.
        return 16 * len(self.q) * float(np.finfo(float).eps)

    def kept(self, rec: float) -> float:
        """What the selected space keeps, with roundoff."""
        vectors = np.linalg.eigh(self.M_cur + rec * self.Sigma)[1]
        return self._part(vectors[:, -self.latent_dim :])

    def bounds(self, rec: float) -> tuple[float, float]:
        """The least and the most that is kept for all that roundoff can do.

        The top j eigenvectors are selected for j <= d, the others are not for j >= d, and
        roundoff turns the space of the top j by at most its size over the gap after the j-th.
        """
        values, vectors = np.linalg.eigh(self.M_cur + rec * self.Sigma)
        values, vectors = values[::-1] / values[-1], vectors[:, ::-1]
        kept = np.concatenate([[0.0], np.cumsum((self.q @ vectors) ** 2)])
        # The floor keeps the quotient finite where eigenvalues are equal.
        turn = self.roundoff / np.maximum(-np.diff(values), 1e-200)
        turn = np.concatenate([[0.0], turn, [0.0]])
        low, high = kept - turn, kept + turn
        return float(np.max(low[: self.latent_dim + 1])), float(np.min(high[self.latent_dim :]))

    def beside(self, rec: float, side: int) -> float:
        """What is kept above (1) or below (-1) `rec`, as near as roundoff lets one tell."""
        weight = rec
        for step in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
            weight = rec * (1 + side * step)
            low, high = self.bounds(weight)
            if high - low < 1e-3:
                break
        return self.kept(weight)

    def kept_without(self) -> float:
        """What is kept as rec falls to zero."""
        return self._part(self._leading(self.M_cur, self.Sigma))

    def kept_last(self) -> float:
        """What is kept as rec grows without bound."""
        return self._part(self._leading(self.Sigma, self.M_cur))

    def _leading(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """A top-d eigenspace of first + t second for t > 0 that vanishes, (n, d)."""
        values, vectors = np.linalg.eigh(first)
        values, vectors = values[::-1], vectors[:, ::-1]
        tied = np.abs(values - values[self.latent_dim - 1]) <= self.roundoff * values[0]
        above, level = vectors[:, : int(np.argmax(tied))], vectors[:, tied]
        order = np.linalg.eigh(T(level) @ second @ level)[1][:, ::-1]
        return np.concatenate([above, level @ order], axis=1)[:, : self.latent_dim]

    def _part(self, vectors: np.ndarray) -> float:
        return float(np.sum((self.q @ vectors) ** 2))


def _first_loss(
    contest: _Contest, grid: Sequence[float], limit: float
) -> tuple[float, float | None]:
    """The last weight that surely keeps `limit` before the first that surely does not."""
    held = 0.0
    for rec in grid:
        low, high = contest.bounds(rec)
        if high < limit:
            return held, rec
        if low >= limit:
            held = rec
    return held, None


def _bisect(lost: Callable[[float], bool], low: float, high: float) -> float:
    """The point between `low`, not lost, and `high`, lost, where that changes, to roundoff."""
    while high / low > 1 + 1e-15:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if lost(middle) else (middle, high)
    return high


def _whitened_rows(system: LinearSystem, B: np.ndarray) -> np.ndarray:
    """Orthonormal rows that span row(B Sigma^{1/2})."""
    B = as_matrix(B, "B")
    refuse_deficient(system, B)
    return np.linalg.svd(B @ system.root, full_matrices=False)[2]


def _direction(system: LinearSystem, direction: np.ndarray) -> np.ndarray:
    q = as_matrix(np.atleast_2d(direction), "direction")
    require_finite(q, "direction")
    if q.shape != (1, system.n) or not np.any(q):
        raise InputError(
            f"`direction` must be one functional of the n = {system.n} coordinates, not zero; its"
            f" shape is {q.shape}, its norm {np.linalg.norm(q):.3g}"
        )
    return q


def _require_latent_dim(system: LinearSystem, latent_dim: int) -> None:
    require_count(latent_dim, "latent_dim", 1)
    if latent_dim > system.n:
        raise InputError(
            f"`latent_dim` = {latent_dim} must be at most n = {system.n}, the rows of `A`"
        )
