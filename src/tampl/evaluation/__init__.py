"""Scores of forecasts against simulations, their noise floor, and the cases worth looking at."""

from .cases import Case, Cases, Curve, choose_cases, curve
from .comparison import Comparison, RunScore, compare_scores
from .metrics import Score, excess, floor, marginal_mmd2, rmse, score

__all__ = [
    "Case",
    "Cases",
    "Comparison",
    "Curve",
    "RunScore",
    "Score",
    "choose_cases",
    "compare_scores",
    "curve",
    "excess",
    "floor",
    "marginal_mmd2",
    "rmse",
    "score",
]
