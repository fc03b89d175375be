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
        dtype: Precision of the products between hidden layers, which are nearly all of the
            arithmetic. The first and the last layer keep that of the weights: states rounded to
            three digits would be other states.
    """

    def __init__(
        self,
        latent_dim: int,
        *,
        hidden: Sequence[int],
        frequencies: int = 8,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.time = FourierFeatures(frequencies)
        self.mlp = MLP(2 * latent_dim + self.time.features, latent_dim, hidden=hidden)

    def forward(self, u: Tensor, s: Tensor, z: Tensor) -> Tensor:
        time = self.time(s).expand(len(u), -1)
        inputs = torch.cat([u, z, time], dim=-1)
        if self.dtype == torch.float32:
            return self.mlp(inputs)
        first, *between, last = self.mlp
        features = first(inputs).to(self.dtype)
        # Without its cache: a recorded step must cast the weights anew each time it is replayed.
        with torch.autocast(inputs.device.type, dtype=self.dtype, cache_enabled=False):
            for layer in between:
                features = layer(features)
        return last(features.to(inputs.dtype))
