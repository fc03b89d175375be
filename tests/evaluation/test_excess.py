import math

import pytest

from tampl.evaluation import Score, excess

FLOOR = Score(0.3, 0.01)


def test_squares_add():
    assert excess(Score(0.5, 0.05), FLOOR).rmse == pytest.approx(0.4)
    assert excess(Score(0.5, 0.05), FLOOR).mmd == pytest.approx(0.04)


def test_a_deterministic_forecast_meets_half_of_the_noise():
    assert excess(Score(0.5, None), FLOOR) == Score(pytest.approx((0.25 - 0.045) ** 0.5), None)


def test_below_the_floor_nothing_is_left():
    assert excess(Score(0.2, 0.005), FLOOR).rmse == 0.0
    assert excess(Score(0.2, 0.005), FLOOR).mmd == pytest.approx(-0.005)


def test_what_blew_up_stays_so():
    assert math.isnan(excess(Score(math.nan, math.nan), FLOOR).rmse)
    assert excess(Score(1e200, 0.5), FLOOR).rmse == math.inf
