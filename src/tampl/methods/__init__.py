"""Methods: losses and schedules for the one trainer."""

from collections.abc import Mapping

from .base import Method
from .check import check_method
from .joint import Jld
from .macro import MacroOnly, NextMacro
from .penalties import Penalty, Sig, Vic
from .reconstruction import Recon, TwoStageRecon
from .tampl import LiteralTampl, Tampl, TamplPlus
from .vamp import Vamp

__all__ = [
    "METHODS",
    "Jld",
    "LiteralTampl",
    "MacroOnly",
    "Method",
    "NextMacro",
    "Penalty",
    "Recon",
    "Sig",
    "Tampl",
    "TamplPlus",
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
