"""Sets of particles that change in number and in box: from arrays to scores by defaults."""

import numpy as np
import pytest

import tampl
from tampl.data import Dataset
from tampl.evaluation import evaluate
from tampl.methods import METHODS
from tampl.microstates import Particles

LOW, HIGH = np.array([4.0, 5.0, 3.0]), np.array([6.0, 5.0, 4.0])


def breathe(trajectories=16, frames=7, count=9, seed=0):
    """Random walkers of two types that come and go, in a box that is strained."""
    rng = np.random.default_rng(seed)
    kind = Particles(
        count=count,
        dim=3,
        types=2,
        box=tuple(LOW),
        box_max=tuple(HIGH),
        periodic=(True, True, False),
    )
    share = rng.uniform(0.2, 0.8, (trajectories, 1)) + 0.2 * np.sin(np.arange(frames) / 2)
    box = LOW + share[..., None] * (HIGH - LOW)
    steps = rng.normal(0, 0.1, (trajectories, frames, count, 3)).cumsum(axis=1)
    places = rng.uniform(0, 1, (trajectories, 1, count, 3)) + steps
    places[..., 2] = np.abs((places[..., 2] + 1) % 2 - 1)
    types = rng.integers(1, 3, (trajectories, 1, count)).repeat(frames, axis=1)
    types[rng.random(types.shape) < 0.3] = 0
    types[..., 0] = 1
    x = kind.encode(places * box[..., None, :], types, box)
    number = (types > 0).sum(axis=-1)
    y = np.stack([number / box.prod(axis=-1), (types == 1).sum(axis=-1) / number], axis=-1)
    present = np.arange(frames) < rng.integers(4, frames + 1, (trajectories, 1))
    present[0] = True
    return Dataset(x, y, observables=["density", "share"], microstate=kind, present=present)


@pytest.fixture(scope="module")
def data():
    return breathe()


def test_all_defaults_fit_and_the_model_stands_alone(data, tmp_path):
    method = tampl.TamplPlus.model_validate({"refit": {"steps": 5}, "map": {"steps": 5}})
    model = method.fit(data, epochs=2, lag=2, device="cpu", progress=False)
    assert model.spec.encoder.counts is True
    assert model.description.frames == 4
    model.save(tmp_path / "model.safetensors")
    loaded = tampl.load(tmp_path / "model.safetensors", device="cpu")
    assert loaded.description == model.description
    forecasts = [m.forecast(data.x[:3, 0], members=4, progress=False) for m in (model, loaded)]
    np.testing.assert_array_equal(*(found.samples for found in forecasts))
    # Forecasts may start from fewer particles, and their order says nothing.
    fewer = model.forecast(data.x[:3, 0, :6], members=4, progress=False)
    assert np.isfinite(fewer.samples).all()
    found = evaluate(loaded, breathe(6, seed=1), progress=False)
    assert np.isfinite([found.rmse, found.crps, found.persistence.rmse]).all()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_such_particles(name, data):
    model = METHODS[name].fit(data, epochs=1, device="cpu", progress=False)
    y0 = data.y[:2, 0]
    assert np.isfinite(model.forecast(data.x[:2, 0], y0, members=2, progress=False).mean).all()


def test_the_types_alone_do_not_make_sets_of_various_sizes():
    kind = Particles(count=4, types=2, box=1.0, periodic=True)
    rng = np.random.default_rng(0)
    x = kind.encode(rng.uniform(size=(6, 5, 4, 2)), rng.integers(1, 3, (6, 5, 4)))
    data = Dataset(x, rng.normal(size=(6, 5)), microstate=kind)
    model = tampl.Tampl().fit(data, epochs=1, device="cpu", progress=False)
    assert model.spec.encoder.counts is None
