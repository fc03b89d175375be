"""Network building blocks: plain modules that know nothing of systems, methods or data."""

from .embedding import FourierFeatures
from .lattice import CircularConv2d, LatticeDecoder, LatticeEncoder
from .mlp import MLP, Residual
from .sets import DeepSet, ParticleLaw
from .velocity import VelocityMLP

__all__ = [
    "MLP",
    "CircularConv2d",
    "DeepSet",
    "FourierFeatures",
    "LatticeDecoder",
    "LatticeEncoder",
    "ParticleLaw",
    "Residual",
    "VelocityMLP",
]
