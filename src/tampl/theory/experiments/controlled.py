r"""The paper's controlled experiments: joint training and TAMPL from the same start.

Cases I and II follow three methods and measure losses, smallest latent scale and rollout error. In
Case II every endpoint of joint training is projected to the orbit {(S B_b, 0, S K_b S^-1)} of the
exact wrong subspace by the nearest S,

    S = argmin_S ||S B_b - B||_Sigma = B Sigma B_b^T (B_b Sigma B_b^T)^-1,

and certified there. The margin of the incorrect-attractor theorem says that joint training stays.
The largest rate of the linearised round at each projected endpoint shows that TAMPL leaves. The
spectral ordering on the omitted subspace, which is reported as well, proves it at the reference
only: the paper's argument needs B B^T = s^2 I, and an endpoint has another S.

The collapse follows Case I over many seeds: ||B Sigma^{1/2}||_F and s_min, each over its initial
value, and the error of one rollout step. The norm alone says little: it is dominated by the
direction of scale 1.5, whose transition is right from the start.

The local test starts beside an exact realisation, where Theorem 2 promises TAMPL geometric decay
of ||R(theta_j)||_F if s_star > epsilon_star and the step is at most mu_max. The factor of a round
is fitted to the second half of the curve, log ||R(theta_j)||_F = const + j log(factor), and
compared with the spectral radius of the quotient Jacobian of a round.

Reference: the paper's appendix "Controlled Numerical Experiment Details".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ..certificates.attractor import detached_instability, incorrect_attractor
from ..certificates.convergence import certify_convergence, certify_rounds
from ..linear import Realisation, T, norm2, residual, rollout_error
from ..updates import Round
from .cases import (
    METHODS,
    SEEDS,
    Curves,
    LinearCase,
    descend,
    make_case1,
    make_case2,
    make_local,
    measure,
    smallest_scale,
)

__all__ = [
    "COLLAPSE_SEEDS",
    "COLLAPSE_STEP",
    "LOCAL_SEEDS",
    "ROUNDS",
    "UPDATES",
    "Collapse",
    "LocalTest",
    "Mechanism",
    "WrongSubspace",
    "certify_endpoints",
    "fit_factor",
    "project_to_orbit",
    "run_case1",
    "run_case2",
    "run_collapse",
    "run_local",
]

UPDATES = 15_000

COLLAPSE_SEEDS = tuple(range(24))
COLLAPSE_STEP = 12

LOCAL_SEEDS = tuple(range(40))

ROUNDS = 6_000
"""Few enough to stay above the floor of about 5e-14 at which a step rounds to nothing. Joint
training is there after 8,000 updates, and a factor fitted across the floor says nothing."""


@dataclass(frozen=True, eq=False)
class WrongSubspace:
    """Certificates of the wrong subspace of Case II, at its reference and at joint endpoints.

    Attributes:
        tau_0: tau_0 of the reference, (seeds,).
        reference_margin: The margin of the reference in the attractor theorem, (seeds,).
        endpoint_margins: The margins of the projected endpoints, (seeds,).
        endpoint_distances: ||S B_b - B|| over ||B|| of the endpoints, (seeds,).
        ordering_gaps: lambda_min of A on the omitted subspace minus lambda_max of the projected
            transition, (seeds,).
        ordered: Whether the ordering's own verdict is "ordered", (seeds,): a positive gap and a
            positive definite transition.
        detached_growth: The rate at which TAMPL rounds leave the projected endpoints, (seeds,);
            positive where they do.
    """

    tau_0: np.ndarray
    reference_margin: np.ndarray
    endpoint_margins: np.ndarray
    endpoint_distances: np.ndarray
    ordering_gaps: np.ndarray
    ordered: np.ndarray
    detached_growth: np.ndarray

    def summary(self) -> dict[str, Any]:
        """Plain numbers; of the reference means over seeds, which only rounding tells apart."""
        return {
            "tau_0": float(np.mean(self.tau_0)),
            "reference_margin": float(np.mean(self.reference_margin)),
            "endpoint_margins": self.endpoint_margins.tolist(),
            "endpoint_distances": self.endpoint_distances.tolist(),
            "ordering_gaps": self.ordering_gaps.tolist(),
            "spectral_ordering": bool(np.all(self.ordered)),
            "detached_growth": self.detached_growth.tolist(),
        }


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Curves and endpoints of the methods, by name, on one case."""

    case: LinearCase
    curves: Mapping[str, Curves]
    ends: Mapping[str, Realisation]
    certificate: WrongSubspace | None = None

    def summary(self) -> dict[str, Any]:
        """`Curves.summary` of each method, and the certificate where there is one."""
        result: dict[str, Any] = {name: curves.summary() for name, curves in self.curves.items()}
        if self.certificate is not None:
            result["certificate"] = self.certificate.summary()
        return result


def run_case1(seeds: Sequence[int] = SEEDS, *, updates: int = UPDATES) -> Mechanism:
    """Case I: joint training shrinks the latent state and stops learning the transition.

    Arguments:
        seeds: The seeds.
        updates: Updates of each method.
    """
    return _follow_methods(make_case1(seeds), updates)


def run_case2(seeds: Sequence[int] = SEEDS, *, updates: int = UPDATES) -> Mechanism:
    """Case II: joint training keeps its scale and loses the task.

    Arguments:
        seeds: The seeds.
        updates: Updates of each method.
    """
    case = make_case2(seeds)
    followed = _follow_methods(case, updates)
    certificate = certify_endpoints(case, followed.ends["joint"])
    return Mechanism(case, followed.curves, followed.ends, certificate)


