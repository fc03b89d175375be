"""Systems: simulators with their observables, which know physics and nothing about learning.

A simulator and its compiled kernels load when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..plugins import find_entry, register_entry
from ..system import System
from .check import check_system

if TYPE_CHECKING:
    from .mixing import Mixing
    from .polymer import Polymer
    from .sirs import SIRS

__all__ = [
    "SIRS",
    "SYSTEMS",
    "Mixing",
    "Polymer",
    "check_system",
    "find_system_class",
    "register_system",
]

SYSTEMS: dict[str, str | type[System]] = {
    "sirs": "tampl.systems.sirs:SIRS",
    "mixing": "tampl.systems.mixing:Mixing",
    "polymer": "tampl.systems.polymer:Polymer",
}
"""Every simulator by the name that recipes use: its class, or where to find it."""


_CLASSES = {"SIRS": "sirs", "Mixing": "mixing", "Polymer": "polymer"}


def register_system(name: str, system: type[System]) -> None:
    """Makes a simulator from outside of the package known by its name, in recipes too."""
    register_entry(SYSTEMS, name, system, what="system")


def find_system_class(name: object) -> type[System]:
    """The simulator of a name, from the package, registered or installed."""
    entry = find_entry(SYSTEMS, name, group="tampl.systems", key="system.name")
    if isinstance(entry, str):
        module, _, class_name = entry.partition(":")
        return getattr(import_module(module), class_name)
    return entry


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _CLASSES:
        return find_system_class(_CLASSES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
