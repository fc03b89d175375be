r"""The paper's constructions, and the three ways to train a model on them.

All constructions have n = 7, d = 3, m = 1 and unit weights. In canonical coordinates,

    Case I    A = diag(0.3, A_v, A_r),  C = e_2^T,  B_0 = diag(1.5, H_0) [I 0]: the readout is
              exact, the transition of the second block wrong, and joint training shrinks it;
    Case II   A = diag(A_u, A_n, 0.65), C = e_1^T,  B_0 = 4 [P Q 0]: the rows 4 [0 I 0] are closed
              without the task and attract joint training;
    local     A = T A_can T^-1, Sigma = T T^T, T = Q (I + 0.012 G), started beside an exact
              realisation.

Cases I and II have Sigma = I and are turned by random orthogonal matrices of source and latent
space, which makes them dense and changes no curve. Seed s of case k (1, 2, 3 in the order above)
draws from `numpy.random.default_rng((s, k))`, standard normal entries row by row, in the order in
which each function below names them. An orthogonal matrix is the Q of the QR decomposition of such
a square matrix, columns signed so that R has a positive diagonal; it is uniformly distributed.

An update is one step of `joint` (all of (B, D, K) on L_joint), one step of `recon_joint` (the same
with ||G B - I||^2_Sigma added, G started at the least-squares decoder) or one round of `tampl`.
Measured are L_cur, L_tr, s_min = sigma_min(B Sigma^{1/2}) and the rollout error
sum_{h=1}^{10} ||D K^h B - C A^h||^2_Sigma. Seeds are a batch, the leading axis of every matrix.

Reference: the paper's appendix "Controlled Numerical Experiment Details".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import InputError
from ..linear import (
    LinearSystem,
    Realisation,
    T,
    Weights,
    current_loss,
    rollout_error,
    transition_loss,
)
from ..updates import Round, joint_step, recon_joint_step, tampl_round

__all__ = [
    "EVERY",
    "HORIZON",
    "METHODS",
    "SEEDS",
    "Curves",
    "Descent",
    "LinearCase",
    "descend",
    "least_squares_decoder",
    "make_case1",
    "make_case2",
    "make_local",
    "measure",
    "smallest_scale",
]

SEEDS = (0, 1, 2, 3, 4)
"""The seeds of the paper's curves."""

N, LATENT_DIM = 7, 3

EVERY = 10
"""Updates between two records; curves are smooth on this scale, and memory stays small."""

HORIZON = 10
"""Steps of the rollout error."""


@dataclass(frozen=True, eq=False)
class LinearCase:
    """A system with the start of a training, all seeds as one batch.

    Attributes:
        name: The name of the construction.
        seeds: The seeds, the leading axis of all matrices.
        system: The system.
        start: The start of every method.
        exact: An exact realisation.
        rate: The step size of all updates.
        weights: The weights of the losses.
        wrong: A closed realisation without the task, in Case II.
    """

    name: str
    seeds: tuple[int, ...]
    system: LinearSystem
    start: Realisation
    exact: Realisation
    rate: float
    weights: Weights = field(default_factory=Weights)
    wrong: Realisation | None = None


def make_case1(seeds: Sequence[int] = SEEDS) -> LinearCase:
    """Case I, where the scale of the latent state shrinks. Draws G, G', then the turns Q and O.

    Arguments:
        seeds: The seeds, integers of at least 0.
    """
    draw = _Draw(seeds, 1)
    H = 0.50 * np.eye(2) + 0.012 * draw.normal(2, 2)
    M = 0.01 * np.eye(2) + 0.003 * draw.normal(2, 2)
    A_v = np.array([[0.82, 0.07], [-0.04, 0.72]])
    system = LinearSystem(
        _join_blocks([[0.3]], A_v, np.diag([0.18, -0.20, 0.38, -0.31])), np.eye(1, N, 1), np.eye(N)
    )
    rows = np.eye(LATENT_DIM, N)
    D = np.concatenate([np.zeros((len(H), 1, 1)), np.linalg.inv(H)[:, :1]], axis=-1)
    start = Realisation(_join_blocks([[1.5]], H) @ rows, D, _join_blocks([[0.3]], M))
    exact = Realisation(rows, np.eye(1, LATENT_DIM, 1), _join_blocks([[0.3]], A_v))
    turn = _Turn(draw.orthogonal(N), draw.orthogonal(LATENT_DIM))
    return LinearCase(
        "case1", draw.seeds, turn.system(system), turn.model(start), turn.model(exact), 0.003
    )


