"""Multilayer perceptrons, residual maps, and the velocity field v(u_s, s; z) of a flow.

The flow time s in [0, 1] enters as s itself and as sin and cos of pi k s for k = 1, ..., n.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

__all__ = ["MLP", "SILU_GAIN", "FourierFeatures", "Residual", "VelocityMLP"]

SILU_GAIN = 1.68
"""1 / sqrt(E[silu(x)^2]) for a standard normal x: what keeps the size of activations."""


class MLP(nn.Sequential):
    """Linear layers with SiLU between them; with no hidden layer it is affine.

    Arguments:
        inputs: Number of input features.
        outputs: Number of output features.
        hidden: Widths of the hidden layers.

    Example:
        >>> import torch
        >>> MLP(3, 2, hidden=[16])(torch.zeros(5, 3)).shape
        torch.Size([5, 2])
    """

    def __init__(self, inputs: int, outputs: int, *, hidden: Sequence[int] = ()) -> None:
        widths = [inputs, *hidden, outputs]
        layers: list[nn.Module] = []
        for width, next_width in pairwise(widths):
            layers += [nn.Linear(width, next_width), nn.SiLU()]
        super().__init__(*layers[:-1])


class Residual(nn.Module):
    """x + f(x).

    Arguments:
        function: The map f, which keeps the shape of x.
    """

    def __init__(self, function: nn.Module) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return x + self.function(x)


class FourierFeatures(nn.Module):
    """Maps flow times (B, 1) to features (B, 1 + 2 n).

    Arguments:
        frequencies: Number n of frequencies.
    """

    k: Tensor

    def __init__(self, frequencies: int) -> None:
        super().__init__()
        self.features = 1 + 2 * frequencies
        # Whole numbers stay exact when the module is cast to another precision; pi k would not.
        self.register_buffer("k", torch.arange(1.0, frequencies + 1.0), persistent=False)

    def forward(self, s: Tensor) -> Tensor:
        phase = math.pi * s * self.k
        return torch.cat([s, phase.sin(), phase.cos()], dim=-1)


class VelocityMLP(nn.Module):
    """An MLP of the flow's state u, its condition z and features of its time s.

    Arguments:
        latent_dim: Size of u, and of z where `condition_dim` is not given.
        hidden: Hidden widths.
        condition_dim: Size of z.
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
        condition_dim: int | None = None,
        frequencies: int = 8,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.time = FourierFeatures(frequencies)
        inputs = latent_dim + (condition_dim or latent_dim) + self.time.features
        self.mlp = MLP(inputs, latent_dim, hidden=hidden)

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
