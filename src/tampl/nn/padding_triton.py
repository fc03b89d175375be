r"""Activation and circular padding of a field in one kernel, on a GPU.

On a card the convolutions of a small encoder are cheap and the steps between them are not: adding
the bias, SiLU, and padding each read and write the whole field, and so do their gradients. Here

    p = pad(silu(y + b))                    from the output y of a convolution without bias,
    dy = fold(dp) silu'(y + b),    db = sum dy,

take one kernel each way; fold, the adjoint of circular padding, adds what the ghost rows and
columns received to the sites they are copies of. A decoder's enlarging of the lattice only changes
which site a padded one is a copy of, and so is part of the same kernels. Fields are (B, C, H, W)
with channels last in memory, as convolutions in bfloat16 want them.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["ActivatedPad", "channels_last", "fold", "slope"]


class ActivatedPad(torch.autograd.Function):
    """pad(enlarge(silu(y + b))) of a field, where enlarging repeats sites up to a size."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, bias: Tensor, size: tuple[int, int]) -> Tensor:
        rows = channels_last(y)
        ctx.save_for_backward(rows, bias)
        ctx.size = size
        batch, height, width, channels = rows.shape
        padded = rows.new_empty((batch, size[0] + 2, size[1] + 2, channels))
        _forward[(batch * (size[0] + 2),)](
            *(rows, bias, padded, height, width, *size, channels),
            WIDTH=triton.next_power_of_2(size[1] + 2),
            CHANNELS=triton.next_power_of_2(channels),
        )
        return padded.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        rows, bias = ctx.saved_tensors
        batch, height, width, channels = rows.shape
        dy = torch.empty_like(rows)
        partial = torch.empty((batch * height, channels), dtype=bias.dtype, device=bias.device)
        gradient = channels_last(gradients[0])
        _backward[(batch * height,)](
            *(rows, bias, gradient, dy, partial, height, width, *ctx.size, channels),
            COPIES=1 if ctx.size == (height, width) else 2,
            WIDTH=triton.next_power_of_2(width),
            CHANNELS=triton.next_power_of_2(channels),
        )
        return dy.permute(0, 3, 1, 2), partial.sum(dim=0), None


def channels_last(field: Tensor) -> Tensor:
    """(B, C, H, W) as (B, H, W, C), contiguous."""
    return field.permute(0, 2, 3, 1).contiguous()


@triton.jit
def _forward(
    y,
    bias,
    padded,
    height,
    width,
    out_height,
    out_width,
    channels,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """One padded row of sites."""
    row = tl.program_id(0).to(tl.int64)
    image = row // (out_height + 2)
    i = (row % (out_height + 2) + out_height - 1) % out_height * height // out_height
    column, c = tl.arange(0, WIDTH)[:, None], tl.arange(0, CHANNELS)[None, :]
    j = (column + out_width - 1) % out_width * width // out_width
    mask = (column < out_width + 2) & (c < channels)
    site = ((image * height + i) * width + j) * channels + c
    value = tl.load(y + site, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)
    value *= tl.sigmoid(value)
    tl.store(padded + (row * (out_width + 2) + column) * channels + c, value, mask=mask)


@triton.jit
def _backward(
    y,
    bias,
    gradient,
    dy,
    partial,
    height,
    width,
    out_height,
    out_width,
    channels,
    COPIES: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """One row of sites, each with at most COPIES x COPIES copies of itself."""
    row = tl.program_id(0).to(tl.int64)
    image, i = row // height, row % height
    j, c = tl.arange(0, WIDTH)[:, None], tl.arange(0, CHANNELS)[None, :]
    mask = (j < width) & (c < channels)
    site = (row * width + j) * channels + c
    value = tl.load(y + site, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)
    folded = tl.zeros((WIDTH, CHANNELS), dtype=tl.float32)
    for copy in tl.static_range(COPIES * COPIES):
        # The copies of site i are those that i' height // out_height = i is true of.
        i_copy = (i * out_height + height - 1) // height + copy // COPIES
        j_copy = (j * out_width + width - 1) // width + copy % COPIES
        mine = mask & (i_copy * height + 0 * j < (i + 1) * out_height)
        mine = mine & (j_copy * width < (j + 1) * out_width)
        folded += fold(gradient, image, i_copy, j_copy, c, out_height, out_width, channels, mine)
    folded = tl.where(mask, folded * slope(value), 0.0)
    tl.store(dy + site, folded, mask=mask)
    column = tl.arange(0, CHANNELS)
    tl.store(partial + row * channels + column, tl.sum(folded, axis=0), mask=column < channels)


@triton.jit
def slope(value):
    """The derivative of SiLU."""
    sigmoid = tl.sigmoid(value)
    return sigmoid * (1 + value * (1 - sigmoid))


@triton.jit
def fold(gradient, image, i, j, c, height, width, channels, mask):
    """What the padded gradient gives to the sites of row i: their own, and that of ghosts."""
    top = image * (height + 2)
    folded = _fold_row(gradient, (top + i + 1) * (width + 2), j, c, width, channels, mask)
    if i == 0:
        ghost = (top + height + 1) * (width + 2)
        folded += _fold_row(gradient, ghost, j, c, width, channels, mask)
    if i == height - 1:
        folded += _fold_row(gradient, top * (width + 2), j, c, width, channels, mask)
    return folded


@triton.jit
def _fold_row(gradient, start, j, c, width, channels, mask):
    """What one padded row of the gradient gives to the sites of a row."""
    own = tl.load(gradient + (start + j + 1) * channels + c, mask=mask, other=0.0)
    first, last = mask & (j == 0), mask & (j == width - 1)
    right = tl.load(gradient + (start + width + 1) * channels + c + 0 * j, mask=first, other=0.0)
    left = tl.load(gradient + start * channels + c + 0 * j, mask=last, other=0.0)
    return own.to(tl.float32) + right.to(tl.float32) + left.to(tl.float32)
