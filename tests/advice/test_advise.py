"""What is said of data sets of which the truth is known."""

import json
import re

import numpy as np
import pytest

import tampl
from tampl import InputError, Vector
from tampl.advice import LearningCurve, fit_learning_curve
from tampl.advice import study as studies
from tampl.files import strict_json


def ornstein_uhlenbeck(phi, *, count=300, frames=200, seed=0):
    noise = np.random.default_rng(seed).normal(size=(count, frames))
    y = noise.copy()
    for t in range(1, frames):
        y[:, t] = phi * y[:, t - 1] + np.sqrt(1 - phi**2) * noise[:, t]
    return y


def dataset(y, **options):
    y = y if y.ndim == 3 else y[..., None]
    return tampl.Dataset(y, y, microstate=Vector(size=y.shape[-1]), **options)


def topics(advice, level=None):
    return [f.topic for f in advice.remarks if level in (None, f.level)]


def test_a_process_of_known_memory():
    advice = tampl.advise(dataset(ornstein_uhlenbeck(0.9), interval=0.5, observables=["q"]))
    (facts,) = advice.series
    # Change from frame to frame: 2 (1 - phi) of the variance.
    assert facts.change == pytest.approx(np.sqrt(0.2), rel=0.03)
    assert facts.memory == pytest.approx(9.5, rel=0.1) and facts.resolved
    assert facts.std == pytest.approx(1.0, rel=0.05) and facts.noise < 0.03
    assert (facts.lag, advice.lag) == (1, 1)
    # 0.5 * 9.5, of a sample.
    said = float(re.search(r"q has a correlation time of ([\d.]+)", str(advice))[1])
    assert said == pytest.approx(4.75, rel=0.1)
    assert advice.trajectories == advice.initial_states == 300
    assert topics(advice, "warning") == []


def test_a_slow_process_asks_for_a_longer_lag():
    # D(k) = 1 - phi^k reaches 0.005 at k = 9.
    advice = tampl.advise(dataset(ornstein_uhlenbeck(np.exp(-0.0006), count=500)))
    assert advice.lag == advice.series[0].lag == pytest.approx(9, abs=1)
    assert "Lag" in topics(advice, "warning") and f"a lag of {advice.lag}" in str(advice)


def test_noise_hides_the_change_until_it_stands_out():
    y = ornstein_uhlenbeck(np.exp(-0.0006), count=2000)
    noisy = y + np.random.default_rng(1).normal(size=y.shape)
    advice = tampl.advise(dataset(noisy))
    assert advice.series[0].noise == pytest.approx(0.5, abs=0.05)
    assert "Noise" in topics(advice)
    # (1 - nu) (1 - phi^k) reaches 0.005 at k = 17.
    assert advice.series[0].lag == pytest.approx(17, abs=6)


def test_constant_and_conserved_observables_are_told():
    y = np.stack([
        ornstein_uhlenbeck(0.8, count=60, frames=50),
        np.repeat(np.arange(60.0)[:, None], 50, axis=1),
        np.full((60, 50), 3.0),
    ], axis=-1)  # fmt: skip
    advice = tampl.advise(dataset(y, observables=["a", "n", "c"]))
    moving, conserved, constant = advice.series
    assert moving.moves and conserved.conserved and constant.constant
    assert conserved.between == 1.0 and moving.between < 0.5
    assert "n never changes along a trajectory" in str(advice)
    assert "c is 3 everywhere" in str(advice)
    assert topics(advice, "warning") == ["Constant observable"]


def test_repeated_initial_states_few_trajectories_and_absent_frames_are_told():
    y = np.repeat(ornstein_uhlenbeck(0.8, count=5, frames=30), 4, axis=0)
    y[:, 1:] += np.random.default_rng(0).normal(size=(20, 29))
    present = np.ones((20, 30), bool)
    present[:10, 20:] = False
    data = tampl.Dataset(y[..., None], y[..., None], microstate=Vector(size=1), present=present)
    advice = tampl.advise(data)
    assert advice.initial_states == 5 and "5 different states, 4 from each" in str(advice)
    assert topics(advice, "warning")[-1] == "Number of trajectories"
    assert "17 % of the frames" in str(advice)


def test_independent_frames_are_told():
    advice = tampl.advise(dataset(ornstein_uhlenbeck(0.0)))
    assert "frames are as good as independent" in str(advice)


