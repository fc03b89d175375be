r"""The paper's constructions: two ways in which joint training fails, and a local test.

All have n = 7, d = 3, m = 1 and unit weights. Seeds are the leading axis of every array. In
canonical coordinates,

    Case I    A = diag(0.3, A_v, A_r),  C = e_2^T,  B_0 = diag(1.5, H_0) [I 0]: the readout is
              exact, the transition of the second block wrong, and joint training shrinks it;
    Case II   A = diag(A_u, A_n, 0.65), C = e_1^T,  B_0 = 4 [P Q 0]: closed, but without the task,
              are the rows 4 [0 I 0], which attract joint training;
    local     A = T A_can T^-1, Sigma = T T^T, T = Q (I + 0.012 G), started beside an exact
              realisation.

The cases I and II have Sigma = I and are turned by random orthogonal matrices of source and latent
space, which makes them dense and changes no curve.

Seed s of case k (1, 2, 3 in the order above) draws from `numpy.random.default_rng((s, k))`,
standard normal entries row by row, in the order in which each function below names them. An
orthogonal matrix is the Q of the QR decomposition of such a square matrix, columns signed so that
R has a positive diagonal; it is then uniformly distributed.

Reference: the paper's appendix "Controlled Numerical Experiment Details".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...errors import InputError
from ..linear import LinearSystem, Realisation, T, Weights

__all__ = ["SEEDS", "Case", "make_case1", "make_case2", "make_local"]

SEEDS = (0, 1, 2, 3, 4)
"""The seeds of the paper's curves."""

N, LATENT_DIM = 7, 3


@dataclass(frozen=True, eq=False)
class Case:
    """A system with the start of a training, all seeds as one batch.

    Attributes:
        name: What to call it.
        seeds: The seeds, the leading axis of all matrices.
        system: The system.
        start: Where every method starts.
        exact: An exact realisation.
        rate: The step size of all updates.
        weights: The weights of the losses.
        wrong: A closed realisation without the task, where the case is about one.
    """

    name: str
    seeds: tuple[int, ...]
    system: LinearSystem
    start: Realisation
    exact: Realisation
    rate: float
    weights: Weights = field(default_factory=Weights)
    wrong: Realisation | None = None


def make_case1(seeds: Sequence[int] = SEEDS) -> Case:
    """Case I, where the scale of the latent state shrinks. Draws G, G', then the turns Q and O.

    Arguments:
        seeds: The seeds, integers of at least 0.
    """
    draw = _Draw(seeds, 1)
    H = 0.50 * np.eye(2) + 0.012 * draw.normal(2, 2)
    M = 0.01 * np.eye(2) + 0.003 * draw.normal(2, 2)
    A_v = np.array([[0.82, 0.07], [-0.04, 0.72]])
    system = LinearSystem(
        _blocks([[0.3]], A_v, np.diag([0.18, -0.20, 0.38, -0.31])), _unit(N, 1), np.eye(N)
    )
    rows = np.eye(LATENT_DIM, N)
    D = np.concatenate([np.zeros((len(H), 1, 1)), np.linalg.inv(H)[:, :1]], axis=-1)
    start = Realisation(_blocks([[1.5]], H) @ rows, D, _blocks([[0.3]], M))
    exact = Realisation(rows, _unit(LATENT_DIM, 1), _blocks([[0.3]], A_v))
    turn = _Turn(draw.orthogonal(N), draw.orthogonal(LATENT_DIM))
    return Case(
        "case1", draw.seeds, turn.system(system), turn.model(start), turn.model(exact), 0.003
    )


def make_case2(seeds: Sequence[int] = SEEDS) -> Case:
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
    system = LinearSystem(_blocks(A_u, A_n, [[0.65]]), _unit(N, 0), np.eye(N))
    B = 4.0 * np.concatenate([P, Q, np.zeros((len(P), 3, 1))], axis=-1)
    # The least-squares readout and transition, once; afterwards everything moves by gradients.
    inverse = T(B) @ np.linalg.inv(B @ T(B))
    start = Realisation(B, system.C @ inverse, B @ system.A @ inverse)
    exact = Realisation(np.eye(3, N), _unit(3, 0), A_u)
    wrong = Realisation(4.0 * np.eye(3, N, 3), np.zeros((1, 3)), A_n)
    turn = _Turn(draw.orthogonal(N), draw.orthogonal(LATENT_DIM))
    return Case(
        "case2",
        draw.seeds,
        turn.system(system),
        turn.model(start),
        turn.model(exact),
        0.003,
        wrong=turn.model(wrong),
    )


def make_local(seeds: Sequence[int] = SEEDS) -> Case:
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
    return Case("local", draw.seeds, system, start, exact, 0.001)


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


def _unit(size: int, index: int) -> np.ndarray:
    """A row vector with a single one, as a matrix."""
    return np.eye(size)[index : index + 1]


def _blocks(*blocks: object) -> np.ndarray:
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
