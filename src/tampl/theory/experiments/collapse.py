r"""What collapses in Case I, over many seeds.

Measured are the norm of the latent state, ||B Sigma^{1/2}||_F, and its smallest scale s_min, each
over its initial value, and the error of one rollout step, ||D K^h B - C A^h||^2_Sigma with h = 12.
The norm alone says little: it is dominated by the direction of scale 1.5, whose transition is
right from the start, while the collapse is that of another direction.

Reference: the paper's appendix "Controlled Numerical Experiment Details".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linear import norm2, rollout_error
from .cases import Case, make_case1
from .descent import Descent, descend, smallest_scale
from .mechanism import UPDATES

__all__ = ["COLLAPSE_SEEDS", "COLLAPSE_STEP", "Collapse", "run_collapse"]

COLLAPSE_SEEDS = tuple(range(24))
COLLAPSE_STEP = 12


@dataclass(frozen=True, eq=False)
class Collapse:
    """What happens to the latent state, by method, (records, seeds).

    Attributes:
        case: Case I.
        step: The rollout step whose error is measured.
        updates: Where the curves were recorded, (records,).
        norms: ||B Sigma^{1/2}||_F over its initial value.
        scales: s_min over its initial value.
        errors: ||D K^step B - C A^step||^2_Sigma.
    """

    case: Case
    step: int
    updates: np.ndarray
    norms: Mapping[str, np.ndarray]
    scales: Mapping[str, np.ndarray]
    errors: Mapping[str, np.ndarray]

    def summary(self) -> dict[str, Any]:
        """Quartiles over seeds at the end, for each method."""
        return {
            name: {
                "norm": _quartiles(self.norms[name][-1]),
                "scale": _quartiles(self.scales[name][-1]),
                "error": _quartiles(self.errors[name][-1]),
            }
            for name in self.norms
        }


def run_collapse(
    seeds: Sequence[int] = COLLAPSE_SEEDS, *, updates: int = UPDATES, step: int = COLLAPSE_STEP
) -> Collapse:
    """Case I again, many seeds: the latent norm of joint training and TAMPL, and what it costs.

    Arguments:
        seeds: The seeds.
        updates: Updates of each method.
        step: The rollout step whose error is measured.
    """
    case = make_case1(seeds)
    descents = {name: descend(case, name, updates=updates) for name in ("joint", "tampl")}
    return Collapse(
        case,
        step,
        descents["joint"].updates,
        norms={name: _over_initial(_norm(descent)) for name, descent in descents.items()},
        scales={name: _over_initial(_scale(descent)) for name, descent in descents.items()},
        errors={
            name: rollout_error(case.system, descent.path, step)[..., -1]
            for name, descent in descents.items()
        },
    )


def _norm(descent: Descent) -> np.ndarray:
    return np.sqrt(norm2(descent.path.B, descent.case.system.Sigma))


def _scale(descent: Descent) -> np.ndarray:
    return smallest_scale(descent.path.B @ descent.case.system.root)


def _over_initial(curves: np.ndarray) -> np.ndarray:
    return curves / curves[0]


def _quartiles(values: np.ndarray) -> dict[str, float]:
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return {"low": low, "median": median, "high": high}
