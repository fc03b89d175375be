"""The one training loop and what it is made of: stages, frames, steps, latent cache.

Nothing here opens a file: data come as arrays, and what is kept goes through a `Keeper`.
"""

from .latents import LatentScale
from .loop import History, Keeper, MemoryKeeper, run_training
from .ranks import ALONE, Ranks, join
from .settings import OptimiserSpec, TrainingSpec
from .stages import Batch, Latents, Losses, Stage, Turn
from .trainer import DivergenceError, EpochRecord, Trainer

__all__ = [
    "ALONE",
    "Batch",
    "DivergenceError",
    "EpochRecord",
    "History",
    "Keeper",
    "LatentScale",
    "Latents",
    "Losses",
    "MemoryKeeper",
    "OptimiserSpec",
    "Ranks",
    "Stage",
    "Trainer",
    "TrainingSpec",
    "Turn",
    "join",
    "run_training",
]
