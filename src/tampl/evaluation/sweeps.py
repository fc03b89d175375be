"""One setting varied: errors and latent scale over training seeds for each of its values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .comparison import Summary, summarize_known
from .metrics import Score

__all__ = ["FailedValue", "Sweep", "SweepRow", "SweptRun", "sweep_rows"]


@dataclass(frozen=True)
class SweptRun:
    """One run of a sweep.

    Attributes:
        value: The setting's value.
        seed: The training seed.
        validation: Lowest validation error; None where none was finite.
        score: Score on the test split; None where that was not looked at.
        latent_std: Latent scale of the best model.
        collapsed: Whether the run ended collapsed.
    """

    value: Any
    seed: int
    validation: float | None
    score: Score | None
    latent_std: float | None
    collapsed: bool


@dataclass(frozen=True)
class FailedValue:
    """A run that failed, and why."""

    value: Any
    seed: int
    reason: str


@dataclass(frozen=True)
class SweepRow:
    """What the runs of one value did; None where nothing is known."""

    value: Any
    seeds: tuple[int, ...]
    validation: Summary | None
    rmse: Summary | None
    mmd: Summary | None
    latent_std: Summary | None
    collapsed: tuple[int, ...]


@dataclass(frozen=True)
class Sweep:
    """What is known so far.

    Attributes:
        method: Name of the method.
        key: The setting, as a dotted path into the recipe's tables.
        seeds: The seeds that each value is to be trained with.
        test: Whether the test split was looked at.
        rows: One row for each value, in the order they were given.
        failed: Runs that failed.
    """

    method: str
    key: str
    seeds: tuple[int, ...]
    test: bool
    rows: tuple[SweepRow, ...]
    failed: tuple[FailedValue, ...] = ()

    @property
    def waiting(self) -> int:
        """How many runs are neither done nor failed."""
        known = sum(len(row.seeds) for row in self.rows) + len(self.failed)
        return len(self.rows) * len(self.seeds) - known

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for a file."""
        return {**asdict(self), "waiting": self.waiting}


def sweep_rows(values: Sequence[Any], runs: Sequence[SweptRun]) -> tuple[SweepRow, ...]:
    """One row for each value."""
    return tuple(_row(value, [run for run in runs if run.value == value]) for value in values)


def _row(value: Any, runs: Sequence[SweptRun]) -> SweepRow:  # noqa: ANN401
    scores = [run.score for run in runs if run.score is not None]
    return SweepRow(
        value=value,
        seeds=tuple(run.seed for run in runs),
        validation=summarize_known(run.validation for run in runs),
        rmse=summarize_known(score.rmse for score in scores),
        mmd=summarize_known(score.mmd for score in scores),
        latent_std=summarize_known(run.latent_std for run in runs),
        collapsed=tuple(run.seed for run in runs if run.collapsed),
    )
