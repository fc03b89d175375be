"""What an epoch costs: counted arithmetic and measured times agree with what is known."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from tampl.lab.pipeline import simulate
from tampl.lab.recipes import read_recipe

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "tiny.toml"


@pytest.fixture(scope="module")
def script():
    path = ROOT / "benchmarks" / "profile_training.py"
    spec = importlib.util.spec_from_file_location("profile_training", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return simulate(read_recipe(TINY), tmp_path_factory.mktemp("profile") / "data")


def test_arithmetic_of_a_macro_only_pass_is_that_of_its_layers(script, store):
    """Forward and both gradients of every layer but the first, whose input has none."""
    recipe = read_recipe(TINY)
    profile = script.profile_training(recipe, store.path, method="macro-only", device="cpu")
    (hidden,), features = recipe.model.transition.hidden, 2 * recipe.model.transition.frequencies
    inputs = 2 * 3 + features
    layers = [2 * inputs * hidden, 2 * hidden * 3]
    pairs = 6 * 5
    expected = pairs * (2 * layers[0] + 3 * layers[1])
    assert profile.stages["transition"].operations == pytest.approx(expected, rel=0.05)


def test_the_script_prints_numbers_that_hang_together(script, store, monkeypatch, capsys):
    command = ["profile_training.py", str(TINY), "--data", str(store.path), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    script.main()
    found = json.loads(capsys.readouterr().out)
    assert set(found["stages"]) == {"representation", "transition"}
    seconds = [stage["seconds"] for stage in found["stages"].values()]
    assert found["epoch_s"] == pytest.approx(sum(seconds))
    assert found["stages"]["transition"]["pairs_per_second"] > 0
    assert 0 < found["fraction"] < 1 and found["matrix_rate"] > 1e9
    assert 0 < sum(found["hottest"].values()) <= 1
    assert found["provenance"]["device"] == "cpu"
