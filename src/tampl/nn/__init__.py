"""Network building blocks: plain modules that know nothing of systems, methods or data."""

from .embedding import FourierFeatures
from .images import ImageDecoder
from .lattice import CircularConv2d, LatticeDecoder, LatticeEncoder
from .mlp import MLP, Residual
from .resnet import ResNet
from .sets import DeepSet, ParticleLaw
from .velocity import VelocityMLP

__all__ = [
    "MLP",
    "CircularConv2d",
    "DeepSet",
    "FourierFeatures",
    "ImageDecoder",
    "LatticeDecoder",
    "LatticeEncoder",
    "ParticleLaw",
    "ResNet",
    "Residual",
    "VelocityMLP",
]
