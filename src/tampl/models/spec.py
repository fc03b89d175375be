"""Architectures as data: what a recipe states and a checkpoint carries.

Each record names one choice and builds its module; a combination that cannot work (a lattice
encoder on vectors) is refused here, before anything is trained.
"""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import nn

from ..errors import InputError
from ..flow import SOLVERS
from ..microstates import Lattice, Microstate, Particles, Vector
from ..nn import (
    MLP,
    DeepSet,
    LatticeDecoder,
    LatticeEncoder,
    ParticleLaw,
    Residual,
    VelocityMLP,
)
from ..records import Record
from .decoders import CategoricalDecoder, Decoder, ParticleDecoder
from .transitions import (
    CalibratedFlowTransition,
    DeterministicTransition,
    FlowTransition,
    Transition,
)

__all__ = [
    "CalibratedFlowSpec",
    "DeepSetEncoderSpec",
    "FlowTransitionSpec",
    "IdentityReadoutSpec",
    "LatticeDecoderSpec",
    "LatticeEncoderSpec",
    "LinearEncoderSpec",
    "LinearTransitionSpec",
    "MLPEncoderSpec",
    "MLPReadoutSpec",
    "MLPTransitionSpec",
    "MacrostateEncoderSpec",
    "ModelSpec",
    "SplineDecoderSpec",
]

Widths = tuple[PositiveInt, ...]
Source = Literal["x", "y"]
"""What an encoder sees of a frame: its microstate or its macrostate."""

