"""Network building blocks: plain modules that know nothing of systems, methods or data."""

from .images import ImageDecoder, ResNet, group_norm
from .lattice import CircularConv2d, LatticeDecoder, LatticeEncoder
from .mlp import MLP, FourierFeatures, Residual, VelocityMLP
from .sets import DeepSet, Harmonics, ParticleLaw

__all__ = [
    "MLP",
    "CircularConv2d",
    "DeepSet",
    "FourierFeatures",
    "Harmonics",
    "ImageDecoder",
    "LatticeDecoder",
    "LatticeEncoder",
    "ParticleLaw",
    "ResNet",
    "Residual",
    "VelocityMLP",
    "group_norm",
]
