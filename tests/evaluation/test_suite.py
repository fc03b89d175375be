"""The suite: what stands beside a model's score, and refusing the wrong data."""

import numpy as np
import pytest

from tampl.data import Normalization, write_miniature
from tampl.description import refuse_other_system
from tampl.errors import InputError
from tampl.evaluation import evaluate, floor, score
from tampl.methods.base import rollout_rmse
from tampl.models import MacroModel, ModelSpec, Modules
from tampl.seeding import ambient_seed
from tampl.systems import SIRS

SYSTEM = SIRS(size=8, frames=5, clusters=(1, 2))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write_miniature(SYSTEM, tmp_path_factory.mktemp("suite") / "store")


@pytest.fixture(scope="module", params=["flow", "mlp"])
def model(request, store):
    spec = ModelSpec.model_validate(
        {
            "latent_dim": 2,
            "encoder": {"name": "lattice", "widths": [4]},
            "transition": {"name": request.param, "hidden": [8]},
        }
    )
    with ambient_seed(0):
        modules = Modules.build(spec, store.description)
    statistics = store.dataset("train").statistics
    return MacroModel(store.description, statistics=statistics, modules=modules)


def test_scores_are_those_of_the_parts(model, store):
    train, test = store.dataset("train").y, store.references()
    evaluation = evaluate(model, test, closures=SYSTEM.closures(), name="ours", seed=4)
    statistics = Normalization.fit(train)
    members = test.y.shape[1]
    ours = model.forecast(test.x, horizon=4, members=members, seed=4)
    samples = ours.samples if model.stochastic else ours.samples[:, 0]
    pair = SYSTEM.closures()["pair"](test.x)
    assert evaluation.scores["ours"] == score(samples, test.y, statistics)
    assert evaluation.scores["pair"] == score(pair, test.y, statistics)
    assert evaluation.scores["floor"] == floor(test.y, statistics)
    assert (evaluation.scores["ours"].mmd is None) == (not model.stochastic)


def test_mean_trajectory_ignores_the_microstate(model, store):
    train, test = store.dataset("train").y, store.references()
    evaluation = evaluate(model, test)
    assert "pair" not in evaluation.scores
    y = Normalization.fit(train).standardize
    difference = y(train.mean(0))[1:] - y(test.y.mean(1))[:, 1:]
    expected = np.sqrt((difference**2).mean())
    assert evaluation.scores["mean_trajectory"].rmse == pytest.approx(expected)


def test_cases_are_of_the_test_split(model, store):
    test = store.references()
    cases = evaluate(model, test, closures=SYSTEM.closures(), name="ours").cases
    for case in cases.cases:
        np.testing.assert_array_equal(case.microstate, test.x[case.index])
        assert list(case.predictions) == ["ours", "mean_field", "pair"]


def test_validation_error_is_against_single_trajectories(model, store):
    valid = store.dataset("valid")
    y = model.normalization.standardize
    predicted = model.forecast(valid.x[:, 0], horizon=4, members=3, limits=False).mean
    expected = np.sqrt(((y(predicted) - y(valid.y))[:, 1:] ** 2).mean())
    assert rollout_rmse(model, valid, members=3) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"beta": 9.0}, "beta"), ({"size": 10}, "height"), ({"interval": 0.25}, "interval")],
)
def test_other_systems_are_refused(change, words):
    other = SYSTEM.model_copy(update=change)
    with pytest.raises(InputError, match=words):
        refuse_other_system(SYSTEM.description, other.description, whose="the model")


def test_other_lengths_are_welcome(model, tmp_path):
    longer = SYSTEM.model_copy(update={"frames": 9})
    refuse_other_system(SYSTEM.description, longer.description, whose="the model")
    store = write_miniature(longer, tmp_path / "store")
    test = store.references()
    evaluation = evaluate(model, test, closures=longer.closures())
    assert evaluation.cases.times[-1] == pytest.approx(8 * longer.interval)


def test_single_trajectories_are_scored_without_a_floor(model, store):
    data = store.dataset("valid")
    evaluation = evaluate(model, data, progress=False)
    assert evaluation.mmd is None and evaluation.floor is None and "floor" not in evaluation.scores
    ours = model.forecast(data.x[:, 0], horizon=4, members=64, progress=False)
    y = model.normalization.standardize
    expected = np.sqrt(((y(ours.mean) - y(data.y))[:, 1:] ** 2).mean())
    assert evaluation.rmse == pytest.approx(expected)
    assert 0 < evaluation.crps and evaluation.spread == {}


def test_persistence_stays_at_the_start(model, store):
    test = store.references()
    y = model.normalization.standardize(test.y.mean(axis=1))
    expected = np.sqrt(((y[:, :1] - y)[:, 1:] ** 2).mean())
    assert evaluate(model, test, progress=False).persistence.rmse == pytest.approx(expected)


def test_trajectories_from_one_state_are_scored_as_an_ensemble(model, store):
    valid = store.dataset("valid")
    both = valid.select(np.array([0, 0, 1, 1]))
    both.y[1::2, 1:] += 0.01  # the data set's own copy
    evaluation = evaluate(model, both, progress=False)
    assert evaluation.floor is not None
    assert (evaluation.mmd is None) == (not model.stochastic)


def test_a_model_that_does_not_know_the_mean_trajectory_leaves_it_out(model, store):
    known, model.mean_trajectory = model.mean_trajectory, None
    assert evaluate(model, store.references(), progress=False).mean_trajectory is None
    model.mean_trajectory = known
