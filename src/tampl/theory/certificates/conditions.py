r"""What the certificates share: refusals with the size of the violation, verdicts and words.

A certificate is a frozen record. Its numbers have the batch shape of its arguments (plain scalars
where there is no batch), `verdict` is one word for each system of the batch and `words` a sentence
that says what follows from the numbers. Signs are compared with an estimate of what rounding does
to them, and within it the verdict is "undecided". The estimate is no proven bound: matrices that
are far from normal or badly conditioned may lose more digits than it allows for. Conditions that a
theorem presupposes are no part of a verdict: where they do not hold beyond rounding, the argument
is refused.

For a full-row-rank encoder, C_B = B Sigma B^T is the covariance of the latent state.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InputError
from ..checks import TOLERANCE, as_matrix, require_finite
from ..linear import LinearSystem, Realisation, T, Weights
from ..realisability import closure_misfit, refuse_deficient
from .verdicts import Verdict

__all__ = [
    "ROUNDING",
    "latent_covariance",
    "require",
    "require_closed",
    "require_point",
    "require_weights",
    "tell",
]

ROUNDING = 1e-12
"""Share of the terms of a difference below which its sign is not trusted."""


def require(
    name: str,
    condition: str,
    *,
    size: Any,  # noqa: ANN401
    of: Any = 1.0,  # noqa: ANN401
    roundoff: Any = 0.0,  # noqa: ANN401
) -> None:
    """Refuses an argument that violates a condition in any system of the batch.

    Arguments:
        name: The argument.
        condition: What must hold.
        size: By how much it is violated.
        of: What the size is measured against; at most `TOLERANCE` of it passes.
        roundoff: What passes besides.
    """
    size, limit = np.broadcast_arrays(size, TOLERANCE * np.asarray(of) + roundoff)
    bad = ~(size <= limit)
    if np.any(bad):
        worst = np.flatnonzero(bad)[np.argmax(size[bad])]
        raise InputError(
            f"`{name}` must satisfy {condition}; the violation is {size.flat[worst]:.3g}, and"
            f" {limit.flat[worst]:.3g} would count as rounding"
        )


def require_weights(weights: Weights, *names: str) -> None:
    """Refuses weights of zero where a theorem needs the loss they weigh."""
    for name in names:
        value = getattr(weights, name)
        if not value > 0:
            raise InputError(f"`weights.{name}` = {value} must be positive for this certificate")


def require_point(system: LinearSystem, r: Realisation) -> np.ndarray:
    """Refuses a model that is not finite or whose encoder has no full row rank; gives C_B."""
    for name in ("B", "D", "K"):
        require_finite(getattr(r, name), f"r.{name}")
    return latent_covariance(system, r.B, "r.B")


def require_closed(system: LinearSystem, r: Realisation) -> None:
    """Refuses a model whose latent dynamics are not those of the system, K B = B A.

    The violation is that of `closure_misfit`, which no change of latent coordinates alters.
    """
    misfit = closure_misfit(system, r)
    require("r.K", "K B = B A", size=misfit.size, of=misfit.scale, roundoff=misfit.roundoff)


def latent_covariance(system: LinearSystem, B: np.ndarray, name: str = "B") -> np.ndarray:
    """C_B = B Sigma B^T (..., d, d); an encoder without full row rank is refused."""
    B = as_matrix(B, name)
    require_finite(B, name)
    if B.shape[-1] != system.n:
        raise InputError(
            f"`{name}` must have n = {system.n} columns, as many as `A`; it has {B.shape[-1]}"
        )
    refuse_deficient(system, B, name)
    return B @ system.Sigma @ T(B)


def tell(sentence: Callable[..., str], verdict: Any, *numbers: Any) -> Any:  # noqa: ANN401
    """The sentence of each system of the batch, or the one sentence where there is no batch.

    Arguments:
        sentence: Makes it of the verdict and the numbers of one system.
        verdict: The verdicts of the batch, as strings.
        numbers: What the sentence gives besides.
    """
    one = lambda verdict, *numbers: sentence(Verdict(verdict), *numbers)
    return np.vectorize(one, otypes=[str])(verdict, *numbers)[()]
