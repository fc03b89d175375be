"""A package from outside brings a kind, an encoder, a method and a system: the whole way."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tampl
from tampl.errors import InputError
from tampl.methods import METHODS, find_method, register_method
from tampl.microstates import KINDS, find_kind, register_microstate
from tampl.models import register_encoder
from tampl.models.encoders import ENCODERS
from tampl.plugins import find_entry, register_entry
from tampl.systems import SYSTEMS, find_system_class, register_system

HERE = Path(__file__).parent
ENTRY_POINTS = """\
[tampl.microstates]
ring = toy_tampl:Ring
[tampl.encoders]
ring-encoder = toy_tampl:RingEncoderSpec
broken = toy_tampl:Nothing
[tampl.methods]
detached = toy_tampl:Detached
[tampl.systems]
rotors = toy_tampl:Rotors
"""
RECIPE = """\
[system]
name = "rotors"
size = 8
frames = 5
[data]
train = 8
valid = 2
test = 3
members = 4
[model]
latent_dim = 3
[model.encoder]
name = "ring-encoder"
width = 6
[model.transition]
name = "flow"
hidden = [16]
steps = 2
[training]
epochs = 2
batch_size = 8
[methods.detached]
weight = 0.2
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder of packages with the toy in it, as an installer would leave it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(HERE / "toy_tampl.py", folder)
    info = folder / "toy_tampl-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-tampl\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def command(installed, folder, *arguments):
    """The command line in a new process, which knows of the toy by its entry points alone."""
    code = "import torch; torch.set_num_threads(1); from tampl.lab.cli import main; main()"
    paths = [str(installed), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_an_installed_plugin_goes_the_whole_way_on_the_command_line(installed, tmp_path):
    (tmp_path / "mine.toml").write_text(RECIPE)
    compared = command(
        *(installed, tmp_path, "compare", "mine.toml", "--out", "out"),
        *("--methods", "tampl,detached", "--json"),
    )
    assert compared.returncode == 0, compared.stderr
    assert {"tampl", "detached"} <= json.loads(compared.stdout)["scores"].keys()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Detached" in page
    np.save(tmp_path / "x0.npy", np.zeros(8, np.float32))
    run = tmp_path / "out" / "runs" / "detached-42"
    options = ("--initial", "x0.npy", "--horizon", "3", "--out", "y.npz", "--json")
    ahead = command(installed, tmp_path, "forecast", run, *options)
    assert ahead.returncode == 0, ahead.stderr
    assert json.loads(ahead.stdout)["final"].keys() == {"m"}


def test_an_unknown_name_lists_the_plugins_and_a_broken_one_is_named(installed, tmp_path):
    for name, words in (("rings", "ring-encoder"), ("broken", "could not be loaded")):
        (tmp_path / "mine.toml").write_text(RECIPE.replace('"ring-encoder"', f'"{name}"'))
        done = command(installed, tmp_path, "simulate", "mine.toml", "--out", "data")
        assert done.returncode == 2 and words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


@pytest.fixture
def toy(monkeypatch):
    """The toy as a module, registered in Python, and everything left as it was."""
    monkeypatch.syspath_prepend(HERE)
    for registry in (KINDS, ENCODERS, METHODS, SYSTEMS):
        for name in ("ring", "ring-encoder", "detached", "rotors"):
            monkeypatch.delitem(registry, name, raising=False)
    import toy_tampl

    register_microstate("ring", toy_tampl.Ring)
    register_encoder("ring-encoder", toy_tampl.RingEncoderSpec)
    register_method("detached", toy_tampl.Detached())
    register_system("rotors", toy_tampl.Rotors)
    yield toy_tampl
    for registry, name in (
        *((KINDS, "ring"), (ENCODERS, "ring-encoder")),
        *((METHODS, "detached"), (SYSTEMS, "rotors")),
    ):
        registry.pop(name, None)


def test_what_is_registered_fits_saves_loads_and_forecasts(toy, tmp_path):
    system = toy.Rotors(size=8)
    x0 = np.stack([system.initial(np.random.default_rng(n)).microstate for n in range(12)])
    made = system.simulate_from(x0, seed=1)
    data = tampl.Dataset(made.microstates, made.macrostates, microstate=toy.Ring(size=8))
    with pytest.raises(InputError, match="kind 'ring' have no default"):
        tampl.TamplPlus().fit(data, epochs=1)
    model = toy.Detached(latent_dim=3).fit(
        data, encoder="ring-encoder", epochs=2, progress=False, device="cpu"
    )
    model.save(tmp_path / "model.safetensors")
    again = tampl.load(tmp_path / "model.safetensors")
    ours, theirs = (m.forecast(x0[0], members=2, progress=False).samples for m in (model, again))
    np.testing.assert_array_equal(ours, theirs)
    assert find_kind("ring") is toy.Ring and find_system_class("rotors") is toy.Rotors
    assert find_method("detached").title == "Detached"


def test_a_name_is_the_one_that_models_will_keep(toy):
    with pytest.raises(InputError, match="the encoder calls itself 'ring-encoder'"):
        register_encoder("rings", toy.RingEncoderSpec)
    with pytest.raises(InputError, match="the kind of microstate calls itself 'ring'"):
        register_microstate("loop", toy.Ring)


def test_names_are_taken_once():
    entries = {"a": 1}
    register_entry(entries, "a", 1, what="thing")
    with pytest.raises(InputError, match="another thing has"):
        register_entry(entries, "a", 2, what="thing")
    with pytest.raises(InputError, match="without blanks"):
        register_entry(entries, " b", 2, what="thing")
    with pytest.raises(InputError, match=r"`name` is \['a'\]; choose one of a"):
        find_entry(entries, ["a"], group="tampl.nothing", key="name")
