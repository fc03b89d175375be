"""TAMPL learns a system whose forecast is known in closed form.

A damped rotation c_{t+1} = r e^{i w} c_t + sigma xi_t, seen as (q, p) = (Re c, Im c) among idle
coordinates; the macrostate is q alone. From c_0 the mean of q_t is Re(r^t e^{i w t} c_0) and its
variance sigma^2 (1 - r^{2t}) / (1 - r^2).
"""

import numpy as np
import pytest
import torch

from tampl.data import Dataset
from tampl.description import Description, Observable
from tampl.methods import Tampl
from tampl.microstates import Vector
from tampl.models import MacroModel, ModelSpec
from tampl.seeding import ambient_seed
from tampl.training import Trainer, TrainingSpec
from tampl.training.frames import Frames

SIZE, FRAMES = 6, 16
DECAY, ANGLE, SIGMA = 0.98, 0.3, 0.1
DESCRIPTION = Description(
    system="rotation",
    parameters={},
    microstate=Vector(size=SIZE),
    observables=(Observable(name="position", symbol="q"),),
    interval=1.0,
    frames=FRAMES,
)
SPEC = ModelSpec.model_validate(
    {
        "latent_dim": 3,
        "encoder": {"name": "linear"},
        "transition": {"name": "flow", "hidden": [96, 96], "steps": 6},
        "readout": {"name": "mlp", "hidden": [32]},
    }
)
OPTIMISER = {"learning_rate": 6e-3, "average": 0.99}
TRAINING = TrainingSpec.model_validate(
    {"epochs": 25, "batch_size": 64, "representation": {"learning_rate": 6e-3}}
    | {"transition": OPTIMISER}
)


def simulate(runs, generator):
    normal = lambda *shape: generator.normal(size=shape) + 1j * generator.normal(size=shape)
    c = np.empty((runs, FRAMES), complex)
    c[:, 0] = normal(runs)
    for t in range(1, FRAMES):
        c[:, t] = DECAY * np.exp(1j * ANGLE) * c[:, t - 1] + SIGMA * normal(runs)
    idle = generator.normal(size=(runs, FRAMES, SIZE - 2))
    x = np.concatenate([c.real[..., None], c.imag[..., None], idle], axis=-1)
    y, labels = c.real[..., None].copy(), np.array(["rotation"] * runs)
    return Dataset.described(DESCRIPTION, x, y, labels)


@pytest.fixture(scope="module")
def model():
    data = simulate(150, np.random.default_rng(0))
    statistics = data.statistics
    frames = Frames.load(data, statistics)
    method = Tampl()
    with ambient_seed(0):
        modules = method.modules(SPEC, DESCRIPTION)
    trainer = Trainer(method.turns(TRAINING), modules, frames=frames, training=TRAINING)
    records = [trainer.run_epoch() for _ in range(TRAINING.epochs)]
    assert records[-1].latent.std_min > 0.1, "the latent scale collapsed"
    return MacroModel(DESCRIPTION, statistics=statistics, modules=trainer.averaged())


@pytest.mark.slow
def test_mean_and_spread_are_those_of_the_closed_form(model):
    starts = np.exp(1j * np.linspace(0, 2 * np.pi, 8, endpoint=False)) * 1.5
    x = np.zeros((8, SIZE))
    x[:, 0], x[:, 1] = starts.real, starts.imag
    ahead = model.forecast(x, horizon=FRAMES - 1, members=200, progress=False)
    t = np.arange(FRAMES)
    mean = (starts[:, None] * (DECAY * np.exp(1j * ANGLE)) ** t).real
    std = SIGMA * np.sqrt((1 - DECAY ** (2 * t)) / (1 - DECAY**2))
    error = ahead.mean[..., 0] - mean
    assert np.sqrt((error**2).mean()) < 0.15 * np.sqrt((mean**2).mean())
    ratio = ahead.std[:, 5:, 0].mean(axis=0) / std[5:]
    assert np.all((0.7 < ratio) & (ratio < 1.5)), ratio


@pytest.mark.slow
def test_the_hidden_coordinate_is_in_the_latent_state(model):
    """q alone does not tell where the rotation goes: (0, p) and (0, -p) must part."""
    x = np.zeros((2, SIZE))
    x[:, 1] = 1.5, -1.5
    ahead = model.forecast(x, horizon=5, members=100, progress=False).mean[:, 5, 0]
    expected = 1.5 * DECAY**5 * np.sin(5 * ANGLE)
    assert ahead == pytest.approx([-expected, expected], abs=0.3)


def test_torch_is_left_alone():
    """Building modules with a seed does not touch the global generator."""
    state = torch.random.get_rng_state()
    with ambient_seed(3):
        Tampl().modules(SPEC, DESCRIPTION)
    assert torch.equal(state, torch.random.get_rng_state())
