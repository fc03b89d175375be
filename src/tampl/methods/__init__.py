"""Methods: losses and schedules for the one trainer; `fit` turns data into a model."""

from collections.abc import Mapping

from .base import Method
from .check import check_method
from .joint import Jld, JldRecon, JldSig, JldVic, Joint
from .macro import MacroOnly, NextMacro
from .penalties import Penalty, Sig, Vic
from .reconstruction import Recon, TwoStageRecon
from .tampl import LiteralTampl, Tampl, TamplPlus
from .vamp import Vamp

__all__ = [
    "METHODS",
    "Jld",
    "JldRecon",
    "JldSig",
    "JldVic",
    "Joint",
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
    "jld-sig": JldSig(),
    "jld-vic": JldVic(),
    "vamp": Vamp(),
    "jld-recon": JldRecon(),
    "two-stage-recon": TwoStageRecon(),
    "macro-only": MacroOnly(),
    "next-macro": NextMacro(),
}
"""Every method by the name that recipes and the command line use, with its default settings."""
