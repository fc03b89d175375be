"""The Chapman-Kolmogorov test on a process whose transition is known exactly."""

import numpy as np
import pytest
import torch

from tampl.data import Dataset
from tampl.errors import InputError
from tampl.evaluation import MarkovTest, chapman_kolmogorov
from tampl.microstates import Vector
from tampl.models import MacroModel, ModelSpec, Modules, Transition

PHI, SIGMA = 0.8, 0.6


class Autoregression(Transition):
    """The law of an AR(1) process itself, in standardised units."""

    noise_dim = 1

    def __init__(self, phi, sigma):
        super().__init__()
        self.phi = torch.nn.Parameter(torch.tensor(phi))
        self.sigma = sigma

    def loss(self, z, z_next, noise):
        raise NotImplementedError

    def spread(self, z):
        raise NotImplementedError

    def draw(self, count, generator):
        raise NotImplementedError

    def forward(self, z, noise):
        return self.phi * z + self.sigma * noise


def make_walks(count, frames, *, seed, memory=0.0):
    """AR(1) processes; with `memory` their noise has a memory, so that x alone is no state."""
    generator = np.random.default_rng(seed)
    x, noise = np.zeros((count, frames)), np.zeros(count)
    x[:, 0] = generator.normal(size=count) * SIGMA / np.sqrt(1 - PHI**2)
    for t in range(1, frames):
        fresh = generator.normal(size=count)
        noise = memory * noise + np.sqrt(1 - memory**2) * fresh
        x[:, t] = PHI * x[:, t - 1] + SIGMA * noise
    return Dataset(x[..., None], x, observables=["x"], microstate=Vector(size=1))


def make_model(data, *, phi=PHI, sigma=SIGMA):
    spec = ModelSpec.model_validate(
        {"latent_dim": 1, "encoder": {"name": "mlp"}, "transition": {"name": "flow"}}
    )
    statistics = data.statistics
    scale = statistics.x.std[0]
    modules = Modules(
        spec,
        encoder=torch.nn.Identity(),
        transition=Autoregression(phi, sigma / scale),
        readout=torch.nn.Identity(),
    )
    return MacroModel(data.description, statistics=statistics, modules=modules)


@pytest.fixture(scope="module")
def walks():
    return make_walks(400, 33, seed=0)


def test_the_true_transition_passes(walks):
    found = chapman_kolmogorov(make_model(walks), walks, members=64)
    assert found.steps == (1, 2, 4, 8, 16) and found.starts == 256
    # 256 starts: a standard deviation of 0.025.
    np.testing.assert_allclose(found.latent, 0.8, atol=0.08)
    np.testing.assert_allclose(found.observables[:, 0], found.latent, atol=1e-6)
    np.testing.assert_allclose(found.spread_to_error, 1, atol=0.15)


def test_a_transition_that_is_too_narrow_fails_at_once(walks):
    found = chapman_kolmogorov(make_model(walks, sigma=SIGMA / 3), walks, members=64)
    assert found.latent[0] < 0.5 and found.spread_to_error[0] == pytest.approx(1 / 3, abs=0.06)


def test_a_state_that_forgets_is_found_at_later_steps():
    data = make_walks(400, 33, seed=1, memory=0.9)
    # The one-step law of x alone is right in its width; its repetition is not.
    x = data.y[..., 0]
    phi = (x[:, :-1] * x[:, 1:]).sum() / (x[:, :-1] ** 2).sum()
    sigma = (x[:, 1:] - phi * x[:, :-1]).std()
    found = chapman_kolmogorov(make_model(data, phi=float(phi), sigma=sigma), data, members=64)
    assert found.latent[0] == pytest.approx(0.8, abs=0.08)
    assert found.latent[1:4].min() < 0.65


def test_the_result_is_plain_data_and_back(walks):
    found = chapman_kolmogorov(make_model(walks), walks, steps=[3, 1], members=8)
    assert found.steps == (1, 3)
    assert MarkovTest.from_dict(found.as_dict()).as_dict() == found.as_dict()
    assert "by number of steps, 1:" in str(found)


def test_a_deterministic_model_has_no_spread(walks):
    model = make_model(walks)
    model.transition.noise_dim = 0
    assert chapman_kolmogorov(model, walks) is None


@pytest.mark.parametrize("steps", [[], [0, 1], [33]])
def test_impossible_steps_are_refused(walks, steps):
    with pytest.raises(InputError, match="`steps`"):
        chapman_kolmogorov(make_model(walks), walks, steps=steps)
