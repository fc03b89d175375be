"""What a run's log tells: its best epoch, the latent scale there, and whether that collapsed.

A log has one record for each epoch, `{"epoch": 1, "latent": {"std_mean": ..., "transition_ratio":
...}, "validation": RMSE or None, "collapsed": ..., ...}`. Older logs lack some of the keys, and
what is not known is None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

__all__ = ["Collapse", "Log", "best_validation", "find_collapse", "latent_std"]

Log = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Collapse:
    """When the latent scale collapsed for good, and what it was then.

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
    best = _best_record(log)
    return None if best is None else best["validation"]


def latent_std(log: Log) -> float | None:
    """The latent scale in the best epoch, of which the run's best model is made."""
    best = _best_record(log)
    return None if best is None else _latent(best).get("std_mean")


def find_collapse(log: Log) -> Collapse | None:
    """The collapse in which a run ended; None if it did not end in one.

    Example:
        >>> flags = [False, True, False, True, True]
        >>> find_collapse([{"epoch": n, "collapsed": flag} for n, flag in enumerate(flags, 1)])
        Collapse(epoch=4, std=None, ratio=None)
    """
    collapsed = list(takewhile(lambda record: record.get("collapsed", False), reversed(log)))
    if not collapsed:
        return None
    first = collapsed[-1]
    latent = _latent(first)
    return Collapse(first["epoch"], latent.get("std_mean"), latent.get("transition_ratio"))


def _best_record(log: Log) -> Mapping[str, Any] | None:
    validated = [record for record in log if record.get("validation") is not None]
    return min(validated, key=lambda record: record["validation"], default=None)


def _latent(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return record.get("latent") or {}
