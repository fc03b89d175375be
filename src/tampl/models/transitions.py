r"""Latent transitions T: deterministic (linear or not) and stochastic.

A transition gives its own loss l_tr(T; z_t, z_{t+1}) and one step z_t -> z_{t+1}. Randomness is
data: the loss takes the draws it needs, a step takes its base noise w_0 (of size 0 where the
transition is deterministic).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..flow import flow_matching_loss, solve
from ..flow.solver import Step
from ..nn import VelocityMLP

__all__ = ["DeterministicTransition", "FlowTransition", "Noise", "Transition"]

Noise = Mapping[str, Tensor]


class Transition(nn.Module, ABC):
    """One step of the latent dynamics.

    Attributes:
        noise_dim: Size of the base noise of one step; 0 for a deterministic transition.
    """

    noise_dim: int

    @abstractmethod
    def loss(self, z: Tensor, z_next: Tensor, noise: Noise) -> Tensor:
        """Batch mean of l_tr for latent pairs (B, d) and the draws of `draw`."""

    @abstractmethod
    def spread(self, z: Tensor) -> Tensor:
        """The variance of latent states (n, d), features reduced as the loss reduces them."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Noise:
        """Draws what the loss of `count` pairs needs, on the generator's device."""

    @abstractmethod
    def forward(self, z: Tensor, noise: Tensor) -> Tensor:
        """The next latent state of z (B, d) given base noise (B, noise_dim)."""


class DeterministicTransition(Transition):
    """A map T with the squared loss || T(z_t) - z_{t+1} ||^2 of the paper's analysis.

    Arguments:
        network: The map T, (B, d) to (B, d).
    """

    noise_dim = 0

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, z: Tensor, z_next: Tensor, noise: Noise) -> Tensor:
        return (self.network(z) - z_next).square().sum(dim=-1).mean()

    def spread(self, z: Tensor) -> Tensor:
        return z.var(dim=0, correction=0).sum()

    def draw(self, count: int, generator: torch.Generator) -> Noise:
        return {}

    def forward(self, z: Tensor, noise: Tensor) -> Tensor:
        return self.network(z)


class FlowTransition(Transition):
    """The conditional flow: T(. | z_t) is the law of w_1 under d w/d s = v(w, s; z_t).

    Arguments:
        velocity: The velocity field.
        latent_dim: Size of the latent state.
        step: The solver's step, e.g. `tampl.flow.midpoint`.
        steps: Number of solver steps for one transition.
    """

    def __init__(self, velocity: VelocityMLP, latent_dim: int, *, step: Step, steps: int) -> None:
        super().__init__()
        self.velocity = velocity
        self.noise_dim = latent_dim
        self.step = step
        self.steps = steps

    def loss(self, z: Tensor, z_next: Tensor, noise: Noise) -> Tensor:
        return flow_matching_loss(self.velocity, z, z_next, s=noise["s"], epsilon=noise["epsilon"])

    def spread(self, z: Tensor) -> Tensor:
        return z.var(dim=0, correction=0).mean()

    def draw(self, count: int, generator: torch.Generator) -> Noise:
        dtype, device = next(self.parameters()).dtype, generator.device
        shape = (count, self.noise_dim)
        return {
            "s": torch.rand((count, 1), generator=generator, dtype=dtype, device=device),
            "epsilon": torch.randn(shape, generator=generator, dtype=dtype, device=device),
        }

    def forward(self, z: Tensor, noise: Tensor) -> Tensor:
        return solve(self.velocity, noise, z, step=self.step, steps=self.steps)
