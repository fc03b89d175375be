"""Decoders as data."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from ...microstates import Chain, Image, Lattice, Microstate, Particles
from ...nn import ImageDecoder, LatticeDecoder, ParticleLaw
from ...records import Record
from ..decoders import CategoricalDecoder, Decoder, IntensityDecoder, ParticleDecoder
from .common import DTYPES, Precision, Widths, mismatch

__all__ = ["AnyDecoder", "ImageDecoderSpec", "LatticeDecoderSpec", "SplineDecoderSpec"]


class LatticeDecoderSpec(Record):
    """Upsampling with circular convolutions; the states of the sites are independent given z.

    Attributes:
        widths: Channels before each convolution, the coarsest lattice first.
        hidden: Hidden widths of the opening MLP.
        precision: Of the convolutions on a GPU; a CPU has float32.
    """

    name: Literal["lattice"]
    widths: Widths = Field((128, 64, 32, 16), min_length=1)
    hidden: Widths = (64,)
    precision: Precision = "float32"

    def build(self, microstate: Microstate, latent_dim: int) -> Decoder:
        """Builds the decoder for lattices of one size."""
        if not isinstance(microstate, Lattice):
            raise mismatch(self.name, "lattice", microstate, part="decoder")
        return CategoricalDecoder(
            LatticeDecoder(
                latent_dim,
                microstate.states,
                size=(microstate.height, microstate.width),
                widths=self.widths,
                hidden=self.hidden,
                dtype=DTYPES[self.precision],
            )
        )


class SplineDecoderSpec(Record):
    """Independent particles given z: a spline flow for positions, a softmax for types.

    Attributes:
        transforms: Number of spline transformations.
        bins: Bins of a spline.
        hidden: Hidden widths of the network behind each transformation.
        type_hidden: Hidden widths of the network of the types.
        particles: Particles of each set that the loss of a step is taken over.
        noise: Standard deviation of the noise on positions, where half the box is 1.
    """

    name: Literal["spline"]
    transforms: PositiveInt = 4
    bins: int = Field(16, ge=2)
    hidden: Widths = (128, 128)
    type_hidden: Widths = (128, 128)
    particles: PositiveInt = 128
    noise: NonNegativeFloat = 0.01

    def build(self, microstate: Microstate, latent_dim: int) -> Decoder:
        """Builds the decoder for particles of some types, however many."""
        if not isinstance(microstate, Particles):
            raise mismatch(self.name, "particles", microstate, part="decoder")
        law = ParticleLaw(
            latent_dim,
            microstate.dim,
            microstate.types,
            transforms=self.transforms,
            bins=self.bins,
            hidden=self.hidden,
            type_hidden=self.type_hidden,
        )
        return ParticleDecoder(law, particles=self.particles, noise=self.noise)


class ImageDecoderSpec(Record):
    """Upsampling with convolutions; pixels are independent given z, coins of their intensity.

    Attributes:
        widths: Channels before each convolution, the coarsest picture first.
        hidden: Hidden widths of the opening MLP.
        precision: Of the convolutions on a GPU; a CPU has float32.
    """

    name: Literal["image"]
    widths: Widths = Field((256, 128, 64, 32, 16), min_length=1)
    hidden: Widths = (512,)
    precision: Precision = "float32"

    def build(self, microstate: Microstate, latent_dim: int) -> Decoder:
        """Builds the decoder for pictures of one size."""
        if not isinstance(microstate, Chain | Image):
            raise mismatch(self.name, "chain or image", microstate, part="decoder")
        return IntensityDecoder(
            ImageDecoder(
                latent_dim,
                size=(microstate.height, microstate.width),
                widths=self.widths,
                hidden=self.hidden,
                dtype=DTYPES[self.precision],
            )
        )


AnyDecoder = Annotated[
    LatticeDecoderSpec | SplineDecoderSpec | ImageDecoderSpec, Field(discriminator="name")
]
