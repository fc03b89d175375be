"""Scores where frames of the references are missing, and of models that step several frames."""

import numpy as np
import pytest
import torch

from tampl.data import Dataset, Normalization
from tampl.description import match_interval
from tampl.errors import InputError
from tampl.evaluation import chapman_kolmogorov, evaluate, floor, score
from tampl.evaluation.cases import choose_cases, curve
from tampl.evaluation.claims import spread_ratios
from tampl.evaluation.metrics import crps, leave_out_holes
from tampl.methods.base import rollout_rmse
from tampl.microstates import Vector
from tampl.models import MacroModel, ModelSpec, Modules
from tampl.seeding import ambient_seed

UNITS = Normalization(np.zeros(2), np.ones(2))
G, N, M, F = 4, 5, 7, 6


@pytest.fixture(scope="module")
def ensembles():
    """A forecast (G, M, F, 2) and references (G, N, F, 2) of which frames are missing."""
    rng = np.random.default_rng(0)
    ours, truth = rng.normal(size=(G, M, F, 2)), rng.normal(0.3, 1, (G, N, F, 2))
    missing = rng.random((G, N, F)) < 0.4
    missing[:, :, 0], missing[0, :, 3], missing[1, 1:, 2] = False, True, True
    truth[missing] = np.nan
    return ours, truth


def marginals(ours, truth, least=1):
    """The members of the forecast and those that exist of the references, one by one."""
    for g in range(G):
        for t in range(1, F):
            known = ~np.isnan(truth[g, :, t, 0])
            if known.sum() >= least:
                for j in range(2):
                    yield ours[g, :, t, j], truth[g, known, t, j]


def kernel(a, b):
    return np.exp(-((a[:, None] - b[None]) ** 2) / 2).mean()


def test_scores_are_those_of_a_slow_loop_over_what_exists(ensembles):
    ours, truth = ensembles
    found = score(ours, truth, UNITS)
    pairs = list(marginals(ours, truth))
    mse = np.mean([(u.mean() - v.mean()) ** 2 for u, v in pairs])
    mmd = np.mean([kernel(u, u) + kernel(v, v) - 2 * kernel(u, v) for u, v in pairs])
    assert found.rmse == pytest.approx(np.sqrt(mse), rel=1e-12)
    assert found.mmd == pytest.approx(mmd, rel=1e-10)
    alone = score(ours.mean(axis=1), truth, UNITS)
    assert alone.rmse == pytest.approx(found.rmse, rel=1e-12) and alone.mmd is None


def test_the_crps_is_the_mean_over_single_trajectories(ensembles):
    ours, truth = ensembles
    each = [
        np.abs(u - single).mean() - np.abs(u[:, None] - u[None]).sum() / (2 * M * (M - 1))
        for u, v in marginals(ours, truth)
        for single in v
    ]
    assert crps(ours, truth, UNITS) == pytest.approx(np.mean(each), rel=1e-12)


def test_the_floor_is_the_score_of_a_second_ensemble():
    """References and a perfect forecast, drawn often: the floor is their mean square."""
    rng, total, expected = np.random.default_rng(1), 0.0, 0.0
    for _ in range(300):
        forecast, truth = rng.normal(size=(2, 20, 6, 5, 2))
        for members in range(1, 5):  # times 1 to 4 have 2 to 5 references
            truth[:, members + 1 :, members] = np.nan
        total += score(forecast, truth, UNITS).rmse ** 2 / 300
        expected += floor(truth, UNITS).rmse ** 2 / 300
    exact = np.mean([1 / 6 + 1 / members for members in (2, 3, 4, 5)])
    assert expected == pytest.approx(exact, rel=0.02)
    assert total == pytest.approx(exact, rel=0.02)


def test_spread_and_floor_leave_out_single_trajectories(ensembles):
    ours, truth = ensembles
    ratio = [
        [(u.var(ddof=1), v.var(ddof=1)) for u, v in list(marginals(ours, truth, 2))[j::2]]
        for j in range(2)
    ]
    expected = [np.sqrt(np.divide(*np.mean(pairs, axis=0))) for pairs in ratio]
    assert spread_ratios(ours, truth) == pytest.approx(expected, rel=1e-12)
    noise = [v.var(ddof=1) * (1 / N + 1 / len(v)) for _, v in marginals(ours, truth, 2)]
    assert floor(truth, UNITS).rmse == pytest.approx(np.sqrt(np.mean(noise)), rel=1e-12)


def test_without_holes_nothing_is_copied(ensembles):
    ours, _ = ensembles
    (part,) = leave_out_holes(ours, ours)
    assert part.ours is ours and part.truth is ours and part.share == 1.0


def test_what_cannot_be_scored_is_one_line(ensembles):
    ours, truth = ensembles
    empty = truth.copy()
    empty[:, :, 1:] = np.nan
    with pytest.raises(InputError, match="no time after t = 0 with 1 trajectories at least"):
        score(ours, empty, UNITS)


