"""Methods: losses and schedules for the one trainer; `fit` turns data into a model."""

from ..plugins import find_entry, register_entry
from .base import Method
from .check import check_method
from .joint import Jld, JldRecon, JldSig, JldVic, Joint
from .macro import MacroOnly, NextMacro
from .penalties import Penalty, Sig, Vic, register_penalty
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
    "find_method",
    "register_method",
    "register_penalty",
]

METHODS: dict[str, Method] = {
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


def register_method(name: str, method: Method) -> None:
    """Makes a method from outside of the package known by its name, in recipes too.

    Arguments:
        name: The name.
        method: The method with its default settings.
    """
    register_entry(METHODS, name, method, what="method")


def find_method(name: object) -> Method:
    """The method of a name, from the package, registered or installed."""
    found = find_entry(METHODS, name, group="tampl.methods", key="method")
    if isinstance(found, type):  # a plug-in may bring the class
        found = METHODS[str(name)] = found()
    return found
