"""Systems: simulators with their observables, which know physics and nothing about learning."""

from .base import Closure, Description, InitialState, Observable, Runs, System
from .check import check_system
from .sirs import SIRS

__all__ = [
    "SIRS",
    "SYSTEMS",
    "Closure",
    "Description",
    "InitialState",
    "Observable",
    "Runs",
    "System",
    "check_system",
]

SYSTEMS: dict[str, type[System]] = {"sirs": SIRS}
