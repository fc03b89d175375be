"""A tiny SIRS data set and model for the tests of the methods."""

from dataclasses import dataclass
from pathlib import Path

import torch

from tampl.data import Dataset, Statistics, Store, write_miniature
from tampl.methods import Method
from tampl.models import MacroModel, ModelSpec, Modules
from tampl.seeding import ambient_seed
from tampl.systems import SIRS
from tampl.training import Trainer, TrainingSpec
from tampl.training.frames import Frames

SPEC = ModelSpec.model_validate(
    {
        "latent_dim": 3,
        "encoder": {"name": "lattice", "widths": [4, 6], "hidden": [8]},
        "transition": {"name": "flow", "hidden": [16, 16], "steps": 2},
        "readout": {"name": "mlp", "hidden": [8]},
        "decoder": {"name": "lattice", "widths": [6, 4], "hidden": [8]},
    }
)


@dataclass(frozen=True)
class Workbench:
    """A store and what it takes to train on it."""

    store: Store
    data: Dataset
    statistics: Statistics
    frames: Frames

    @classmethod
    def prepare(cls, folder: Path, device: torch.device) -> "Workbench":
        store = write_miniature(SIRS(size=8, frames=6, clusters=(1, 2)), folder)
        data = store.dataset("train")
        frames = Frames.load(data, data.statistics, device=device, dtype=torch.float64)
        return cls(store, data, data.statistics, frames)

    def training(self, **changes: object) -> TrainingSpec:
        settings = {"epochs": 3, "batch_size": 7, "seed": 5} | changes
        return TrainingSpec.model_validate(settings)

    def modules(self, method: Method, spec: ModelSpec = SPEC) -> Modules:
        with ambient_seed(1, "weights"):
            built = method.modules(spec, self.store.description)
        return built.to(self.frames.macrostates.device, self.frames.macrostates.dtype)

    def trainer(self, method: Method, training: TrainingSpec | None = None) -> Trainer:
        training = training or self.training()
        modules = self.modules(method)
        return Trainer(method.turns(training), modules, frames=self.frames, training=training)

    def model(self, modules: Modules) -> MacroModel:
        description = self.store.description
        return MacroModel(description, statistics=self.statistics, modules=modules)
