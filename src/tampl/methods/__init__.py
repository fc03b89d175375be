"""Methods: losses and schedules for the one trainer."""

from collections.abc import Mapping

from .base import Batch, Losses, Method, OptimiserSpec, Stage, TrainingSpec, Turn
from .check import check_method
from .joint import Jld
from .regularizers import Sig, Vic
from .tampl import LiteralTampl, Tampl
from .trainer import DivergenceError, EpochRecord, Trainer

__all__ = [
    "METHODS",
    "Batch",
    "DivergenceError",
    "EpochRecord",
    "Jld",
    "LiteralTampl",
    "Losses",
    "Method",
    "OptimiserSpec",
    "Sig",
    "Stage",
    "Tampl",
    "Trainer",
    "TrainingSpec",
    "Turn",
    "Vic",
    "check_method",
]

METHODS: Mapping[str, Method] = {
    "tampl": Tampl(),
    "jld": Jld(),
    "jld-sig": Jld(penalty=Sig()),
    "jld-vic": Jld(penalty=Vic()),
}
"""Every method by the name that recipes and the command line use, with its default settings."""
