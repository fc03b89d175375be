import json
from math import isnan

import pytest
from scipy import stats

from tampl.evaluation import Score, excess
from tampl.evaluation.comparison import Trial, compare_trials
from tampl.files import strict_json

FLOOR = Score(0.05, 0.002)
BASELINES = {"pair": Score(1.0, None), "mean_trajectory": Score(0.6, None), "floor": FLOOR}
TAMPL = {42: Score(0.10, 0.010), 43: Score(0.12, 0.012), 44: Score(0.11, 0.011)}
JLD = {42: Score(0.20, 0.030), 43: Score(0.21, 0.028), 44: Score(0.22, 0.032)}
VAMP = {43: Score(0.11, None), 42: Score(0.13, None)}


def runs(**scores):
    """Runs of methods, with the seed as latent scale."""
    return [
        Trial(method, seed, score, latent_std=float(seed))
        for method, found in scores.items()
        for seed, score in found.items()
    ]


@pytest.fixture
def comparison():
    return compare_trials(
        [*runs(tampl=TAMPL, jld=JLD, vamp=VAMP), Trial("jld-sig", 42, failure="it diverged")],
        BASELINES,
        choices=["tampl", "jld", "vamp", "jld-sig"],
        seeds=[42, 43, 44],
    )


def test_rows_in_the_order_of_the_table(comparison):
    assert list(comparison.scores) == ["tampl", "jld", "vamp", "floor", "pair", "mean_trajectory"]
    assert comparison.baselines == ("floor", "pair", "mean_trajectory")


def test_means_and_sample_deviations_by_hand(comparison):
    row = comparison.scores["tampl"]
    assert row.rmse.mean == pytest.approx(0.11)
    assert row.rmse.std == pytest.approx(0.01)
    assert row.mmd.std == pytest.approx(0.001)
    assert row.latent_std.mean == 43.0
    assert row.seeds == (42, 43, 44)


def test_excess_is_the_mean_over_runs(comparison):
    above = [excess(score, FLOOR) for score in JLD.values()]
    row = comparison.scores["jld"]
    assert row.excess.rmse == pytest.approx(sum(score.rmse for score in above) / 3)
    assert row.excess.mmd == pytest.approx(sum(score.mmd for score in above) / 3)
    assert comparison.scores["floor"].excess is None
    assert comparison.scores["pair"].excess == excess(BASELINES["pair"], FLOOR)


def test_differences_are_those_of_the_paired_t_test(comparison):
    pair = comparison.paired["jld"]
    ours, theirs = ([score.rmse for score in found.values()] for found in (JLD, TAMPL))
    oracle = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (pair.rmse.low, pair.rmse.high) == pytest.approx((oracle.low, oracle.high))
    assert pair.mmd.mean == pytest.approx(0.019)
    assert pair.rmse.verdict.value == "worse"


def test_only_common_seeds_are_paired(comparison):
    pair = comparison.paired["vamp"]
    assert pair.seeds == (42, 43)
    assert pair.rmse.values == pytest.approx((0.03, -0.01))
    assert pair.mmd is None
    assert "tampl" not in comparison.paired


def test_what_is_still_to_be_made(comparison):
    assert comparison.waiting == (("jld-sig", 43), ("vamp", 44), ("jld-sig", 44))


def test_without_tampl_nothing_is_paired():
    found = compare_trials(runs(jld=JLD), BASELINES, choices=["jld"], seeds=[42, 43, 44])
    assert found.paired == {}
    assert found.waiting == ()


def test_nothing_yet():
    found = compare_trials([], {}, choices=["tampl"], seeds=[1, 2])
    assert found.scores == {}
    assert found.waiting == (("tampl", 1), ("tampl", 2))


def test_collapsed_seeds_are_named():
    collapsed = [Trial("tampl", seed, TAMPL[seed], collapsed=seed == 43) for seed in TAMPL]
    found = compare_trials(collapsed, BASELINES, choices=["tampl"], seeds=list(TAMPL))
    assert found.scores["tampl"].collapsed == (43,)
    assert found.scores["tampl"].latent_std is None


def test_json(comparison):
    plain = json.loads(strict_json(comparison.as_dict()))
    assert plain["seeds"] == [42, 43, 44]
    assert plain["scores"]["tampl"]["rmse"] == {
        "mean": pytest.approx(0.11),
        "std": pytest.approx(0.01),
        "values": [0.10, 0.12, 0.11],
    }
    assert plain["scores"]["vamp"]["mmd"] is None
    assert plain["scores"]["pair"] == {
        "rmse": {"mean": 1.0, "std": None, "values": [1.0]},
        "mmd": None,
        "excess": {"rmse": pytest.approx((1 - 0.05**2 / 2) ** 0.5), "mmd": None},
        "validation": None,
        "latent_std": None,
        "seeds": [],
        "collapsed": [],
    }
    assert plain["paired"]["jld"]["rmse"].keys() == {"mean", "low", "high", "values", "verdict"}
    assert plain["paired"]["vamp"]["mmd"] is None
    assert plain["failed"] == [{"method": "jld-sig", "seed": 42, "reason": "it diverged"}]
    assert plain["waiting"][0] == {"method": "jld-sig", "seed": 43}


def test_a_forecast_that_blew_up_is_null_and_has_no_verdict():
    nan = float("nan")
    broken = {seed: Score(nan, nan) for seed in TAMPL}
    found = compare_trials(
        runs(tampl=TAMPL, jld=broken), BASELINES, choices=["tampl", "jld"], seeds=list(TAMPL)
    )
    plain = json.loads(strict_json(found.as_dict()))
    assert plain["scores"]["jld"]["rmse"]["mean"] is None
    assert plain["paired"]["jld"]["rmse"]["verdict"] is None


def test_values_of_a_setting_without_test_scores():
    """What a sweep compares: validation errors and latent scales, summarised by value."""
    trials = [
        Trial("0.1", 1, validation=0.2, latent_std=1.0),
        Trial("0.1", 2, validation=0.4, latent_std=2.0),
        Trial("[8, 8]", 1, collapsed=True),
        Trial("[8, 8]", 2, failure="it diverged"),
    ]
    found = compare_trials(trials, choices=["0.1", "[8, 8]", "7"], seeds=[1, 2])
    first, second = found.scores["0.1"], found.scores["[8, 8]"]
    assert first.validation.mean == pytest.approx(0.3)
    assert first.validation.std == pytest.approx(0.02**0.5)
    assert first.latent_std.values == (1.0, 2.0)
    assert first.rmse is None and isnan(first.error)
    assert (second.validation, second.mmd, second.collapsed) == (None, None, (1,))
    assert "7" not in found.scores and found.waiting == (("7", 1), ("7", 2))
    assert found.paired == {} and found.failed == (trials[3],)


def test_a_trial_is_read_off_a_log():
    log = [
        {"epoch": 1, "validation": 0.3, "latent": {"std_mean": 2.0}, "collapsed": False},
        {"epoch": 2, "validation": 0.4, "latent": {"std_mean": 0.1}, "collapsed": True},
    ]
    assert Trial.of_log("jld", 1, log) == Trial("jld", 1, None, 0.3, 2.0, True)
