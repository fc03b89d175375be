r"""Case I and Case II: how joint training fails, and what TAMPL does from the same start.

Three methods are followed; losses, smallest latent scale and rollout error are measured. In Case
II every endpoint of joint training is projected to the orbit {(S B_b, 0, S K_b S^-1)} of the exact
wrong subspace by the nearest S,

    S = argmin_S ||S B_b - B||_Sigma = B Sigma B_b^T (B_b Sigma B_b^T)^-1,

and certified there. The margin of the incorrect-attractor theorem says that joint training stays.
That TAMPL leaves is shown by the largest rate of the linearised round, computed at each projected
endpoint. The spectral ordering on the omitted subspace, which is reported as well, proves it at
the reference only: the paper's argument needs B B^T = s^2 I, and an endpoint has another S.

Reference: the paper's appendix "Controlled Numerical Experiment Details".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ..certificates.attractor import incorrect_attractor
from ..certificates.instability import detached_instability
from ..certificates.verdicts import Verdict
from ..linear import Realisation, T, norm2
from .cases import SEEDS, Case, make_case1, make_case2
from .descent import METHODS, Curves, descend, measure

__all__ = [
    "UPDATES",
    "Mechanism",
    "WrongSubspace",
    "certify_endpoints",
    "project_to_orbit",
    "run_case1",
    "run_case2",
]

UPDATES = 15_000


@dataclass(frozen=True, eq=False)
class WrongSubspace:
    """Certificates of the wrong subspace of Case II, at its reference and at joint endpoints.

    Attributes:
        tau_0: tau_0 of the reference, (seeds,).
        reference_margin: The margin of the reference in the attractor theorem, (seeds,).
        endpoint_margins: The margins of the projected endpoints, (seeds,).
        endpoint_distances: How far the endpoints were, ||S B_b - B|| over ||B||, (seeds,).
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

    case: Case
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
    return _follow(make_case1(seeds), updates)


def run_case2(seeds: Sequence[int] = SEEDS, *, updates: int = UPDATES) -> Mechanism:
    """Case II: joint training keeps its scale and loses the task.

    Arguments:
        seeds: The seeds.
        updates: Updates of each method.
    """
    case = make_case2(seeds)
    followed = _follow(case, updates)
    certificate = certify_endpoints(case, followed.ends["joint"])
    return Mechanism(case, followed.curves, followed.ends, certificate)


def project_to_orbit(case: Case, r: Realisation) -> Realisation:
    """The point of the wrong subspace's orbit whose encoder is nearest to that of `r`.

    Arguments:
        case: A case with a wrong subspace.
        r: The realisation, all seeds.
    """
    if case.wrong is None:
        raise InputError(f"`case` is {case.name!r}, which has no wrong subspace; give Case II")
    moment = case.system.Sigma @ T(case.wrong.B)
    return case.wrong.change(r.B @ moment @ np.linalg.inv(case.wrong.B @ moment))


def certify_endpoints(case: Case, ends: Realisation) -> WrongSubspace:
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
        ordered=detached.ordering.verdict == Verdict.ORDERED,
        detached_growth=detached.growth,
    )


def _follow(case: Case, updates: int) -> Mechanism:
    descents = {name: descend(case, name, updates=updates) for name in METHODS}
    return Mechanism(
        case,
        curves={name: measure(descent) for name, descent in descents.items()},
        ends={name: descent.end for name, descent in descents.items()},
    )
