"""Architectures as data: what a recipe states and a checkpoint carries.

Each record names one choice and builds its module; a combination that cannot work (a lattice
encoder on vectors) is refused here, before anything is trained.
"""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, PositiveInt
from torch import nn

from ..errors import InputError
from ..flow import SOLVERS
from ..microstates import Lattice, Microstate, Vector
from ..nn import MLP, LatticeDecoder, LatticeEncoder, Residual, VelocityMLP
from ..records import Record
from .decoders import CategoricalDecoder, Decoder
from .transitions import DeterministicTransition, FlowTransition, Transition

__all__ = [
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
]

Widths = tuple[PositiveInt, ...]
Source = Literal["x", "y"]
"""What an encoder sees of a frame: its microstate or its macrostate."""


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
    precision: Literal["float32", "bfloat16"] = "float32"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for lattices of one number of states."""
        if not isinstance(microstate, Lattice):
            raise _mismatch(self.name, "lattice", microstate)
        return LatticeEncoder(
            microstate.states,
            latent_dim,
            widths=self.widths,
            hidden=self.hidden,
            dtype={"float32": torch.float32, "bfloat16": torch.bfloat16}[self.precision],
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


class FlowTransitionSpec(Record):
    """The conditional flow, with its solver for inference."""

    name: Literal["flow"]
    hidden: Widths = (512, 512, 512, 512)
    frequencies: PositiveInt = 8
    solver: Literal["euler", "midpoint", "rk4"] = "midpoint"
    steps: PositiveInt = 5

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition."""
        velocity = VelocityMLP(latent_dim, hidden=self.hidden, frequencies=self.frequencies)
        return FlowTransition(velocity, latent_dim, step=SOLVERS[self.solver], steps=self.steps)


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
    """Upsampling with circular convolutions; the states of the sites are independent given z."""

    name: Literal["lattice"]
    widths: Widths = Field((128, 64, 32, 16), min_length=1)
    hidden: Widths = (64,)

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
            )
        )


AnyEncoder = Annotated[
    LatticeEncoderSpec | MLPEncoderSpec | LinearEncoderSpec | MacrostateEncoderSpec,
    Field(discriminator="name"),
]
AnyTransition = Annotated[
    LinearTransitionSpec | MLPTransitionSpec | FlowTransitionSpec, Field(discriminator="name")
]
AnyReadout = Annotated[MLPReadoutSpec | IdentityReadoutSpec, Field(discriminator="name")]


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
    decoder: LatticeDecoderSpec | None = None
