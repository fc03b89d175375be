r"""The local test: both methods from the same start beside an exact realisation.

Theorem 2 promises TAMPL geometric decay of the full residual norm ||R(theta_j)||_F where
s_star > epsilon_star and the step is at most mu_max. Every seed is certified at its exact
realisation and then run; the factor of a round is fitted to the second half of the curve,

    log ||R(theta_j)||_F = const + j log(factor)    by least squares,

to be compared with the spectral radius of the quotient Jacobian of a round.

Reference: the paper's appendix "Controlled Numerical Experiment Details".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.convergence import certify_convergence
from ..certificates.rounds import certify_rounds
from ..linear import residual
from ..updates import Round
from .cases import Case, make_local
from .descent import Descent, descend, smallest_scale

__all__ = ["LOCAL_SEEDS", "ROUNDS", "LocalTest", "fit_factor", "run_local"]

LOCAL_SEEDS = tuple(range(40))

ROUNDS = 6_000
"""Short of the floor of about 5e-14 at which a step rounds to nothing: joint training is there
after 8,000 updates, and a factor fitted across the floor says nothing."""


@dataclass(frozen=True, eq=False)
class LocalTest:
    """Certificates of each seed, and curves of both methods.

    Attributes:
        case: The construction.
        margin: s_star - epsilon_star, (seeds,).
        mu_max: The bound on the step, (seeds,).
        radius: The spectral radius of the quotient Jacobian of a TAMPL round, (seeds,).
        rounds: Where the curves were recorded, (records,).
        norms: ||R||_F by method, (records, seeds).
        variances: The smallest eigenvalue of B Sigma B^T by method, (records, seeds).
    """

    case: Case
    margin: np.ndarray
    mu_max: np.ndarray
    radius: np.ndarray
    rounds: np.ndarray
    norms: Mapping[str, np.ndarray]
    variances: Mapping[str, np.ndarray]

    def factor(self, method: str) -> np.ndarray:
        """The fitted factor of a round, (seeds,)."""
        return fit_factor(self.rounds, self.norms[method])

    def summary(self) -> dict[str, Any]:
        """One entry for each seed, and the worst of each number."""
        columns = {
            "seed": np.array(self.case.seeds),
            "margin": self.margin,
            "mu_max": self.mu_max,
            "radius": self.radius,
            "factor": self.factor("tampl"),
            "factor_joint": self.factor("joint"),
            "smallest_variance": np.min(self.variances["tampl"], axis=0),
        }
        lines = zip(*(column.tolist() for column in columns.values()), strict=True)
        return {
            "step": self.case.rate,
            "rounds": int(self.rounds[-1]),
            "lowest_margin": float(np.min(self.margin)),
            "lowest_mu_max": float(np.min(self.mu_max)),
            "highest_radius": float(np.max(self.radius)),
            "seeds": [dict(zip(columns, line, strict=True)) for line in lines],
        }


def run_local(seeds: Sequence[int] = LOCAL_SEEDS, *, rounds: int = ROUNDS) -> LocalTest:
    """Certifies the exact realisation of each seed and runs both methods beside it.

    Arguments:
        seeds: The seeds.
        rounds: Rounds of TAMPL, and updates of joint training.
    """
    case = make_local(seeds)
    certificate = certify_convergence(case.system, case.exact, case.weights)
    steps = Round(mu_encoder=case.rate, mu_transition=case.rate)
    descents = {name: descend(case, name, updates=rounds) for name in ("joint", "tampl")}
    return LocalTest(
        case,
        margin=certificate.margin,
        mu_max=certificate.mu_max,
        radius=certify_rounds(case.system, case.exact, case.weights, steps).radius,
        rounds=descents["joint"].updates,
        norms={name: _norm(descent) for name, descent in descents.items()},
        variances={name: _variance(descent) for name, descent in descents.items()},
    )


def fit_factor(rounds: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """The factor by which a norm shrinks per round, fitted to the second half of a curve.

    Arguments:
        rounds: Where the norm was recorded, (records,).
        norms: The norms, (records, ...).

    Example:
        >>> rounds = np.arange(100)
        >>> print(fit_factor(rounds, 3.0 * 0.9**rounds).round(6))
        0.9
    """
    late = slice(len(rounds) // 2, None)
    j = rounds[late] - np.mean(rounds[late])
    return np.exp(np.tensordot(j, np.log(norms[late]), axes=1) / np.sum(j**2))


def _norm(descent: Descent) -> np.ndarray:
    case = descent.case
    return np.linalg.norm(residual(case.system, descent.path, case.weights), axis=(-2, -1))


def _variance(descent: Descent) -> np.ndarray:
    return smallest_scale(descent.path.B @ descent.case.system.root) ** 2
