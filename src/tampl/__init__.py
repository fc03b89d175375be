"""Forecasts of macroscopic observables from one microstate, without reconstructing microstates.

Subpackages load when they are first used, so that the command line starts at once:
`tampl.systems.SIRS`, `tampl.methods.Tampl`, `tampl.forecast.forecast`.
"""

from importlib import import_module
from types import ModuleType

from .version import __version__

__all__ = [
    "__version__",
    "campaigns",
    "config",
    "data",
    "evaluate",
    "flow",
    "forecast",
    "methods",
    "models",
    "nn",
    "pipeline",
    "report",
    "systems",
    "theory",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