def test_advice_becomes_plain_data():
    advice = tampl.advise(dataset(ornstein_uhlenbeck(0.9, count=60, frames=30)))
    plain = json.loads(strict_json(advice.as_dict()))
    assert plain["trajectories"] == 60 and plain["study"] is None
    assert len(plain["series"][0]["variogram"]) == len(plain["series"][0]["lags"])


@pytest.mark.parametrize(("a", "b", "c"), [(0.1, 2.0, 0.5), (0.0, 3.0, 1.0), (0.04, 9.0, 1.7)])
def test_a_learning_curve_that_is_a_power_is_found_again(a, b, c):
    n = np.array([20.0, 40.0, 80.0, 160.0])
    found = fit_learning_curve(n, a + b * n**-c)
    assert found.a == pytest.approx(a, abs=1e-3)
    assert found.c == pytest.approx(c, rel=0.02) and found.b == pytest.approx(b, rel=0.05)
    assert found.rmse(80) == pytest.approx(np.sqrt(a + b * 80**-c), rel=1e-3)
    # What it needs for the error at 1,000 trajectories are 1,000 trajectories.
    assert found.needed(np.sqrt(a + b * 1000**-c)) == pytest.approx(1000, rel=0.05)


def test_an_error_below_the_asymptote_needs_more_than_any_number():
    assert LearningCurve(a=0.25, b=1.0, c=1.0).needed(0.4) == np.inf
    flat = fit_learning_curve([10, 20, 40], [0.3, 0.3, 0.3])
    assert flat.rmse(1e6) == pytest.approx(np.sqrt(0.3))


def rotations(count, *, frames=9, seed=0):
    """A point on a circle that turns one way or the other; the observable is its height."""
    generator = np.random.default_rng(seed)
    start, way = generator.uniform(0, 2 * np.pi, (count, 1)), generator.choice([-1, 1], (count, 1))
    angle = start + 0.5 * way * np.arange(frames)
    x = np.stack([np.cos(angle), np.sin(angle), way * np.ones_like(angle)], axis=-1)
    return tampl.Dataset(x, np.sin(angle), observables=["h"], microstate=Vector(size=3))


def test_all_trainings_are_done_and_told(monkeypatch):
    monkeypatch.setattr(studies, "STEPS", (20, 20))
    monkeypatch.setattr(studies, "MEMBERS", 2)
    data = rotations(60)
    before = np.random.get_state()[1].copy()
    advice = tampl.advise(data, full=True, device="cpu", progress=False)
    study = advice.study
    assert study is not None and study.steps == 20
    kinds = [(t.method, t.latent_dim, t.trajectories) for t in study.trainings]
    assert kinds[:2] == [("tampl+", 8, 48), ("macro-only", 1, 48)]
    assert [n for m, d, n in kinds[2:] if d == 8] == [24, 12, 6]
    assert sorted(d for m, d, n in kinds if m == "tampl+" and n == 48) == [1, 2, 4, 8, 16]
    assert {"Microstate", "Latent dimension", "Missing trajectories"} <= set(topics(advice))
    json.loads(strict_json(advice.as_dict()))
    np.testing.assert_array_equal(before, np.random.get_state()[1])


def test_the_microstate_is_needed_where_y_alone_does_not_tell(monkeypatch):
    monkeypatch.setattr(studies, "STEPS", (250, 250))
    monkeypatch.setattr(studies, "MEMBERS", 4)
    # No time: the two trainings that answer this question are done nevertheless.
    advice = tampl.advise(
        rotations(60), valid=rotations(20, seed=1), full=True, budget_s=0.0, device="cpu",
        progress=False,
    )  # fmt: skip
    # From its height alone nobody knows which way a point turns.
    base, macro = advice.study.trainings
    assert base.rmse < 0.7 * macro.rmse
    assert "y alone is not sufficient" in str(advice)
    assert advice.study is not None and len(advice.study.trainings) == 2
    assert advice.study.curve is None and "did not fit into the time" in str(advice)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"full": True, "error": -1.0}, "`error` is -1.0; it must be a positive number"),
        ({"full": True}, "needs 5 initial states at least, and there are 3"),
    ],
)
def test_wrong_input_is_one_line(options, words):
    with pytest.raises(InputError, match=words):
        tampl.advise(rotations(3), **options)


def test_arrays_are_no_data_set():
    with pytest.raises(InputError, match="`data` is a ndarray; give a"):
        tampl.advise(np.zeros((3, 4, 1)))
