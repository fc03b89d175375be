"""Options and the model that the tests of several layers share."""

import os

import numpy as np
import pytest
import torch
from hypothesis import settings

from tampl.data import Normalization, Statistics
from tampl.methods import METHODS, TamplPlus
from tampl.methods.tampl import MapFit, Refit
from tampl.models import MacroModel, ModelSpec, Modules
from tampl.seeding import ambient_seed, numpy_generator
from tampl.systems import SIRS
from workbench import SPEC, Workbench

torch.set_num_threads(1)

# The refit of TAMPL+ and its map have hundreds of steps in an epoch; tests need a few.
METHODS["tampl+"] = TamplPlus(
    refit=Refit(steps=10, batch_size=16, hidden=(16, 16)),
    map=MapFit(steps=10, batch_size=16, hidden=(16, 16)),
)

# The same examples each time, so that a failure is one of the change at hand; new ones are looked
# for by HYPOTHESIS_PROFILE=default.
settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

TRANSITIONS = {
    "flow": {"name": "flow", "hidden": [16], "frequencies": 2, "steps": 2},
    "mlp": {"name": "mlp", "hidden": [16]},
    "linear": {"name": "linear"},
}


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="device of the tests with networks")
    parser.addoption("--dtype", default="float32", choices=["float32", "float64"])


@pytest.fixture(scope="session")
def device(request):
    return torch.device(request.config.getoption("--device"))


@pytest.fixture(scope="session")
def dtype(request):
    return getattr(torch, request.config.getoption("--dtype"))


@pytest.fixture(scope="session")
def tolerance(dtype):
    """What rounding may do to numbers of order one."""
    return {"rtol": 0, "atol": 1e-5 if dtype == torch.float32 else 1e-12}


@pytest.fixture(scope="session")
def small_sirs():
    return SIRS(size=8, frames=4, coverage=0.2, clusters=(1, 2))


@pytest.fixture
def make_model(small_sirs, device, dtype):
    """Makes a model of 8 x 8 lattices with random weights.

    Its random weights are doubled, so that a latent state is of order one and every input counts.
    """

    def make(transition="flow", *, dtype=dtype, seed=0):
        spec = ModelSpec.model_validate(
            {
                "latent_dim": 3,
                "encoder": {"name": "lattice", "widths": [4, 6], "hidden": [8]},
                "transition": TRANSITIONS[transition],
                "readout": {"name": "mlp", "hidden": [8]},
            }
        )
        with ambient_seed(seed, "weights"):
            modules = Modules.build(spec, small_sirs.description).to(device, dtype)
        with torch.no_grad():
            for parameter in [*modules.encoder.parameters(), *modules.readout.parameters()]:
                parameter.mul_(2)
        normalization = Normalization(np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.15, 0.05]))
        model = MacroModel(
            small_sirs.description, statistics=Statistics(normalization), modules=modules
        )
        return model.to(device).eval()

    return make


@pytest.fixture
def macro_model(make_model):
    """A stochastic model of 8 x 8 SIRS lattices with random weights."""
    return make_model()


@pytest.fixture
def lattices():
    """Five random 8 x 8 lattices in stored form."""
    return numpy_generator(0, "lattices").integers(0, 3, (5, 8, 8), dtype=np.uint8)


@pytest.fixture(scope="session")
def bench(tmp_path_factory, device):
    """A tiny SIRS data set and what it takes to train on it."""
    return Workbench.prepare(tmp_path_factory.mktemp("bench") / "store", device)


@pytest.fixture
def spec():
    """A small architecture of lattices."""
    return SPEC
