"""Architectures as data: what a recipe states and a checkpoint carries.

Each record names one choice and builds its module; a combination that cannot work (a lattice
encoder on vectors) is refused here, before anything is trained.

The macroscopic model: E, T and R with what they need to stand alone.

At inference the encoder sees the initial microstate only (the paper's Algorithm 2):

    z_0 = E(x_0),    z_{t+1} ~ T(. | z_t),    y_t = R(z_t).

A model without an encoder starts from z_0 = y_0, standardised, instead.

The readout speaks standardised macrostates; the model returns physical units.
"""

from collections.abc import Iterator, Mapping

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from ..data.dataset import Normalization
from ..description import Description
from ..errors import InputError
from ..frozen import Frozen
from .decoders import AnyDecoder
from .encoders import (
    AnyEncoder,
    ResNetEncoderSpec,
)
from .readouts import AnyReadout, MLPReadoutSpec
from .transitions import (
    AnyTransition,
    Transition,
)

__all__ = ["MacroModel", "ModelSpec", "Modules"]


class ModelSpec(Frozen):
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

    def blank(self) -> "ModelSpec":
        """The same architecture without published weights to start from.

        For a model whose own weights follow: they need not be fetched to be overwritten.
        """
        if not isinstance(self.encoder, ResNetEncoderSpec):
            return self
        encoder = self.encoder.model_copy(update={"weights": "none"})
        return self.model_copy(update={"encoder": encoder})


class Modules(nn.Module):
    """The modules of a training run by name; a method may add some that no model keeps.

    Arguments:
        spec: The architecture that encoder, transition and readout have.
        encoder: E, network input (B, ...) to z (B, d).
        transition: T.
        readout: R, z (B, d) to the standardised macrostate (B, m).
    """

    def __init__(
        self, spec: ModelSpec, *, encoder: nn.Module, transition: Transition, readout: nn.Module
    ) -> None:
        super().__init__()
        self.spec = spec
        self.encoder = encoder
        self.transition = transition
        self.readout = readout

    @classmethod
    def build(cls, spec: ModelSpec, description: Description) -> "Modules":
        """Builds E, T and R with fresh weights for a system's microstates and observables."""
        return cls(
            spec,
            encoder=spec.encoder.build(description.microstate, spec.latent_dim),
            transition=spec.transition.build(spec.latent_dim),
            readout=spec.readout.build(spec.latent_dim, len(description.observables)),
        )

    def add(self, others: Mapping[str, nn.Module]) -> None:
        """Adds modules that no model keeps, e.g. a decoder, by name."""
        for name, module in others.items():
            self.add_module(name, module)


class MacroModel(nn.Module):
    """A trained E, T and R: forecasts macrostates from initial microstates by itself.

    Arguments:
        description: The system it was trained on.
        normalization: Statistics of the training macrostates.
        modules: The modules; architecture, encoder, transition and readout are taken from them.
    """

    y_mean: Tensor
    y_std: Tensor

    def __init__(
        self, description: Description, *, normalization: Normalization, modules: Modules
    ) -> None:
        super().__init__()
        self.spec = modules.spec
        self.description = description
        self.encoder = modules.encoder
        self.transition = modules.transition
        self.readout = modules.readout
        # Copies, beside the weights: loading a model must not reach the caller's statistics.
        device = next(modules.transition.parameters()).device
        for name, value in (("y_mean", normalization.mean), ("y_std", normalization.std)):
            statistic = torch.tensor(value, dtype=torch.float64, device=device)
            self.register_buffer(name, statistic)

    @property
    def stochastic(self) -> bool:
        """Whether two rollouts from one microstate differ."""
        return self.transition.noise_dim > 0

    @property
    def normalization(self) -> Normalization:
        """Statistics of the training macrostates."""
        return Normalization(mean=self.y_mean.cpu().numpy(), std=self.y_std.cpu().numpy())

    @property
    def needs_macrostates(self) -> bool:
        """Whether it starts from y_0 instead of x_0."""
        return self.spec.encoder.reads == "y"

    def encode(self, microstates: Tensor, macrostates: Tensor | None = None) -> Tensor:
        """z_0 = E(x_0), or the standardised y_0 where there is no encoder: (B, d).

        Arguments:
            microstates: In stored form, (B, *shape).
            macrostates: In physical units, (B, m); for a model that `needs_macrostates`.
        """
        dtype = next(self.transition.parameters()).dtype
        if not self.needs_macrostates:
            return self.encoder(self.description.microstate.network_input(microstates, dtype))
        if macrostates is None:
            raise InputError("the model starts from macrostates; give `macrostates` at t = 0 too")
        return self.encoder(((macrostates - self.y_mean) / self.y_std).to(dtype))

    def read(self, z: Tensor) -> Tensor:
        """Y = R(z) in physical units, float64."""
        return self.readout(z).to(self.y_std.dtype) * self.y_std + self.y_mean

    def rollout(self, z: Tensor, noise: Tensor) -> Iterator[Tensor]:
        """Yields y_0, y_1, ..., y_H in physical units, each (B, m).

        Arguments:
            z: Initial latent states, (B, d).
            noise: Base noise of every step, (H, B, noise_dim).
        """
        yield self.read(z)
        for step_noise in noise:
            z = self.transition(z, step_noise)
            yield self.read(z)