def project_to_orbit(case: LinearCase, r: Realisation) -> Realisation:
    """The point of the wrong subspace's orbit whose encoder is nearest to that of `r`.

    Arguments:
        case: A case with a wrong subspace.
        r: The realisation, all seeds.
    """
    if case.wrong is None:
        raise InputError(f"`case` is {case.name!r}, which has no wrong subspace; give Case II")
    moment = case.system.Sigma @ T(case.wrong.B)
    return case.wrong.change(r.B @ moment @ np.linalg.inv(case.wrong.B @ moment))


def certify_endpoints(case: LinearCase, ends: Realisation) -> WrongSubspace:
    """Certifies the wrong subspace at its reference and at the projected endpoints.

    Arguments:
        case: A case with a wrong subspace.
        ends: The endpoints of joint training, all seeds.
    """
    projected = project_to_orbit(case, ends)
    assert case.wrong is not None  # else there was nothing to project to
    reference = incorrect_attractor(case.system, case.wrong, case.weights)
    endpoint = incorrect_attractor(case.system, projected, case.weights)
    detached = detached_instability(case.system, projected, case.weights)
    away = norm2(projected.B - ends.B, case.system.Sigma) / norm2(ends.B, case.system.Sigma)
    return WrongSubspace(
        tau_0=reference.tau_0,
        reference_margin=reference.margin,
        endpoint_margins=endpoint.margin,
        endpoint_distances=np.sqrt(away),
        ordering_gaps=detached.ordering.margin,
        ordered=detached.ordering.verdict == "ordered",
        detached_growth=detached.growth,
    )


@dataclass(frozen=True, eq=False)
class Collapse:
    """Latent norm, smallest latent scale and rollout error by method, (records, seeds).

    Attributes:
        case: Case I.
        step: The rollout step whose error is measured.
        updates: The updates at which the curves were recorded, (records,).
        norms: ||B Sigma^{1/2}||_F over its initial value.
        scales: s_min over its initial value.
        errors: ||D K^step B - C A^step||^2_Sigma.
    """

    case: LinearCase
    step: int
    updates: np.ndarray
    norms: Mapping[str, np.ndarray]
    scales: Mapping[str, np.ndarray]
    errors: Mapping[str, np.ndarray]

    def summary(self) -> dict[str, Any]:
        """Quartiles over seeds at the end, for each method."""
        return {
            name: {
                "norm": _take_quartiles(self.norms[name][-1]),
                "scale": _take_quartiles(self.scales[name][-1]),
                "error": _take_quartiles(self.errors[name][-1]),
            }
            for name in self.norms
        }


def run_collapse(
    seeds: Sequence[int] = COLLAPSE_SEEDS, *, updates: int = UPDATES, step: int = COLLAPSE_STEP
) -> Collapse:
    """Case I with many seeds: the latent norm of joint training and TAMPL, and the rollout error.

    Arguments:
        seeds: The seeds.
        updates: Updates of each method.
        step: The rollout step whose error is measured.
    """
    case = make_case1(seeds)
    descents = {name: descend(case, name, updates=updates) for name in ("joint", "tampl")}
    paths = {name: descent.path for name, descent in descents.items()}
    norms = {name: np.sqrt(norm2(path.B, case.system.Sigma)) for name, path in paths.items()}
    scales = {name: smallest_scale(path.B @ case.system.root) for name, path in paths.items()}
    return Collapse(
        case,
        step,
        descents["joint"].updates,
        norms={name: norm / norm[0] for name, norm in norms.items()},
        scales={name: scale / scale[0] for name, scale in scales.items()},
        errors={
            name: rollout_error(case.system, path, step)[..., -1] for name, path in paths.items()
        },
    )


@dataclass(frozen=True, eq=False)
class LocalTest:
    """Certificates of each seed, and curves of both methods.

    Attributes:
        case: The construction.
        margin: s_star - epsilon_star, (seeds,).
        mu_max: The bound on the step, (seeds,).
        radius: The spectral radius of the quotient Jacobian of a TAMPL round, (seeds,).
        rounds: The rounds at which the curves were recorded, (records,).
        norms: ||R||_F by method, (records, seeds).
        variances: The smallest eigenvalue of B Sigma B^T by method, (records, seeds).
    """

    case: LinearCase
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
    paths = {name: descent.path for name, descent in descents.items()}
    return LocalTest(
        case,
        margin=certificate.margin,
        mu_max=certificate.mu_max,
        radius=certify_rounds(case.system, case.exact, case.weights, steps).radius,
        rounds=descents["joint"].updates,
        norms={
            name: np.linalg.norm(residual(case.system, path, case.weights), axis=(-2, -1))
            for name, path in paths.items()
        },
        variances={
            name: smallest_scale(path.B @ case.system.root) ** 2 for name, path in paths.items()
        },
    )


def fit_factor(rounds: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """The factor by which a norm shrinks per round, fitted to the second half of a curve.

    Arguments:
        rounds: The rounds at which the norm was recorded, (records,).
        norms: The norms, (records, ...).

    Example:
        >>> rounds = np.arange(100)
        >>> print(fit_factor(rounds, 3.0 * 0.9**rounds).round(6))
        0.9
    """
    late = slice(len(rounds) // 2, None)
    j = rounds[late] - np.mean(rounds[late])
    return np.exp(np.tensordot(j, np.log(norms[late]), axes=1) / np.sum(j**2))


def _follow_methods(case: LinearCase, updates: int) -> Mechanism:
    descents = {name: descend(case, name, updates=updates) for name in METHODS}
    return Mechanism(
        case,
        curves={name: measure(descent) for name, descent in descents.items()},
        ends={name: descent.end for name, descent in descents.items()},
    )


def _take_quartiles(values: np.ndarray) -> dict[str, float]:
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return {"low": low, "median": median, "high": high}
