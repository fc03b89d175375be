"""Trials: their settings reach the recipe, and members that run away are counted."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.lab.recipes import read_recipe

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trials():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield importlib.import_module("trials")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks" / "trials").glob("*.toml")), ids=lambda path: path.stem
)
def test_a_kept_list_changes_its_recipe(trials, path):
    recipes = sorted((ROOT / "recipes").glob("*.toml"))
    named = [each for each in recipes if path.stem.startswith(each.stem)]
    recipe = read_recipe(max(named, key=lambda each: len(each.stem)))
    listed = trials.read_trials(path)
    changed = [trial.resolve(recipe) for trial in listed]
    assert all(each.data == recipe.data for each in changed)
    # What was best may be the recipe by now.
    assert any(
        each != recipe.of(trial.method) for trial, each in zip(listed, changed, strict=True)
    )


def test_a_name_given_twice_is_refused(trials, tmp_path):
    (tmp_path / "twice.toml").write_text('[[trial]]\nname = "a"\n[[trial]]\nname = "a"\n')
    with pytest.raises(InputError, match="twice"):
        trials.read_trials(tmp_path / "twice.toml")


def test_members_beyond_the_doubled_range_have_run_away(trials):
    truth = SimpleNamespace(x=np.zeros((2, 1)), y=np.zeros((2, 2, 9, 1)))
    truth.y[0, 0, :, 0] = np.linspace(-1, 1, 9)
    samples = np.zeros((2, 2, 9, 1))
    samples[0, 1, 3:, 0] = 3.5  # the range is [-1, 1]; everything up to 3 is near it
    samples[1, 0, 8, 0] = np.nan
    model = SimpleNamespace(
        stochastic=True, forecast=lambda *_, **__: SimpleNamespace(samples=samples)
    )
    found = trials.find_runaways(model, truth)
    assert found == {"members_by_quarter": [0.0, 0.25, 0.25, 0.5], "states": 2}
