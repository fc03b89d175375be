"""Systems: simulators with their observables, which know physics and nothing about learning.

A simulator and its compiled kernels load when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..system import System
from .check import check_system

if TYPE_CHECKING:
    from .mixing import Mixing
    from .polymer import Polymer
    from .sirs import SIRS

__all__ = ["SIRS", "SYSTEMS", "Mixing", "Polymer", "check_system", "find_system_class"]

SYSTEMS: dict[str, str | type[System]] = {
    "sirs": "tampl.systems.sirs:SIRS",
    "mixing": "tampl.systems.mixing:Mixing",
    "polymer": "tampl.systems.polymer:Polymer",
}
"""Every simulator by the name that recipes use: its class, or where to find it."""


_CLASSES = {"SIRS": "sirs", "Mixing": "mixing", "Polymer": "polymer"}


def find_system_class(name: str) -> type[System]:
    """The simulator of a name."""
    if name not in list(SYSTEMS):  # a list, because a file can hold a name that is not hashable
        raise InputError(f"`system.name` is {name!r}; choose one of {', '.join(SYSTEMS)}")
    entry = SYSTEMS[name]
    if isinstance(entry, str):
        module, _, class_name = entry.partition(":")
        return getattr(import_module(module), class_name)
    return entry


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _CLASSES:
        return find_system_class(_CLASSES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
