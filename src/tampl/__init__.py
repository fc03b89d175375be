"""Forecasts of macroscopic observables from one microstate, without reconstructing microstates."""

from .version import __version__

__all__ = ["__version__"]
