"""Scores of forecasts against simulations, their noise floor, and the cases worth looking at."""

from .cases import Case, Cases, Curve, choose_cases, curve
from .floor import floor
from .metrics import Score, marginal_mmd2, rmse, score

__all__ = [
    "Case",
    "Cases",
    "Curve",
    "Score",
    "choose_cases",
    "curve",
    "floor",
    "marginal_mmd2",
    "rmse",
    "score",
]
