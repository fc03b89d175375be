"""A recipe whose model steps two frames at once, from the data to a scored run."""

import json
from pathlib import Path

from command import call
from tampl.data import Store
from tampl.models import load_model

TINY = Path(__file__).parents[1] / "tiny.toml"


def test_a_lag_goes_through_all_verbs(tmp_path):
    recipe, data, run = tmp_path / "lag.toml", tmp_path / "data", tmp_path / "run"
    recipe.write_text(TINY.read_text().replace("[training]", "[training]\nlag = 2"))
    assert call("simulate", recipe, "--out", data).code == 0
    assert call("train", recipe, "--data", data, "--out", run, "--device", "cpu").code == 0
    assert call("evaluate", run, "--data", data, "--device", "cpu").code == 0
    store, model = Store.open(data), load_model(run / "best.safetensors", device="cpu")
    assert model.description.interval == 2 * store.description.interval
    assert model.description.frames == (store.description.frames - 1) // 2 + 1
    scores = json.loads((run / "evaluation.json").read_text())["scores"]
    assert {"tampl", "floor", "mean_trajectory", "pair"} <= scores.keys()


def test_a_lag_that_no_trajectory_holds_is_one_line(tmp_path):
    recipe, data = tmp_path / "lag.toml", tmp_path / "data"
    recipe.write_text(TINY.read_text().replace("[training]", "[training]\nlag = 200"))
    assert call("simulate", recipe, "--out", data).code == 0
    found = call("train", recipe, "--data", data, "--out", tmp_path / "run", "--device", "cpu")
    assert found.code == 2 and "`lag` is 200" in found.err.splitlines()[-1]
    assert "Traceback" not in found.err
