"""Network building blocks: plain modules that know nothing of systems, methods or data."""

from .embedding import FourierFeatures
from .lattice import LatticeEncoder
from .mlp import MLP, Residual
from .velocity import VelocityMLP

__all__ = ["MLP", "FourierFeatures", "LatticeEncoder", "Residual", "VelocityMLP"]