def test_curves_and_cases_look_at_what_exists(ensembles):
    _, truth = ensembles
    found = curve(truth[1], holes=True)
    known = truth[1][~np.isnan(truth[1, :, 4, 0]), 4]
    np.testing.assert_allclose(found.mean[4], known.mean(axis=0))
    np.testing.assert_allclose(found.std[4], known.std(axis=0, ddof=1))
    assert np.isnan(found.std[2]).all() and np.isfinite(found.mean[2]).all()
    assert np.isnan(curve(truth[0], holes=True).mean[3]).all()
    first, twins = choose_cases(["a"] * G, truth, UNITS)
    assert first == [0, 1, 2] and len(set(twins)) == 2


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    start = rng.normal(size=(8, 1, 2)).repeat(3, axis=0)
    steps = rng.normal(size=(24, 10, 2)) / 4
    x = np.concatenate([start, start + steps.cumsum(axis=1)], axis=1)
    present = np.arange(11) < rng.integers(5, 12, (24, 1))
    present[0] = True
    return Dataset(x, x[..., :1], interval=0.1, microstate=Vector(size=2), present=present)


@pytest.fixture(scope="module")
def model(data):
    spec = {"latent_dim": 2, "encoder": {"name": "mlp"}, "transition": {"name": "flow"}}
    description = data.description.thin(3)
    with ambient_seed(0):
        modules = Modules.build(ModelSpec.model_validate(spec), description)
    return MacroModel(description, statistics=data.statistics.thin(3), modules=modules)


def test_a_model_with_a_lag_is_scored_on_every_lagth_frame(model, data):
    found = evaluate(model, data, progress=False)
    truth = data.references.y[:, :, ::3]
    ours = model.forecast(data.references.x, horizon=3, members=3, progress=False)
    assert found.scores["model"] == score(ours.samples, truth, model.normalization)
    assert found.floor == floor(truth, model.normalization)
    mean = np.broadcast_to(data.statistics.mean_trajectory[::3], (8, 4, 1))
    assert found.mean_trajectory == score(mean, truth, model.normalization)
    assert found.persistence.rmse > 0 and np.isfinite(found.crps)
    np.testing.assert_allclose(found.cases.times, [0, 0.3, 0.6, 0.9])
    # Nothing else than thinning is done to the data.
    assert evaluate(model, data.thin(3), progress=False).scores == found.scores


def test_the_latent_state_is_tested_on_frames_that_exist(model, data):
    found = chapman_kolmogorov(model, data, steps=[1, 2], members=8)
    present = data.present[:, ::3]
    assert found.starts == (present[:, :-2] & present[:, 1:-1] & present[:, 2:]).sum()
    assert np.isfinite(found.latent).all() and np.isfinite(found.observables).all()
    short = data.select(np.flatnonzero(~data.present[:, 6]))
    assert chapman_kolmogorov(model, short, steps=[2]) is None


def test_single_trajectories_of_different_lengths_are_scored(model, data):
    found = evaluate(model, data.select(np.arange(0, 24, 3)), progress=False)
    assert found.floor is None and np.isfinite([found.rmse, found.crps]).all()


def test_validation_leaves_missing_frames_out(model, data):
    thin = data.thin(3)
    found = rollout_rmse(model, thin, members=4)
    ours = model.forecast(thin.x[:, 0], horizon=3, members=4, limits=False, progress=False).mean
    known = thin.present[:, 1:]
    apart = (ours[:, 1:] - thin.y[:, 1:])[known] / model.normalization.std
    assert found == pytest.approx(np.sqrt(np.mean(apart**2)), rel=1e-12)


def test_the_envelope_is_that_of_the_frames_that_exist(model, data):
    other = Dataset.described(
        data.description, data.x.copy(), data.y.copy(), data.labels, data.present
    )
    other.x[~other.present] = 1e9
    model.enclose(data)
    first = model.envelope
    model.enclose(other)
    assert torch.equal(first.landmarks, model.envelope.landmarks)
    assert torch.equal(first.radius, model.envelope.radius)
    model.envelope = None


def test_another_interval_is_refused_unless_it_is_a_whole_multiple(model, data):
    longer = data.description.model_copy(update={"interval": 0.1 * (1 + 1e-12)})
    assert match_interval(model.description, longer, whose="the model") == 3
    assert match_interval(data.description, data.description, whose="the model") == 1
    for interval in (0.2, 0.6, 0.11):
        other = data.description.model_copy(update={"interval": interval})
        with pytest.raises(InputError, match=r"`interval` is 0\.3"):
            match_interval(model.description, other, whose="the model")


def test_data_shorter_than_a_step_are_one_line(model, data):
    short = Dataset(data.x[:, :3], data.y[:, :3], interval=0.1, present=data.present[:, :3])
    with pytest.raises(InputError, match="3 frames, and a step of the model is 3 of them"):
        evaluate(model, short, progress=False)
