"""`tampl train` and `fit` are the same calls: the same weights from the same seed, to the byte."""

from pathlib import Path

import pytest
import torch

from command import call
from tampl.data import Store
from tampl.lab.recipes import read_recipe
from tampl.models import load_model

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("recipe", ["tiny.toml", "tiny_mixing.toml"])
@pytest.mark.parametrize("method", ["tampl", "tampl+", "vamp"])
def test_the_command_line_and_a_notebook_give_the_same_weights(recipe, method, tmp_path):
    path, data, out = TESTS / recipe, tmp_path / "data", tmp_path / "run"
    assert call("simulate", path, "--out", data).code == 0
    options = ("--data", data, "--out", out, "--method", method, "--device", "cpu")
    assert call("train", path, *options).code == 0
    said, store = read_recipe(path), Store.open(data)
    model = said.method(method).fit(
        store.dataset("train"),
        store.dataset("valid"),
        architecture=said.model,
        training=said.training,
        device="cpu",
        progress=False,
    )
    kept = load_model(out / "best.safetensors", device="cpu").state_dict()
    ours = model.state_dict()
    assert ours.keys() == kept.keys()
    for name, value in ours.items():
        assert torch.equal(value, kept[name]), name