Precision = Literal["float32", "bfloat16"]
DTYPES: dict[Precision, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class LatticeEncoderSpec(Record):
    """Circular convolutions on the one-hot lattice.

    Attributes:
        widths: Channels after each convolution.
        hidden: Hidden widths of the closing MLP.
        precision: Of the convolutions on a GPU; a CPU has float32.
    """

    name: Literal["lattice"]
    reads: ClassVar[Source] = "x"
    widths: Widths = Field((32, 64, 128, 128), min_length=1)
    hidden: Widths = (128,)
    precision: Precision = "float32"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for lattices of one number of states."""
        if not isinstance(microstate, Lattice):
            raise _mismatch(self.name, "lattice", microstate)
        return LatticeEncoder(
            microstate.states,
            latent_dim,
            widths=self.widths,
            hidden=self.hidden,
            dtype=DTYPES[self.precision],
        )


class DeepSetEncoderSpec(Record):
    """A shared network on every particle, the mean over the set, an MLP.

    Attributes:
        widths: Features of a particle after each shared layer.
        hidden: Hidden widths of the closing MLP.
        precision: Of the shared layers on a GPU; a CPU has float32.
    """

    name: Literal["deepset"]
    reads: ClassVar[Source] = "x"
    widths: Widths = Field((256, 256), min_length=1)
    hidden: Widths = (128,)
    precision: Precision = "float32"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for particles of some types, however many."""
        if not isinstance(microstate, Particles):
            raise _mismatch(self.name, "particles", microstate)
        return DeepSet(
            microstate.dim,
            microstate.types,
            outputs=latent_dim,
            widths=self.widths,
            hidden=self.hidden,
            dtype=DTYPES[self.precision],
        )


class MLPEncoderSpec(Record):
    """An MLP on plain vectors."""

    name: Literal["mlp"]
    reads: ClassVar[Source] = "x"
    hidden: Widths = (128, 128)

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise _mismatch(self.name, "vector", microstate)
        return MLP(microstate.size, latent_dim, hidden=self.hidden)


class LinearEncoderSpec(Record):
    """E(x) = B x, the encoder of the paper's analysis."""

    name: Literal["linear"]
    reads: ClassVar[Source] = "x"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise _mismatch(self.name, "vector", microstate)
        return nn.Linear(microstate.size, latent_dim, bias=False)


class MacrostateEncoderSpec(Record):
    """No encoder: the latent state is the standardised macrostate itself."""

    name: Literal["macrostate"]
    reads: ClassVar[Source] = "y"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the identity."""
        return nn.Identity()


def _mismatch(
    name: str, needs: str, microstate: Microstate, *, part: str = "encoder"
) -> InputError:
    return InputError(
        f"the {part} `{name}` takes {needs} microstates, not {type(microstate).__name__.lower()} "
        f"ones; choose another `model.{part}.name`"
    )


class LinearTransitionSpec(Record):
    """T(z) = K z, or K z + b with a bias, starting at the identity."""

    name: Literal["linear"]
    bias: bool = False

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition."""
        linear = nn.Linear(latent_dim, latent_dim, bias=self.bias)
        nn.init.eye_(linear.weight)
        if self.bias:
            nn.init.zeros_(linear.bias)
        return DeterministicTransition(linear)


class MLPTransitionSpec(Record):
    """T(z) = z + MLP(z): the network learns the change over one frame."""

    name: Literal["mlp"]
    hidden: Widths = (256, 256)

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition."""
        return DeterministicTransition(Residual(MLP(latent_dim, latent_dim, hidden=self.hidden)))


class _FlowSpec(Record):
    """A velocity network and its solver for inference.

    Attributes:
        hidden: Hidden widths of the velocity network.
        frequencies: Fourier frequencies of the flow time.
        solver: Scheme of integration.
        steps: Steps of integration.
        grading: How strongly steps shorten towards the end; 1 makes them equal.
        precision: Of the products between the velocity network's hidden layers.
    """

    kind: ClassVar[type[FlowTransition]]
    hidden: Widths = (512, 512, 512, 512)
    frequencies: PositiveInt = 8
    solver: Literal["euler", "midpoint", "rk4"] = "midpoint"
    steps: PositiveInt = 5
    grading: float = Field(1.0, ge=1, allow_inf_nan=False)
    precision: Precision = "float32"

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition."""
        velocity = VelocityMLP(
            latent_dim,
            hidden=self.hidden,
            frequencies=self.frequencies,
            dtype=DTYPES[self.precision],
        )
        return self.kind(
            velocity,
            latent_dim,
            step=SOLVERS[self.solver],
            steps=self.steps,
            grading=self.grading,
        )


class FlowTransitionSpec(_FlowSpec):
    """The conditional flow."""

    name: Literal["flow"]
    kind: ClassVar[type[FlowTransition]] = FlowTransition


class CalibratedFlowSpec(_FlowSpec):
    """The flow of standardised increments; of the methods, `tampl+` alone calibrates it."""

    name: Literal["calibrated-flow"]
    kind: ClassVar[type[FlowTransition]] = CalibratedFlowTransition


class MLPReadoutSpec(Record):
    """R(z) = MLP(z), affine where `hidden` is empty."""

    name: Literal["mlp"]
    hidden: Widths = (128, 128)

    def build(self, latent_dim: int, observables: int) -> nn.Module:
        """Builds the readout of the standardised macrostate."""
        return MLP(latent_dim, observables, hidden=self.hidden)


class IdentityReadoutSpec(Record):
    """R(z) = z, where the latent state is the macrostate."""

    name: Literal["identity"]

    def build(self, latent_dim: int, observables: int) -> nn.Module:
        """Builds the identity."""
        if latent_dim != observables:
            raise InputError(
                f"the readout `identity` needs as many latent dimensions as observables; "
                f"`model.latent_dim` is {latent_dim}, the system has {observables}"
            )
        return nn.Identity()


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
            raise _mismatch(self.name, "lattice", microstate, part="decoder")
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
            raise _mismatch(self.name, "particles", microstate, part="decoder")
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


AnyEncoder = Annotated[
    LatticeEncoderSpec
    | DeepSetEncoderSpec
    | MLPEncoderSpec
    | LinearEncoderSpec
    | MacrostateEncoderSpec,
    Field(discriminator="name"),
]
AnyTransition = Annotated[
    LinearTransitionSpec | MLPTransitionSpec | FlowTransitionSpec | CalibratedFlowSpec,
    Field(discriminator="name"),
]
AnyReadout = Annotated[MLPReadoutSpec | IdentityReadoutSpec, Field(discriminator="name")]
AnyDecoder = Annotated[LatticeDecoderSpec | SplineDecoderSpec, Field(discriminator="name")]


class ModelSpec(Record):
    """Encoder, transition and readout around one latent dimension d_z.

    Attributes:
        latent_dim: Size of z.
        encoder: E.
        transition: T.
        readout: R.
        decoder: For methods that reconstruct microstates in training; no model keeps it.
    """

    latent_dim: PositiveInt
    encoder: AnyEncoder
    transition: AnyTransition
    readout: AnyReadout = MLPReadoutSpec(name="mlp")
    decoder: AnyDecoder | None = None
