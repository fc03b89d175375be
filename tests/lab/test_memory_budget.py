"""`tampl train --memory`: the same model from disk, within the budget, or one line beforehand."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command import call
from tampl.data import DataPlan
from tampl.data.manifest import Manifest, Split
from tampl.data.shards import encode_labels, write_shard
from tampl.data.store import write_manifest
from tampl.description import Description, Observable
from tampl.lab import pipeline
from tampl.lab.recipes import read_recipe
from tampl.microstates import Image

TINY = Path(__file__).parents[1] / "tiny.toml"

PEAK = """
import json, sys
from pathlib import Path

from tampl.data import Store
from tampl.methods import Tampl
from tampl.methods.base import make_trainer
from tampl.models import ModelSpec
from tampl.models.encoders import ResNetEncoderSpec
from tampl.models.readouts import MLPReadoutSpec
from tampl.models.transitions import LinearTransitionSpec
from tampl.training import TrainingSpec, frames

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

frames.BLOCK_BYTES = 2**19
data, grown = Store.open(sys.argv[1]).dataset("train", memory=0), {}
encoder = ResNetEncoderSpec(name="resnet", weights="none", widths=(2, 2, 2, 2), blocks=(1,) * 4)
architecture = ModelSpec(
    latent_dim=2,
    encoder=encoder,
    transition=LinearTransitionSpec(name="linear"),
    readout=MLPReadoutSpec(name="mlp", hidden=(4,)),
)

def train(data, order):
    training = TrainingSpec(epochs=1, batch_size=8, order=order)
    make_trainer(Tampl(), data, architecture=architecture, training=training).run_epoch()

train(data.select(slice(0, 4)), "random")  # what libraries take when they are first used
for order in ("random", "blocks"):
    before = peak()
    train(data, order)
    grown[order] = peak() - before
print(json.dumps({"grown": grown, "bytes": data.x.nbytes}))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return pipeline.simulate(read_recipe(TINY), tmp_path_factory.mktemp("data") / "store")


def test_the_budget_changes_no_weight(store, tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "BUFFERS", 0)
    options = ("--data", store.path, "--method", "tampl")
    whole = call("train", TINY, *options, "--out", tmp_path / "whole")
    size = 6 * 6 * 64  # bytes of the microstates of six trajectories
    budget = (size + 6 * 6 * (12 * 3 + 4 * 3 + 40) - 1) / 2**30
    parts = call(
        "train", TINY, *options, "--out", tmp_path / "parts", "--memory", f"{budget:.12f}"
    )
    assert whole.code == parts.code == 0
    assert "stay on disk" not in whole.err
    assert "stay on disk" in parts.err
    one, other = (tmp_path / name / "best.safetensors" for name in ("whole", "parts"))
    assert one.read_bytes() == other.read_bytes()


def test_what_does_not_fit_is_one_line_before_it_starts(store, tmp_path):
    run = tmp_path / "run"
    outcome = call("train", TINY, "--data", store.path, "--out", run, "--memory", "1e-6")
    outcome.refused("36 frames", "`memory` is 0.00 GiB", "allow more")
    assert not run.exists()


@pytest.fixture
def pictures(tmp_path):
    """A store of 105 MB of pictures; all shards hold the same ones."""
    description = Description(
        system="pictures",
        parameters={},
        microstate=Image(height=256, width=256),
        observables=(Observable(name="brightness", symbol="B"),),
        interval=1.0,
        frames=20,
    )
    plan = DataPlan(train=80, valid=1, test=2, members=1, shard_size=4)
    shards = tuple(shard for shard in plan.shards(description) if shard.split == "train")
    manifest = Manifest(
        description=description,
        seed=0,
        kernel="none",
        code_version="0",
        splits={"train": Split(count=80)},
        shards=shards,
    )
    (tmp_path / "shards").mkdir()
    write_manifest(tmp_path, manifest)
    x = np.random.default_rng(0).integers(0, 256, (4, 20, 256, 256), dtype=np.uint8)
    arrays = {
        "microstates": x,
        "macrostates": x.mean(axis=(2, 3))[..., None],
        "labels": encode_labels([""] * 4),
    }
    for shard in shards:
        write_shard(tmp_path / shard.file, arrays, manifest=manifest, shard=shard)
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_an_epoch_from_disk_takes_little_memory(pictures):
    done = subprocess.run(
        [sys.executable, "-c", PEAK, pictures], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["bytes"] > 100e6
    assert max(found["grown"].values()) < 0.4 * found["bytes"], found
