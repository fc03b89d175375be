"""Methods: losses and schedules for the one trainer."""

from collections.abc import Mapping

from .base import Batch, Losses, Method, OptimiserSpec, Stage, TrainingSpec, Turn
from .check import check_method
from .tampl import LiteralTampl, Tampl
from .trainer import DivergenceError, EpochRecord, Trainer

__all__ = [
    "METHODS",
    "Batch",
    "DivergenceError",
    "EpochRecord",
    "LiteralTampl",
    "Losses",
    "Method",
    "OptimiserSpec",
    "Stage",
    "Tampl",
    "Trainer",
    "TrainingSpec",
    "Turn",
    "check_method",
]

METHODS: Mapping[str, type[Method]] = {"tampl": Tampl}
