"""The health of a training by its log: best epoch, latent scale there, collapse.

A log has one record for each epoch, `{"epoch": 1, "latent": {"std_mean": ..., "transition_ratio":
...}, "validation": RMSE or None, "collapsed": ..., ...}`. Older logs lack some of the keys; an
unknown value is None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

__all__ = [
    "LatentCollapse",
    "Log",
    "best_validation",
    "find_collapse",
    "latent_std",
    "never_validated",
]

Log = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class LatentCollapse:
    """The epoch in which the latent scale collapsed for good, and the scale in that epoch.

    Attributes:
        epoch: The first epoch of the unbroken series of collapsed ones that ends the run.
        std: Mean standard deviation of the latent coordinates in it.
        ratio: Transition loss over the latent variance in it.
    """

    epoch: int
    std: float | None
    ratio: float | None


def best_validation(log: Log) -> float | None:
    """The lowest validation error; None where there was none."""
    best = _find_best(log)
    return None if best is None else best["validation"]


def never_validated(log: Log) -> bool:
    """Whether no validation gave a finite error, so that the model of the training is of no use.

    Example:
        >>> never_validated([{"epoch": 1, "validation": None}, {"epoch": 2, "validation": None}])
        True
    """
    return bool(log) and all(record.get("validation", 0) is None for record in log)


def latent_std(log: Log) -> float | None:
    """The latent scale in the best epoch, of which the run's best model is made."""
    best = _find_best(log)
    return None if best is None else _read_latent(best).get("std_mean")


def find_collapse(log: Log) -> LatentCollapse | None:
    """The collapse in which a run ended; None if it did not end in one.

    Example:
        >>> flags = [False, True, False, True, True]
        >>> find_collapse([{"epoch": n, "collapsed": flag} for n, flag in enumerate(flags, 1)])
        LatentCollapse(epoch=4, std=None, ratio=None)
    """
    collapsed = list(takewhile(lambda record: record.get("collapsed", False), reversed(log)))
    if not collapsed:
        return None
    first = collapsed[-1]
    latent = _read_latent(first)
    return LatentCollapse(first["epoch"], latent.get("std_mean"), latent.get("transition_ratio"))


def _find_best(log: Log) -> Mapping[str, Any] | None:
    validated = [record for record in log if record.get("validation") is not None]
    return min(validated, key=lambda record: record["validation"], default=None)


def _read_latent(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return record.get("latent") or {}