def make_case2(seeds: Sequence[int] = SEEDS) -> LinearCase:
    """Case II, which loses the task. Draws the rotations of A_u, A_n, then G, G', then Q and O.

    Arguments:
        seeds: The seeds, integers of at least 0.
    """
    draw = _Draw(seeds, 2)
    A_u, A_n = (
        R @ np.diag(spectrum) @ T(R)
        for spectrum in ([0.65, 0.75, 0.85], [0.10, 0.15, 0.20])
        for R in [draw.orthogonal(3)]
    )
    P = 0.30 * np.eye(3) + 0.025 * draw.normal(3, 3)
    Q = np.eye(3) + 0.015 * draw.normal(3, 3)
    system = LinearSystem(_join_blocks(A_u, A_n, [[0.65]]), np.eye(1, N, 0), np.eye(N))
    B = 4.0 * np.concatenate([P, Q, np.zeros((len(P), 3, 1))], axis=-1)
    # The least-squares readout and transition, once; afterwards everything moves by gradients.
    inverse = T(B) @ np.linalg.inv(B @ T(B))
    start = Realisation(B, system.C @ inverse, B @ system.A @ inverse)
    exact = Realisation(np.eye(3, N), np.eye(1, 3, 0), A_u)
    wrong = Realisation(4.0 * np.eye(3, N, 3), np.zeros((1, 3)), A_n)
    turn = _Turn(draw.orthogonal(N), draw.orthogonal(LATENT_DIM))
    return LinearCase(
        "case2",
        draw.seeds,
        turn.system(system),
        turn.model(start),
        turn.model(exact),
        0.003,
        wrong=turn.model(wrong),
    )


def make_local(seeds: Sequence[int] = SEEDS) -> LinearCase:
    """The local test. Draws Q and O, then G, then the perturbations of B, D and K.

    Arguments:
        seeds: The seeds, integers of at least 0.
    """
    draw = _Draw(seeds, 3)
    A = np.diag([0.7, 0.8, 0.9, -0.8, -0.7, -0.6, -0.5])
    C = np.array([[1.0, 0.5, -0.3, 0.0, 0.0, 0.0, 0.0]])
    Q, O = draw.orthogonal(N), draw.orthogonal(LATENT_DIM)
    S = Q @ (np.eye(N) + 0.012 * draw.normal(N, N))
    inverse = np.linalg.inv(S)
    system = LinearSystem(S @ A @ inverse, C @ inverse, S @ T(S))
    exact = Realisation(
        2.0 * O @ np.eye(LATENT_DIM, N) @ inverse,
        0.5 * C[:, :LATENT_DIM] @ T(O),
        O @ A[:LATENT_DIM, :LATENT_DIM] @ T(O),
    )
    start = Realisation(
        *(M + 0.006 * draw.normal(*M.shape[-2:]) for M in (exact.B, exact.D, exact.K))
    )
    return LinearCase("local", draw.seeds, system, start, exact, 0.001)


@dataclass(frozen=True, eq=False)
class Descent:
    """The iterates of a method: `updates` (records,), and `path` with axes (records, seeds)."""

    case: LinearCase
    method: str
    updates: np.ndarray
    path: Realisation

    @property
    def end(self) -> Realisation:
        """The last iterate of each seed."""
        return Realisation(self.path.B[-1], self.path.D[-1], self.path.K[-1])


@dataclass(frozen=True, eq=False)
class Curves:
    """The four measures over `updates` (records,), each (records, seeds)."""

    updates: np.ndarray
    l_cur: np.ndarray
    l_tr: np.ndarray
    s_min: np.ndarray
    rollout: np.ndarray

    def summary(self) -> dict[str, float]:
        """Means over seeds at the end, and the lowest point of the mean curve of `s_min`."""
        ends = {name: float(np.mean(getattr(self, name)[-1])) for name in _MEASURES}
        lowest = float(np.min(np.mean(self.s_min, axis=-1)))
        return {
            "l_cur": ends["l_cur"],
            "l_tr": ends["l_tr"],
            "s_min": ends["s_min"],
            "s_min_lowest": lowest,
            "rollout": ends["rollout"],
        }

    def by_seed(self, record: int = -1) -> dict[str, list[float]]:
        """The measures of each seed at one record, the last one unless told otherwise."""
        return {name: getattr(self, name)[record].tolist() for name in _MEASURES}


_MEASURES = ("l_cur", "l_tr", "s_min", "rollout")


