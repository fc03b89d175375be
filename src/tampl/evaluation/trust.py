"""How far the forecasts of an evaluated model can be trusted, beside its score.

A score says how good forecasts are on average. Trust says how often they had to be held near the
training data, what they would have scored without, whether their bands cover what they promise,
and whether the latent state is a state.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..calibration import Calibration
from .markov import MarkovTest
from .metrics import Score

__all__ = ["Trust"]


@dataclass(frozen=True, eq=False)
class Trust:
    """What stands beside a score that was taken inside limits and envelope.

    Attributes:
        plain: The score without limits, envelope and y_0: that of the paper's algorithm.
        held: The fraction of members and times that were held inside the envelope; None without
            an envelope.
        warnings: Why some of the forecasts are not to be trusted, one line each.
        calibration: Coverage, ranks and spread against error; None for a deterministic model.
        markov: The Chapman-Kolmogorov test on validation trajectories; None for a deterministic
            model.
    """

    plain: Score
    held: float | None
    warnings: tuple[str, ...] = ()
    calibration: Calibration | None = None
    markov: MarkovTest | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {
            "plain": asdict(self.plain),
            "held": self.held,
            "warnings": list(self.warnings),
            "calibration": None if self.calibration is None else self.calibration.as_dict(),
            "markov": None if self.markov is None else self.markov.as_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Trust":
        """What `as_dict` turned into plain data."""
        calibration, markov, held = plain["calibration"], plain["markov"], plain["held"]
        return cls(
            plain=Score.from_dict(plain["plain"]),
            held=None if held is None else float(held),
            warnings=tuple(map(str, plain["warnings"])),
            calibration=None if calibration is None else Calibration.from_dict(calibration),
            markov=None if markov is None else MarkovTest.from_dict(markov),
        )
