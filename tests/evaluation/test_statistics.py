"""Means, sample deviations and paired intervals against scipy and numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from tampl.evaluation.comparison import Difference, Verdict, paired_difference, summarize


def test_summary_by_hand():
    """Deviations from 3 are -2, -1, 3: squares sum to 14, over two gives 7."""
    found = summarize([1.0, 2.0, 6.0])
    assert found.mean == 3.0
    assert found.std == pytest.approx(7**0.5)
    assert found.values == (1.0, 2.0, 6.0)


def test_one_value_has_no_deviation():
    assert summarize([0.5]) == summarize(iter([0.5]))
    assert summarize([0.5]).std is None


def test_interval_is_that_of_the_paired_t_test():
    generator = np.random.default_rng(0)
    ours, theirs = generator.normal(0.2, 0.1, 5), generator.normal(0.1, 0.1, 5)
    found = paired_difference(dict(enumerate(ours)), dict(enumerate(theirs)))
    oracle = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high))
    assert found.mean == pytest.approx(np.mean(ours - theirs))
    np.testing.assert_allclose(found.values, ours - theirs)


def test_interval_by_hand():
    """Three differences 1, 2, 3: s = 1, and t_{0.975, 2} = 4.302653 by the table."""
    found = paired_difference({1: 1.0, 2: 2.0, 3: 3.0}, {1: 0.0, 2: 0.0, 3: 0.0})
    assert found.mean == 2.0
    assert found.high - found.mean == pytest.approx(4.302653 / 3**0.5, rel=1e-6)


def test_pairs_are_matched_by_seed_and_not_by_place():
    found = paired_difference({42: 1.0, 43: 2.0, 45: 9.0}, {44: 0.0, 43: 1.5, 42: 0.25})
    assert found.values == (0.75, 0.5)


def test_one_pair_has_no_interval_and_no_verdict():
    found = paired_difference({42: 1.0}, {42: 0.5})
    assert found == Difference(0.5, None, None, (0.5,))
    assert found.verdict is None
    assert paired_difference({42: 1.0}, {43: 0.5}) is None


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.1, 0.11, 0.12], Verdict.WORSE),
        ([-0.1, -0.11, -0.12], Verdict.BETTER),
        ([-0.1, 0.3, 0.2], Verdict.TIE),
        ([0.0, 0.0], Verdict.TIE),
        ([0.1, 0.1], Verdict.WORSE),
        ([0.1, float("nan")], None),
        ([0.1, float("inf")], None),
    ],
)
def test_verdict(values, verdict):
    found = paired_difference(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))
    assert found.verdict is verdict
