r"""What remains of a score when the noise of finite ensembles is taken away.

Squares add, so the excess is sqrt(RMSE^2 - RMSE_floor^2) and MMD^2 - MMD^2_floor. A deterministic
forecast meets only the references' half of RMSE_floor^2, and has no MMD.
"""

from math import sqrt

from .metrics import Score

__all__ = ["excess"]


def excess(score: Score, floor: Score) -> Score:
    """The excess of a score over the floor; an RMSE below the floor, which is chance, has none.

    Example:
        >>> excess(Score(0.5, 0.75), Score(0.3, 0.25))
        Score(rmse=0.4, mmd=0.5)
    """
    if score.mmd is None or floor.mmd is None:
        return Score(_above(score.rmse, floor.rmse**2 / 2), None)
    return Score(_above(score.rmse, floor.rmse**2), score.mmd - floor.mmd)


def _above(rmse: float, noise: float) -> float:
    # In this order: the larger of 0 and NaN is 0, and a forecast that blew up is not perfect.
    return sqrt(max(rmse * rmse - noise, 0.0))
