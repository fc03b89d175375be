"""The demo's outputs, on a recipe cut down to seconds."""

import json
from dataclasses import replace
from pathlib import Path

from tampl.lab.demo import run_demo
from tampl.lab.recipes import read_recipe
from tampl.systems import SIRS

MINI = Path(__file__).parents[2] / "recipes" / "sirs-mini.toml"


def tiny_recipe():
    recipe = read_recipe(MINI)
    return replace(
        recipe,
        system=SIRS(size=8, frames=6, clusters=(1, 2)),
        data=recipe.data.model_copy(update={"train": 4, "valid": 2, "test": 4, "members": 3}),
        training=recipe.training.model_copy(update={"epochs": 2}),
    )


def test_demo_writes_what_the_readme_promises(tmp_path):
    demo = run_demo(tmp_path, seed=3, recipe=tiny_recipe())
    scores = json.loads((tmp_path / "metrics.json").read_text())["scores"]
    baselines = {"mean_field", "pair", "mean_trajectory", "persistence", "floor"}
    assert scores.keys() == {"tampl+", "tampl", "jld", "vamp"} | baselines
    assert scores["vamp"]["mmd"] is None
    assert all(score["rmse"] > 0 for score in scores.values())
    assert scores["tampl"]["mmd"] > 0
    assert scores["tampl"]["rmse"] == demo.scores["tampl"].rmse
    assert demo.page == tmp_path / "report.html"


def test_demo_resumes(tmp_path):
    first = run_demo(tmp_path, recipe=tiny_recipe())
    again = run_demo(tmp_path, recipe=tiny_recipe())
    assert first.scores == again.scores
