"""What an epoch costs: counted arithmetic and measured times agree with what is known."""

from pathlib import Path

import pytest

from command import call
from tampl.lab.pipeline import simulate
from tampl.lab.profile import profile_training
from tampl.lab.recipes import read_recipe

TINY = Path(__file__).parents[1] / "tiny.toml"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return simulate(read_recipe(TINY), tmp_path_factory.mktemp("profile") / "data")


def test_arithmetic_of_a_macro_only_pass_is_that_of_its_layers(store):
    """Forward and both gradients of every layer but the first, whose input has none."""
    recipe = read_recipe(TINY)
    found = profile_training(recipe, store.path, method="macro-only").stages["transition"]
    (hidden,), features = recipe.model.transition.hidden, 2 * recipe.model.transition.frequencies
    inputs = 2 * 3 + features
    layers = [2 * inputs * hidden, 2 * hidden * 3]
    pairs = 6 * 5
    expected = pairs * (2 * layers[0] + 3 * layers[1])
    assert found.operations == pytest.approx(expected, rel=0.05)


def test_numbers_hang_together(store):
    found = profile_training(read_recipe(TINY), store.path)
    assert set(found.stages) == {"representation", "transition"}
    assert found.epoch_s == pytest.approx(sum(stage.seconds for stage in found.stages.values()))
    assert 0 < found.fraction < 1 and found.matrix_rate > 1e9
    assert 0 < sum(found.hottest.values()) <= 1


def test_command_line_saves_nothing(store, tmp_path):
    out = tmp_path / "run"
    shown = call("train", TINY, "--data", store.path, "--out", out, "--profile", "--json")
    assert shown.code == 0 and shown.json["stages"]["transition"]["pairs_per_second"] > 0
    assert shown.json["provenance"]["device"] == "cpu"
    assert not out.exists()
