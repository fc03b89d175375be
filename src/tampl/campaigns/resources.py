"""What the runs of a campaign are made with: data, time, a device and processes."""

import time
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError

__all__ = ["DEFAULTS", "Resources"]


@dataclass(frozen=True)
class Resources:
    """Data, time, device and processes, common to all runs of a campaign.

    Attributes:
        data: A store; None for `data/` in the campaign's folder. It is made where it is absent.
        budget_s: Seconds after which no more work is begun; None for no limit.
        device: Where to train and evaluate.
        side_by_side: How many runs are made at once, each in a process of its own.
    """

    data: str | Path | None = None
    budget_s: float | None = None
    device: str = "cpu"
    side_by_side: int = 1

    def __post_init__(self) -> None:
        # So written, NaN is refused too.
        if self.budget_s is not None and not self.budget_s >= 0:
            raise InputError(
                f"`budget_s` is {self.budget_s}; it must be a number of seconds, at least 0"
            )
        if self.side_by_side < 1:
            raise InputError(f"`side_by_side` is {self.side_by_side}; it must be at least 1")

    def deadline(self) -> float | None:
        """When the budget is spent if it starts now, on `time.monotonic`'s clock."""
        return None if self.budget_s is None else time.monotonic() + self.budget_s


DEFAULTS = Resources()
"""One run after another on the CPU, without limit, on data in the campaign's folder."""
