"""Methods: losses and schedules for the one trainer."""

from collections.abc import Mapping

from .base import Batch, Latents, Losses, Method, OptimiserSpec, Stage, TrainingSpec, Turn
from .check import check_method
from .engine import DivergenceError, EpochRecord, Trainer
from .joint import Jld
from .macro import MacroOnly, NextMacro
from .reconstruction import Recon, TwoStageRecon
from .regularizers import Penalty, Sig, Vic
from .tampl import LiteralTampl, Tampl, TamplPlus
from .vamp import Vamp

__all__ = [
    "METHODS",
    "Batch",
    "DivergenceError",
    "EpochRecord",
    "Jld",
    "Latents",
    "LiteralTampl",
    "Losses",
    "MacroOnly",
    "Method",
    "NextMacro",
    "OptimiserSpec",
    "Penalty",
    "Recon",
    "Sig",
    "Stage",
    "Tampl",
    "TamplPlus",
    "Trainer",
    "TrainingSpec",
    "Turn",
    "TwoStageRecon",
    "Vamp",
    "Vic",
    "check_method",
]

METHODS: Mapping[str, Method] = {
    "tampl": Tampl(),
    "tampl+": TamplPlus(),
    "jld": Jld(),
    "jld-sig": Jld(penalty=Sig()),
    "jld-vic": Jld(penalty=Vic()),
    "vamp": Vamp(),
    "jld-recon": Jld(penalty=Recon()),
    "two-stage-recon": TwoStageRecon(),
    "macro-only": MacroOnly(),
    "next-macro": NextMacro(),
}
"""Every method by the name that recipes and the command line use, with its default settings."""
