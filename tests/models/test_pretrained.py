"""ImageNet weights: what is loaded, what is checked first, what is said where they are missing."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from tampl.data import Normalization, Statistics
from tampl.errors import InputError
from tampl.microstates import Image
from tampl.models import MacroModel, ModelSpec, Modules, load_model, pretrained
from tampl.models.encoders import ResNetEncoderSpec
from tampl.nn import ResNet
from tampl.seeding import ambient_seed
from tampl.systems import Polymer

KIND = Image(height=32, width=32)


@pytest.fixture(scope="module")
def published():
    """Tensors as in torchvision's file: three channels, a thousand classes."""
    with ambient_seed(0, "published"):
        tensors = dict(ResNet(1000).state_dict())
        del tensors["mean"]
        tensors["conv1.weight"] = torch.randn(64, 3, 7, 7)
        tensors["bn1.running_mean"] = torch.randn(64)
    return tensors


@pytest.fixture
def file(published, tmp_path, monkeypatch):
    path = tmp_path / "checkpoints" / Path(pretrained.URL).name
    path.parent.mkdir()
    torch.save(published, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(pretrained, "DIGEST", digest[:8])
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    return path


def build(weights):
    return ResNetEncoderSpec(name="resnet", weights=weights).build(KIND, 4)


@pytest.mark.parametrize("by_path", [True, False])
def test_weights_are_the_files_with_the_stem_summed_and_a_new_last_layer(file, published, by_path):
    with ambient_seed(1, "weights"):
        fresh = build("none")
    with ambient_seed(1, "weights"):
        loaded = build(str(file) if by_path else "imagenet")
    state = loaded.state_dict()
    for name, value in published.items():
        if name == "conv1.weight":
            assert torch.equal(state[name], value.sum(dim=1, keepdim=True))
        elif not name.startswith("fc."):
            assert torch.equal(state[name], value), name
    assert (fresh.mean.item(), loaded.mean.item()) == (0, pytest.approx(0.449))
    assert torch.equal(loaded.fc.weight, fresh.fc.weight) and loaded.fc.weight.shape == (4, 512)


def test_another_file_is_refused_before_it_is_read(file, monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("the file was read"))
    file.write_bytes(file.read_bytes() + b"!")
    for weights in (str(file), "imagenet"):
        with pytest.raises(InputError, match=r"begins with \w{8}, not with .*; get https.* again"):
            build(weights)


def test_a_path_that_is_none(tmp_path):
    with pytest.raises(InputError, match=r"`weights` is '.*nowhere.pth', and no such file exists"):
        build(str(tmp_path / "nowhere.pth"))


def test_no_network(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("name resolution failed")

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", fail)
    with pytest.raises(InputError, match=r"could not be had from https.*resolution.*weights = "):
        build("imagenet")


def test_a_saved_model_needs_no_published_weights(file, tmp_path):
    spec = ModelSpec.model_validate(
        {
            "latent_dim": 4,
            "encoder": {"name": "resnet", "weights": str(file)},
            "transition": {"name": "linear"},
        }
    )
    system = Polymer(beads=6, interval=0.05, frames=2, height=8, width=8, regimes=False)
    modules = Modules.build(spec, system.description)
    statistics = Normalization(np.zeros(1), np.ones(1))
    model = MacroModel(
        system.description, statistics=Statistics(statistics), modules=modules
    ).eval()
    model.save(tmp_path / "model.safetensors")
    file.unlink()
    again = load_model(tmp_path / "model.safetensors")
    assert again.spec == spec
    x = torch.from_numpy(system.initial(np.random.default_rng(0)).microstate[None])
    assert torch.equal(again.encode(x), model.encode(x))
