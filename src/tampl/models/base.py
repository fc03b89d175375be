r"""The macroscopic model: E, T and R with what they need to stand alone.

At inference the encoder sees the initial microstate only (the paper's Algorithm 2):

    z_0 = E(x_0),    z_{t+1} ~ T(. | z_t),    y_t = R(z_t).

The readout speaks standardised macrostates; the model returns physical units.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..data.normalization import Normalization
from ..systems.base import Description
from .spec import ModelSpec
from .transitions import Transition

__all__ = ["MacroModel", "Modules"]


class Modules(nn.Module):
    """The modules of a training run by name; a method may add some that no model keeps.

    Arguments:
        encoder: E, network input (B, ...) to z (B, d).
        transition: T.
        readout: R, z (B, d) to the standardised macrostate (B, m).
        others: Further modules, e.g. a decoder.

    Attributes:
        latent_dim: Size of z, where the modules were built from a specification.
    """

    latent_dim: int

    def __init__(
        self, encoder: nn.Module, transition: Transition, readout: nn.Module, **others: nn.Module
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.transition = transition
        self.readout = readout
        for name, module in others.items():
            self.add_module(name, module)

    @classmethod
    def build(cls, spec: ModelSpec, description: Description) -> "Modules":
        """Builds E, T and R with fresh weights for a system's microstates and observables."""
        built = cls(
            encoder=spec.encoder.build(description.microstate, spec.latent_dim),
            transition=spec.transition.build(spec.latent_dim),
            readout=spec.readout.build(spec.latent_dim, len(description.observables)),
        )
        built.latent_dim = spec.latent_dim
        return built


class MacroModel(nn.Module):
    """A trained E, T and R: forecasts macrostates from initial microstates by itself.

    Arguments:
        spec: The architecture, so that a checkpoint can rebuild it.
        description: The system it was trained on.
        normalization: Statistics of the training macrostates.
        modules: The modules; encoder, transition and readout are taken from them.
    """

    y_mean: Tensor
    y_std: Tensor

    def __init__(
        self,
        spec: ModelSpec,
        description: Description,
        *,
        normalization: Normalization,
        modules: Modules,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.description = description
        self.encoder = modules.encoder
        self.transition = modules.transition
        self.readout = modules.readout
        # Copies, beside the weights: loading a model must not reach the caller's statistics.
        device = next(modules.readout.parameters()).device
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

    def encode(self, microstates: Tensor) -> Tensor:
        """Z = E(x) for microstates in stored form, (B, *shape) to (B, d)."""
        dtype = next(self.encoder.parameters()).dtype
        return self.encoder(self.description.microstate.network_input(microstates, dtype))

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
