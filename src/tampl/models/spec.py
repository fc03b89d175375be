"""Architectures as data: what a recipe states and a checkpoint carries.

Each record names one choice and builds its module; a combination that cannot work (a lattice
encoder on vectors) is refused here, before anything is trained.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt
from torch import nn

from ..errors import InputError
from ..flow import SOLVERS
from ..microstates import Lattice, Microstate, Vector
from ..nn import MLP, LatticeEncoder, Residual, VelocityMLP
from ..records import Record
from .transitions import DeterministicTransition, FlowTransition, Transition

__all__ = [
    "FlowTransitionSpec",
    "LatticeEncoderSpec",
    "LinearEncoderSpec",
    "LinearTransitionSpec",
    "MLPEncoderSpec",
    "MLPTransitionSpec",
    "ModelSpec",
    "ReadoutSpec",
]

Widths = tuple[PositiveInt, ...]


class LatticeEncoderSpec(Record):
    """Circular convolutions on the one-hot lattice."""

    name: Literal["lattice"]
    widths: Widths = Field((32, 64, 128, 128), min_length=1)
    hidden: Widths = (128,)

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for lattices of one number of states."""
        if not isinstance(microstate, Lattice):
            raise _mismatch(self.name, "lattice", microstate)
        return LatticeEncoder(
            microstate.states, latent_dim, widths=self.widths, hidden=self.hidden
        )


class MLPEncoderSpec(Record):
    """An MLP on plain vectors."""

    name: Literal["mlp"]
    hidden: Widths = (128, 128)

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise _mismatch(self.name, "vector", microstate)
        return MLP(microstate.size, latent_dim, hidden=self.hidden)


class LinearEncoderSpec(Record):
    """E(x) = B x, the encoder of the paper's analysis."""

    name: Literal["linear"]

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise _mismatch(self.name, "vector", microstate)
        return nn.Linear(microstate.size, latent_dim, bias=False)


def _mismatch(name: str, needs: str, microstate: Microstate) -> InputError:
    return InputError(
        f"the encoder `{name}` takes {needs} microstates, not {type(microstate).__name__.lower()} "
        "ones; choose another `model.encoder.name`"
    )


class LinearTransitionSpec(Record):
    """T(z) = K z, starting at K = I."""

    name: Literal["linear"]

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition."""
        linear = nn.Linear(latent_dim, latent_dim, bias=False)
        nn.init.eye_(linear.weight)
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


class ReadoutSpec(Record):
    """R(z) = MLP(z), linear where `hidden` is empty."""

    hidden: Widths = (128, 128)

    def build(self, latent_dim: int, observables: int) -> nn.Module:
        """Builds the readout of the standardised macrostate."""
        return MLP(latent_dim, observables, hidden=self.hidden)


AnyEncoder = Annotated[
    LatticeEncoderSpec | MLPEncoderSpec | LinearEncoderSpec, Field(discriminator="name")
]
AnyTransition = Annotated[
    LinearTransitionSpec | MLPTransitionSpec | FlowTransitionSpec, Field(discriminator="name")
]


class ModelSpec(Record):
    """Encoder, transition and readout around one latent dimension d_z."""

    latent_dim: PositiveInt
    encoder: AnyEncoder
    transition: AnyTransition
    readout: ReadoutSpec = ReadoutSpec()