def descend(case: LinearCase, method: str, *, updates: int, every: int = EVERY) -> Descent:
    """Follows a method from the start of a case.

    Arguments:
        case: The case.
        method: One of `METHODS`.
        updates: How many updates; the start and the last one are always recorded.
        every: Updates between two records.
    """
    if method not in METHODS:
        raise InputError(f"`method` is {method!r}; methods are {sorted(METHODS)}")
    if updates < 1 or every < 1:
        raise InputError(f"`updates` is {updates} and `every` {every}; both are at least 1")
    kept: dict[int, Realisation] = {}
    for update, r in zip(range(updates + 1), METHODS[method](case), strict=False):
        if update % every == 0 or update == updates:
            kept[update] = r
    path = Realisation(*(np.stack([getattr(r, M) for r in kept.values()]) for M in "BDK"))
    return Descent(case, method, np.array(list(kept)), path)


def measure(descent: Descent) -> Curves:
    """Measures every recorded iterate."""
    system, path = descent.case.system, descent.path
    return Curves(
        updates=descent.updates,
        l_cur=current_loss(system, path),
        l_tr=transition_loss(system, path),
        s_min=smallest_scale(path.B @ system.root),
        rollout=np.sum(rollout_error(system, path, HORIZON)[..., 1:], axis=-1),
    )


def smallest_scale(M: np.ndarray) -> np.ndarray:
    """The smallest singular value of each matrix; not a number where an entry is not finite."""
    finite = np.isfinite(M).all(axis=(-2, -1))
    scales = np.linalg.svd(np.where(finite[..., None, None], M, 0.0), compute_uv=False)[..., -1]
    return np.where(finite, scales, np.nan)


def least_squares_decoder(case: LinearCase) -> np.ndarray:
    """G = Sigma B^T (B Sigma B^T)^-1, which has the least L_rec at the start, (..., n, d)."""
    B, Sigma = case.start.B, case.system.Sigma
    return Sigma @ T(B) @ np.linalg.inv(B @ Sigma @ T(B))


class _Draw:
    """One generator for each seed; every draw is a batch over them."""

    def __init__(self, seeds: Sequence[int], case: int) -> None:
        self.seeds = tuple(int(seed) for seed in seeds)
        if not self.seeds or min(self.seeds) < 0:
            raise InputError(f"`seeds` is {list(seeds)}; give integers of at least 0, one or more")
        self.generators = [np.random.default_rng((seed, case)) for seed in self.seeds]

    def normal(self, rows: int, columns: int) -> np.ndarray:
        return np.stack([g.standard_normal((rows, columns)) for g in self.generators])

    def orthogonal(self, size: int) -> np.ndarray:
        Q, R = np.linalg.qr(self.normal(size, size))
        return Q * np.sign(np.diagonal(R, axis1=-2, axis2=-1))[:, None, :]


@dataclass(frozen=True, eq=False)
class _Turn:
    """Orthogonal changes of source and latent coordinates, for Sigma = I."""

    source: np.ndarray
    latent: np.ndarray

    def system(self, s: LinearSystem) -> LinearSystem:
        return LinearSystem(self.source @ s.A @ T(self.source), s.C @ T(self.source), np.eye(s.n))

    def model(self, r: Realisation) -> Realisation:
        return Realisation(
            self.latent @ r.B @ T(self.source),
            r.D @ T(self.latent),
            self.latent @ r.K @ T(self.latent),
        )


def _join_blocks(*blocks: object) -> np.ndarray:
    """Block-diagonal matrices of square blocks, with whatever batch axes these have."""
    parts = [np.asarray(block, dtype=np.float64) for block in blocks]
    batch = np.broadcast_shapes(*(part.shape[:-2] for part in parts))
    size = sum(part.shape[-1] for part in parts)
    matrix, at = np.zeros((*batch, size, size)), 0
    for part in parts:
        end = at + part.shape[-1]
        matrix[..., at:end, at:end] = part
        at = end
    return matrix


def _follow_joint(case: LinearCase) -> Iterator[Realisation]:
    r = case.start
    while True:
        yield r
        r = joint_step(case.system, r, case.weights, case.rate)


def _follow_recon_joint(case: LinearCase) -> Iterator[Realisation]:
    r, G = case.start, least_squares_decoder(case)
    weights = replace(case.weights, rec=1.0)
    while True:
        yield r
        r, G = recon_joint_step(case.system, r, G, weights, case.rate)


def _follow_tampl(case: LinearCase) -> Iterator[Realisation]:
    r, steps = case.start, Round(mu_encoder=case.rate, mu_transition=case.rate)
    while True:
        yield r
        r = tampl_round(case.system, r, case.weights, steps)


METHODS: Mapping[str, Callable[[LinearCase], Iterator[Realisation]]] = {
    "joint": _follow_joint,
    "recon_joint": _follow_recon_joint,
    "tampl": _follow_tampl,
}
