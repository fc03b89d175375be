"""The linear theory of the paper as an instrument: systems, losses, updates, certificates.

Everything is float64 and population-exact; modules load when they are first used:
`tampl.theory.linear.LinearSystem`, `tampl.theory.selection.select`.

Reference: the paper's section "Analysis" and its appendix "Proofs and Supporting Results".
"""

from importlib import import_module
from types import ModuleType

__all__ = [
    "certificates",
    "checks",
    "experiments",
    "linear",
    "realisability",
    "selection",
    "updates",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
