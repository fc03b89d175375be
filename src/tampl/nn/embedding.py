"""Features of the flow time s in [0, 1]: s itself, and sin and cos of pi k s for k = 1, ..., n."""

import math

import torch
from torch import Tensor, nn

__all__ = ["FourierFeatures"]


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
