"""Scores of forecasts against the truth, their noise floor, and the cases worth looking at."""

from .cases import Case, Cases, Curve, choose_cases, curve
from .comparison import Comparison
from .markov import MarkovTest, chapman_kolmogorov
from .metrics import Score, crps, excess, floor, marginal_mmd2, rmse, score
from .suite import Evaluation, evaluate
from .trust import Trust

__all__ = [
    "Case",
    "Cases",
    "Comparison",
    "Curve",
    "Evaluation",
    "MarkovTest",
    "Score",
    "Trust",
    "chapman_kolmogorov",
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
