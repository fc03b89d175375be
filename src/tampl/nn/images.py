"""From a latent state back to a picture."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, interpolate, silu

from .lattice import doubled_sizes
from .mlp import MLP

__all__ = ["ImageDecoder"]

_DARK = -4.0
"""Logit that every pixel starts near: pictures of chains are black but for some percent."""


class ImageDecoder(nn.Module):
    """MLP to a coarse picture, then doublings with 3 x 3 convolutions: z (B, d) to (B, 1, H, W).

    Arguments:
        inputs: Size of the encoding.
        size: Height and width of the picture, which are met exactly.
        widths: Channels before each convolution, the coarsest picture first; each doubles it.
        hidden: Hidden widths of the opening MLP.
        dtype: Precision of the convolutions on a GPU; weights and MLP keep their own.
    """

    def __init__(
        self,
        inputs: int,
        *,
        size: tuple[int, int],
        widths: Sequence[int],
        hidden: Sequence[int],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.sizes = doubled_sizes(size, len(widths))
        self.coarse = (widths[0], *self.sizes[0])
        self.head = MLP(inputs, widths[0] * self.sizes[0][0] * self.sizes[0][1], hidden=hidden)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(width, next_width, 3, padding=1)
            for width, next_width in pairwise([*widths, 1])
        )
        nn.init.constant_(self.convolutions[-1].get_parameter("bias"), _DARK)

    def forward(self, z: Tensor) -> Tensor:
        """Logits of the intensities."""
        field = self.head(z).unflatten(-1, self.coarse)
        if z.is_cuda:
            field = field.to(self.dtype, memory_format=torch.channels_last)
        for size, convolution in zip(self.sizes[1:], self.convolutions, strict=True):
            weight, bias = (p.to(field.dtype) for p in convolution.parameters())
            field = conv2d(interpolate(silu(field), size=size), weight, bias, padding=1)
        return field.to(z.dtype)
