"""Small inputs and long horizons do not take all memory, and absurd numbers are one line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from command import call
from tampl.errors import InputError
from tampl.lab.recipes import Axis, parse_setting, read_recipe
from tampl.models import load_model
from tampl.models.checkpoint import load_tensors, save_tensors
from tampl.models.model import FORMAT
from tampl.models.rollout import STEPS, Sizes, draw_noise

TINY = Path(__file__).parents[1] / "tiny.toml"
MODEL = Path(__file__).parent / "kept" / "model-2.safetensors"
STATES = np.pad(np.ones((8, 1, 1), np.uint8), ((0, 0), (1, 2), (1, 2)))

MEASURE = """
import resource, sys
import numpy as np
from tampl.models import load_model

def forecast(horizon):
    states = np.pad(np.ones((8, 1, 1), np.uint8), ((0, 0), (1, 2), (1, 2)))
    made = model.forecast(states, horizon=horizon, members=1024, keep="moments", progress=False)
    assert made.mean.shape == (8, horizon + 1, 3)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

model = load_model(sys.argv[1], device="cpu")
before = forecast(32)
print(1024 * (forecast(500) - before))
"""


@pytest.mark.parametrize("value", [10**9, 10**12, 10**30])
@pytest.mark.parametrize(
    "key",
    [
        *("training.epochs", "training.validation_members", "training.save_every"),
        *("model.latent_dim", "model.transition.steps", "model.transition.frequencies"),
    ],
)
def test_absurd_counts_are_refused_where_they_are_read(key, value):
    recipe = read_recipe(TINY)
    with pytest.raises(InputError, match=rf"`{key}` is 10+: input should be less"):
        recipe.with_value(key, value)


@pytest.mark.parametrize("widths", [[10**12], [4, 10**7], [4] * 5000])
def test_absurd_widths_are_refused_where_they_are_read(widths):
    for key in ("model.encoder.widths", "model.encoder.hidden", "model.transition.hidden"):
        with pytest.raises(InputError, match=rf"`{key}"):
            read_recipe(TINY).with_value(key, widths)


def test_a_batch_may_be_larger_than_the_data_within_reason():
    recipe = read_recipe(TINY)
    assert recipe.with_value("training.batch_size", 10**9).training.batch_size == 10**9
    with pytest.raises(InputError, match=r"`training\.batch_size`"):
        recipe.with_value("training.batch_size", 10**30)


@pytest.mark.parametrize("values", ["9" * 5000, "[" * 3000, "[" * 200 + "]" * 200, "1e999", "{"])
def test_absurd_settings_of_a_sweep_are_one_line(values):
    with pytest.raises(InputError) as caught:
        key, found = parse_setting(f"training.epochs={values}")
        Axis.find(read_recipe(TINY), "tampl", key, values=found)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("transition", "steps", 10**9),
        ("transition", "hidden", [10**12]),
        ("encoder", "widths", [4] * 5000),
    ],
)
def test_an_absurd_model_is_refused_before_it_is_built(tmp_path, part, key, value):
    tensors, header = load_tensors(MODEL, FORMAT)
    header["spec"][part][key] = value
    save_tensors(tmp_path / "model.safetensors", tensors, header)
    with pytest.raises(InputError, match=rf"`spec.*{key}|`{part}\.{key}"):
        load_model(tmp_path / "model.safetensors", device="cpu")


@pytest.mark.parametrize("options", [{"horizon": 10**30}, {"members": 10**12, "horizon": 2}])
def test_absurd_forecasts_are_refused(options):
    model = load_model(MODEL, device="cpu")
    with pytest.raises(InputError, match=r"must be an integer .* at most 1,000,000,000"):
        model.forecast(STATES, **options)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"
        ),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
    ],
)
def test_memory_that_is_not_there_is_one_line(monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("tampl.lab.recipes.read_recipe", fail)
    call("simulate", TINY, "--out", "nowhere").refused("needs more memory than there is")


def test_other_errors_of_torch_are_not_hidden(monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("tampl.lab.recipes.read_recipe", fail)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        call("simulate", TINY, "--out", "nowhere")


def test_noise_is_drawn_block_by_block_whatever_the_horizon():
    sizes = {n: Sizes(states=3, members=5, horizon=n, observables=2) for n in (STEPS + 3, 10**12)}
    short, long = (draw_noise(s, 4, seed=1, states=slice(1, 3)) for s in sizes.values())
    for steps in (STEPS, 3):
        one, other = next(short), next(long)
        assert one.shape == (steps, 2 * 5, 4) and other.shape == (STEPS, 2 * 5, 4)
        assert torch.equal(one, other[:steps])


def test_moments_are_those_of_the_members():
    model = load_model(MODEL, device="cpu")
    options = {"horizon": 2 * STEPS + 5, "members": 6, "seed": 3, "progress": False}
    samples = model.forecast(STATES, **options)
    moments = model.forecast(STATES, keep="moments", **options)
    np.testing.assert_allclose(moments.mean, samples.samples.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(moments.std, samples.samples.std(axis=1, ddof=1), atol=1e-12)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux counts it")
def test_the_memory_of_moments_does_not_grow_with_the_horizon():
    """The members alone would be 98 MB, the noise of the whole horizon another 49 MB."""
    command = [sys.executable, "-c", MEASURE, str(MODEL)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert json.loads(done.stdout) < 16e6
