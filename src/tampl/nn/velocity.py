"""The velocity field v(u_s, s; z) of a conditional flow on vectors."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .embedding import FourierFeatures
from .mlp import MLP

__all__ = ["VelocityMLP"]


class VelocityMLP(nn.Module):
    """An MLP of the flow's state u, its condition z and features of its time s.

    Arguments:
        latent_dim: Size of u and of z.
        hidden: Hidden widths.
        frequencies: Number of Fourier frequencies of s.
    """

    def __init__(self, latent_dim: int, *, hidden: Sequence[int], frequencies: int = 8) -> None:
        super().__init__()
        self.time = FourierFeatures(frequencies)
        self.mlp = MLP(2 * latent_dim + self.time.features, latent_dim, hidden=hidden)

    def forward(self, u: Tensor, s: Tensor, z: Tensor) -> Tensor:
        return self.mlp(torch.cat([u, z, self.time(s)], dim=-1))
