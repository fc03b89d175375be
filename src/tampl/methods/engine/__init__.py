"""The one training loop and what it is made of: steps, windows, latent cache, run folder."""

from .trainer import DivergenceError, EpochRecord, Trainer

__all__ = ["DivergenceError", "EpochRecord", "Trainer"]
