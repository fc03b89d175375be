"""The command line end to end on a tiny box of particles, and other numbers of them."""

from pathlib import Path

import numpy as np
import pytest

from command import call
from tampl.data import Store
from tampl.forecast import Forecast
from tampl.lab.pipeline import data_facts
from tampl.lab.runs import Run
from tampl.microstates import Particles

RECIPE = Path(__file__).parents[2] / "tiny_mixing.toml"
METHODS = ("tampl", "macro-only")
GAS = Particles(count=24, types=2, box=8.0)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("particles")


@pytest.fixture(scope="module")
def data(home):
    assert call("simulate", RECIPE, "--out", home / "data").code == 0
    return home / "data"


@pytest.fixture(scope="module")
def runs(home, data):
    made = {}
    for method in METHODS:
        made[method] = home / method
        options = ("--data", data, "--method", method, "--out", made[method])
        assert call("train", RECIPE, *options).code == 0
    return made


def gas(count, seed=0):
    """A random microstate of `count` particles in the box of the recipe."""
    generator = np.random.default_rng(seed)
    return GAS.encode(generator.uniform(0, 8, (count, 2)), generator.integers(1, 3, count))


def forecast(run, microstates, folder):
    np.save(folder / "x.npy", microstates)
    options = ("--initial", folder / "x.npy", "--horizon", 3, "--samples", 2, "--seed", 1)
    outcome = call("forecast", run, *options, "--out", folder / "y.npz")
    assert outcome.code == 0, outcome
    return Forecast.load(folder / "y.npz").samples


def test_a_run_knows_how_many_runs_its_data_have(data, runs):
    facts = {"seed": 0, "train": 4, "valid": 2, "test": 4, "members": 3, "train_runs": 2}
    assert data_facts(Store.open(data)) == facts
    assert Run.open(runs["tampl"]).recipe["data"] == facts


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [5, 24, 40])
def test_forecasts_start_from_any_number_of_particles(runs, method, count, tmp_path):
    microstates = np.stack([gas(count, seed) for seed in range(3)])
    samples = forecast(runs[method], microstates, tmp_path)
    assert samples.shape == (3, 2, 4, 2) and np.isfinite(samples).all()
    first = forecast(runs[method], microstates[0], tmp_path)
    np.testing.assert_allclose(first[0], samples[0], rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_neither_order_nor_empty_rows_count(runs, method, tmp_path):
    x = gas(10)
    padded = np.concatenate([x[::-1], np.zeros((3, 3), np.uint16)])
    one, other = (forecast(runs[method], microstate, tmp_path) for microstate in (x, padded))
    np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.parametrize(
    ("microstate", "words"),
    [
        (np.full((4, 3), np.nan), "must be integers"),
        (np.ones((4, 3)), "Particles.encode"),
        (gas(4)[:, :2], "shape"),
        (np.zeros((4, 3), np.uint16), "without particles"),
        (np.full((4, 3), 3, np.uint16), "particle of type 3"),
    ],
)
def test_a_forecast_refuses_what_is_no_microstate(runs, microstate, words, tmp_path):
    np.save(tmp_path / "x.npy", microstate)
    options = ("--initial", tmp_path / "x.npy", "--horizon", 3, "--out", tmp_path / "y.npz")
    call("forecast", runs["tampl"], *options).refused("x.npy", words)


def test_a_comparison_has_its_pictures(data, tmp_path):
    options = ("--methods", "tampl", "--seeds", "42", "--data", data, "--out", tmp_path)
    outcome = call("compare", RECIPE, *options)
    assert outcome.code == 0, outcome
    drawn = {path.stem for path in tmp_path.rglob("*.png")}
    assert drawn >= {"predictions", "comparison", "latent-scales"}  # and no pair that parts
