"""Scores of forecasts against the truth, their noise floor, and the cases worth looking at."""

from .cases import Case, Cases, Curve, choose_cases, curve
from .comparison import Comparison
from .metrics import Score, crps, excess, floor, marginal_mmd2, rmse, score
from .suite import Evaluation, evaluate

__all__ = [
    "Case",
    "Cases",
    "Comparison",
    "Curve",
    "Evaluation",
    "Score",
    "choose_cases",
    "crps",
    "curve",
    "evaluate",
    "excess",
    "floor",
    "marginal_mmd2",
    "rmse",
    "score",
]
