r"""The three ways to train, followed from a start, and what is measured along the way.

    joint         one gradient step of all of (B, D, K) on L_joint
    recon_joint   the same with ||G B - I||^2_Sigma added, G started at the least-squares decoder
    tampl         one step of (B, D) on L_enc with K and the target fixed, refresh, one step of K

An update is one such step or round. Measured are

    L_cur,  L_tr,  s_min = sigma_min(B Sigma^{1/2}),
    E_roll = sum_{h=1}^{10} ||D K^h B - C A^h||^2_Sigma.

All seeds of a case move as one batch.

Reference: the paper's appendix "Controlled Numerical Experiment Details".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InputError
from ..linear import Realisation, T, current_loss, rollout_error, transition_loss
from ..updates import Round, joint_step, recon_joint_step, tampl_round
from .cases import Case

__all__ = [
    "EVERY",
    "HORIZON",
    "METHODS",
    "Curves",
    "Descent",
    "descend",
    "least_squares_decoder",
    "measure",
    "smallest_scale",
]

EVERY = 10
"""Updates between two records; curves are smooth on this scale, and memory stays small."""

HORIZON = 10
"""Steps of the rollout error."""


@dataclass(frozen=True, eq=False)
class Descent:
    """What was passed through: `updates` (records,), and `path` with axes (records, seeds)."""

    case: Case
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


def descend(case: Case, method: str, *, updates: int, every: int = EVERY) -> Descent:
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


def least_squares_decoder(case: Case) -> np.ndarray:
    """G = Sigma B^T (B Sigma B^T)^-1, which has the least L_rec at the start, (..., n, d)."""
    B, Sigma = case.start.B, case.system.Sigma
    return Sigma @ T(B) @ np.linalg.inv(B @ Sigma @ T(B))


def _joint(case: Case) -> Iterator[Realisation]:
    r = case.start
    while True:
        yield r
        r = joint_step(case.system, r, case.weights, case.rate)


def _recon_joint(case: Case) -> Iterator[Realisation]:
    r, G = case.start, least_squares_decoder(case)
    weights = replace(case.weights, rec=1.0)
    while True:
        yield r
        r, G = recon_joint_step(case.system, r, G, weights, case.rate)


def _tampl(case: Case) -> Iterator[Realisation]:
    r, steps = case.start, Round(mu_encoder=case.rate, mu_transition=case.rate)
    while True:
        yield r
        r = tampl_round(case.system, r, case.weights, steps)


METHODS: Mapping[str, Callable[[Case], Iterator[Realisation]]] = {
    "joint": _joint,
    "recon_joint": _recon_joint,
    "tampl": _tampl,
}
