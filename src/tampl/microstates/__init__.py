"""Kinds of microstates: how one is stored, checked and shown to a network.

A microstate x_t is kept in its *stored form* (a lattice as one byte per site, particles in fixed
point, a chain as coordinates), on disk and on the training device alike, and becomes the *network
input* (one-hot channels, scaled positions, a picture) one batch at a time.
"""

from typing import Annotated

from pydantic import Field

from .base import Microstate, Symmetry
from .chain import Chain
from .grids import Image, Lattice
from .particles import Particles
from .vector import Vector

__all__ = [
    "AnyMicrostate",
    "Chain",
    "Image",
    "Lattice",
    "Microstate",
    "Particles",
    "Symmetry",
    "Vector",
]

AnyMicrostate = Annotated[
    Lattice | Particles | Chain | Image | Vector, Field(discriminator="kind")
]
