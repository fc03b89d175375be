"""Decoders: what methods that reconstruct microstates train beside the model, and then drop.

A decoder is a conditional law p(x | z) by its loss; it is never sampled from. The loss is the
batch mean of -log p(x | z) per degree of freedom, so that weights mean the same at every size: per
site of a lattice, per particle of a set, per pixel of a picture. Randomness is data, as for
transitions: `draw` makes it, `loss` takes it. Each specification builds its decoder for a kind of
microstate.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from ..frozen import Frozen
from ..microstates import Chain, Image, Lattice, Microstate, Particles, Vector
from ..nn import MLP, ImageDecoder, LatticeDecoder, ParticleLaw
from ..plugins import open_choice, register_entry
from .parts import DTYPES, Precision, Widths, mismatch

__all__ = [
    "DECODERS",
    "AnyDecoder",
    "CategoricalDecoder",
    "Decoder",
    "DecoderSpec",
    "GaussianDecoder",
    "ImageDecoderSpec",
    "IntensityDecoder",
    "LatticeDecoderSpec",
    "ParticleDecoder",
    "SplineDecoderSpec",
    "VectorDecoderSpec",
    "register_decoder",
]


class Decoder(nn.Module, ABC):
    """The law of a microstate given its latent state."""

    @abstractmethod
    def loss(self, z: Tensor, x: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """Reconstruction loss of network inputs x (B, ...) from z (B, d) and the draws."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Draws what the loss of `count` microstates needs, on the generator's device."""


class CategoricalDecoder(Decoder):
    """Independent sites with softmax probabilities: the cross-entropy, mean over sites.

    Arguments:
        network: z (B, d) to logits (B, states, H, W).
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, z: Tensor, x: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        # x is one-hot, which cross_entropy takes as probabilities.
        return cross_entropy(self.network(z), x)

    def draw(self, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        return {}


class GaussianDecoder(Decoder):
    """Independent components of unit variance: half the squared error, mean over components.

    Arguments:
        network: z (B, d) to the means (B, size).
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, z: Tensor, x: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        return (self.network(z) - x).square().mean() / 2

    def draw(self, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        return {}


class IntensityDecoder(Decoder):
    """Independent pixels, each a coin whose chance of being bright is its intensity.

    The loss is the binary cross-entropy of intensities in [0, 1], mean over pixels. A picture of a
    chain is black but for some percent of its pixels. The squared error would let a decoder stay
    black there: what it loses by a missing chain is little, and its gradient vanishes with the
    intensity it gives. The cross-entropy grows without bound where light is missed, and the
    gradient by a logit is the difference of intensities, however dark. Its lowest value is not
    zero but the mean entropy of the coins.

    Arguments:
        network: z (B, d) to logits (B, 1, H, W).
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, z: Tensor, x: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        return binary_cross_entropy_with_logits(self.network(z), x)

    def draw(self, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        return {}


class ParticleDecoder(Decoder):
    """Independent particles given z: -log q(r, c | z), mean over some particles of each set.

    A set is cut into `particles` equal parts and one particle is drawn from each. All are equally
    likely, so the loss is unbiased; where the set has that many, each comes exactly once.
    Positions are perturbed by Gaussian noise, so that there is a density to learn.

    Arguments:
        law: The law of one particle.
        particles: Particles drawn from each set.
        noise: Standard deviation of the noise, in units of network input.
        locate: Takes the first columns of the network input to positions in [-1, 1]; by default
            they are these positions. The box is not reconstructed.
    """

    def __init__(
        self,
        law: ParticleLaw,
        *,
        particles: int,
        noise: float,
        locate: Callable[[Tensor], Tensor] = lambda columns: columns,
    ) -> None:
        super().__init__()
        self.law = law
        self.locate = locate
        self.particles = particles
        self.noise = noise

    def loss(self, z: Tensor, x: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        chosen = choose(x[..., -self.law.types :].sum(dim=-1), noise["place"])
        particles = x.gather(1, chosen.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        columns, one_hot = particles.tensor_split([-self.law.types], dim=-1)
        r = self.locate(columns) + self.noise * noise["jitter"]
        z = z.unsqueeze(1).expand(-1, r.shape[1], -1)
        log_type = (one_hot * self.law.log_type(r, z)).sum(dim=-1)
        return -(self.law.log_position(r, z) + log_type).mean()

    def draw(self, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        dtype, device = next(self.parameters()).dtype, generator.device
        shape = (count, self.particles)
        return {
            "place": torch.rand(shape, generator=generator, dtype=dtype, device=device),
            "jitter": torch.randn(
                (*shape, self.law.dim), generator=generator, dtype=dtype, device=device
            ),
        }


def choose(present: Tensor, place: Tensor) -> Tensor:
    """Rows of one particle from each of k equal parts of a set.

    Arguments:
        present: One where a row is a particle, zero where not, (B, N).
        place: Where in its part a particle is taken, uniform on [0, 1), (B, k).

    Returns:
        Indices of rows, (B, k).
    """
    parts = place.shape[-1]
    # In double precision, since in single a place next to 1 would round up into the next part.
    rank = present.cumsum(dim=-1, dtype=torch.float64)
    count = rank[:, -1:]
    part = torch.arange(parts, dtype=torch.float64, device=place.device)
    wanted = ((part + place) * count / parts).floor().minimum(count - 1)
    return torch.searchsorted(rank, wanted, right=True)


class DecoderSpec(Frozen, ABC):
    """A decoder as plain data, with the name by which recipes find it."""

    name: str

    @abstractmethod
    def build(self, microstate: Microstate, latent_dim: int) -> Decoder:
        """Builds the decoder for a kind of microstate."""


class LatticeDecoderSpec(DecoderSpec):
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


class SplineDecoderSpec(DecoderSpec):
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
        return ParticleDecoder(
            law, particles=self.particles, noise=self.noise, locate=microstate.locate
        )


class ImageDecoderSpec(DecoderSpec):
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


class VectorDecoderSpec(DecoderSpec):
    """An MLP to the components of a standardised vector, which are independent given z.

    Attributes:
        hidden: Hidden widths.
    """

    name: Literal["vector"]
    hidden: Widths = (128, 128)

    def build(self, microstate: Microstate, latent_dim: int) -> Decoder:
        """Builds the decoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise mismatch(self.name, "vector", microstate, part="decoder")
        return GaussianDecoder(MLP(latent_dim, microstate.size, hidden=self.hidden))


DECODERS: dict[str, type[DecoderSpec]] = {
    "lattice": LatticeDecoderSpec,
    "spline": SplineDecoderSpec,
    "image": ImageDecoderSpec,
    "vector": VectorDecoderSpec,
}
"""Every specification of a decoder by its name."""


def register_decoder(name: str, spec: type[DecoderSpec]) -> None:
    """Makes a decoder from outside of the package known by its name, in recipes too."""
    register_entry(DECODERS, name, spec, what="decoder")


if TYPE_CHECKING:
    AnyDecoder = DecoderSpec
else:
    AnyDecoder = open_choice(DECODERS, group="tampl.decoders", base=DecoderSpec)
