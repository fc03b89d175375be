"""The one-page version is the library's method: same losses, same parameters after an epoch."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from tampl.data import Dataset
from tampl.description import Description, Observable
from tampl.methods import Tampl
from tampl.methods.tampl import representation_loss
from tampl.microstates import Vector
from tampl.models import ModelSpec, Modules
from tampl.seeding import ambient_seed
from tampl.training import Trainer, TrainingSpec
from tampl.training.frames import Frames
from tampl.training.stages import Batch

PATH = Path(__file__).parents[2] / "examples" / "minimal.py"
PLAIN = {"learning_rate": 5e-3, "final_fraction": 1.0, "clip": 0.0}


@pytest.fixture(scope="module")
def minimal():
    spec = importlib.util.spec_from_file_location("minimal", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def frames(minimal):
    generator = np.random.default_rng(0)
    microstates = generator.normal(size=(6, 5, minimal.N))
    kind = Vector(size=minimal.N)
    data = Dataset(microstates, microstates[..., :1] ** 2, microstate=kind)
    return Frames.load(data, data.statistics, dtype=torch.float64)


@pytest.fixture
def modules(minimal):
    spec = ModelSpec.model_validate(
        {
            "latent_dim": minimal.D,
            "encoder": {"name": "mlp", "hidden": [32]},
            "transition": {"name": "flow", "hidden": [32, 32], "frequencies": 8},
            "readout": {"name": "mlp", "hidden": [16]},
        }
    )
    description = Description(
        system="toy",
        parameters={},
        microstate=Vector(size=minimal.N),
        observables=(Observable(name="q", symbol="q"),),
        interval=1.0,
        frames=5,
    )
    with ambient_seed(3):
        return Modules.build(spec, description).double()


@pytest.fixture
def page(minimal, modules):
    """E, R, T and the target of the one-page version, with the library's weights."""
    d, m = minimal.D, minimal.M
    built = (
        minimal.mlp(minimal.N, 32, d),
        minimal.mlp(d, 16, m),
        minimal.mlp(2 * d + 17, 32, 32, d),
    )
    sources = (modules.encoder, modules.readout, modules.transition.velocity.mlp)
    for module, source in zip(built, sources, strict=True):
        module.double().load_state_dict(source.state_dict())
    target = minimal.deepcopy(built[0]).requires_grad_(False)
    return (*built, target)


def page_batches(trainer, stage):
    """The library's batches of a stage in the one-page form, from the same streams."""
    wanted = trainer.schedule[0][stage]
    return [
        (
            trainer.frames.x(index),
            trainer.frames.y(index),
            trainer.frames.x(index + 1),
            noise["s"],
            noise["epsilon"],
        )
        for index, noise, _ in trainer._batches(wanted)
    ]


def test_losses_agree(minimal, modules, page, frames):
    E, R, T, E_bar = page
    index = frames.pairs[:7]
    noise = modules.transition.draw(7, torch.Generator().manual_seed(0))
    x, y, x_next = frames.x(index), frames.y(index), frames.x(index + 1)
    batch = Batch({"x": x, "y": y}, noise)
    ours = representation_loss(Tampl(), modules, batch, z_next=modules.encoder(x_next).detach())
    theirs = minimal.representation_loss(E, R, T, E_bar, (x, y, x_next, *noise.values()))
    torch.testing.assert_close(ours.total, theirs)


def test_one_epoch_agrees(minimal, modules, page, frames):
    training = TrainingSpec.model_validate(
        {"epochs": 1, "batch_size": 5, "representation": PLAIN, "transition": PLAIN}
    )
    trainer = Trainer(Tampl().turns(training), modules, frames=frames, training=training)
    stages = [page_batches(trainer, stage) for stage in (0, 1)]
    trainer._cache = None
    trainer.run_epoch()

    E, R, T, E_bar = page
    groups = ([*E.parameters(), *R.parameters()], T.parameters())
    optimisers = [torch.optim.AdamW(group, lr=5e-3, weight_decay=0.01) for group in groups]
    minimal.train_epoch(E, R, T, E_bar, optimisers, *stages)
    pairs = ((E, modules.encoder), (R, modules.readout), (T, modules.transition.velocity.mlp))
    for theirs, ours in pairs:
        torch.testing.assert_close(
            dict(theirs.state_dict()), dict(ours.state_dict()), rtol=1e-9, atol=1e-11
        )


def test_it_runs(minimal, capsys):
    minimal.main(epochs=1, runs=4, frames=16, members=3)
    assert "forecast" in capsys.readouterr().out
