"""Transitions as data."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt
from torch import nn

from ...flow import SOLVERS
from ...nn import MLP, Residual, VelocityMLP
from ...records import Record
from ..transitions import (
    CalibratedFlowTransition,
    DeterministicTransition,
    FlowTransition,
    Transition,
)
from .common import DTYPES, Precision, Widths

__all__ = [
    "AnyTransition",
    "CalibratedFlowSpec",
    "FlowTransitionSpec",
    "LinearTransitionSpec",
    "MLPTransitionSpec",
]


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
    """The conditional flow: a velocity network and its solver for inference.

    Attributes:
        hidden: Hidden widths of the velocity network.
        frequencies: Fourier frequencies of the flow time.
        solver: Scheme of integration.
        steps: Steps of integration.
        grading: How strongly steps shorten towards the end; 1 makes them equal.
        draws: Draws of flow time and noise for each pair in the loss.
        precision: Of the products between the velocity network's hidden layers.
    """

    name: Literal["flow"]
    hidden: Widths = (512, 512, 512, 512)
    frequencies: PositiveInt = 8
    solver: Literal["euler", "midpoint", "rk4"] = "midpoint"
    steps: PositiveInt = 5
    grading: float = Field(1.0, ge=1, allow_inf_nan=False)
    draws: PositiveInt = 1
    precision: Precision = "float32"

    def build(self, latent_dim: int) -> FlowTransition:
        """Builds the transition."""
        velocity = VelocityMLP(
            latent_dim,
            hidden=self.hidden,
            frequencies=self.frequencies,
            dtype=DTYPES[self.precision],
        )
        return FlowTransition(
            velocity,
            latent_dim,
            step=SOLVERS[self.solver],
            steps=self.steps,
            grading=self.grading,
            draws=self.draws,
        )


class CalibratedFlowSpec(Record):
    """A flow of standardised increments; of the methods, `tampl+` alone calibrates it."""

    name: Literal["calibrated-flow"]
    flow: FlowTransitionSpec

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition."""
        return CalibratedFlowTransition(self.flow.build(latent_dim))


AnyTransition = Annotated[
    LinearTransitionSpec | MLPTransitionSpec | FlowTransitionSpec | CalibratedFlowSpec,
    Field(discriminator="name"),
]
