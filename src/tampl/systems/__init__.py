"""Systems: simulators with their observables, which know physics and nothing about learning."""

from ..system import System
from .check import check_system
from .mixing import Mixing
from .polymer import Polymer
from .sirs import SIRS

__all__ = ["SIRS", "SYSTEMS", "Mixing", "Polymer", "check_system"]

SYSTEMS: dict[str, type[System]] = {"sirs": SIRS, "mixing": Mixing, "polymer": Polymer}
