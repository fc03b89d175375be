r"""Periodic convolutions on a GPU: bias, activation and circular padding in one kernel.

On a card the convolutions of a small encoder are cheap and the steps between them are not: adding
the bias, SiLU, and padding each read and write the whole field, and so do their gradients. Here

    p = pad(silu(y + b))                    from the output y of a convolution without bias,
    dy = fold(dp) silu'(y + b),    db = sum dy,

take one kernel each way; fold, the adjoint of circular padding, adds what the ghost rows and
columns received to the sites they are copies of. Fields are (B, C, H, W) with channels last in
memory, which is what convolutions in bfloat16 want.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, silu

__all__ = ["convolve"]

CHANNELS = 8
"""Channels of the first field: with fewer, tensor cores stay idle."""


def convolve(x: Tensor, convolutions: Sequence[nn.Conv2d], dtype: torch.dtype) -> Tensor:
    """SiLU(conv(pad(.))) for each 3 x 3 convolution in turn, on periodic lattices.

    Arguments:
        x: Network input on a GPU, (B, C, H, W); no gradient reaches it.
        convolutions: The convolutions, whose weights stay in their own precision.
        dtype: Precision of the arithmetic.
    """
    channels = -(-x.shape[1] // CHANNELS) * CHANNELS
    missing = channels - x.shape[1]
    field = _pad_input(x.detach(), channels, dtype)
    for number, convolution in enumerate(convolutions):
        weight = (
            convolution.weight if number else pad(convolution.weight, (0, 0, 0, 0, 0, missing))
        )
        weight = weight.to(dtype, memory_format=torch.channels_last)
        y = conv2d(field, weight, stride=convolution.stride)
        if number < len(convolutions) - 1:
            field = _ActivatedPad.apply(y, convolution.bias)
    bias = convolutions[-1].bias
    assert bias is not None
    return silu(y.float() + bias[:, None, None])


def _pad_input(x: Tensor, channels: int, dtype: torch.dtype) -> Tensor:
    rows = _channels_last(x)
    batch, height, width, _ = rows.shape
    padded = rows.new_empty((batch, height + 2, width + 2, channels), dtype=dtype)
    _launch_forward(rows, None, padded)
    return padded.permute(0, 3, 1, 2)


class _ActivatedPad(torch.autograd.Function):
    """pad(silu(y + b)) of a field."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, bias: Tensor) -> Tensor:
        rows = _channels_last(y)
        ctx.save_for_backward(rows, bias)
        batch, height, width, channels = rows.shape
        padded = rows.new_empty((batch, height + 2, width + 2, channels))
        _launch_forward(rows, bias, padded)
        return padded.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        rows, bias = ctx.saved_tensors
        gradient = _channels_last(gradients[0])
        batch, height, width, channels = rows.shape
        dy = torch.empty_like(rows)
        # One partial sum for each row of sites, added up afterwards: atomics would not be
        # reproducible.
        partial = torch.empty((batch * height, channels), dtype=bias.dtype, device=bias.device)
        _backward[(batch * height,)](
            rows,
            bias,
            gradient,
            dy,
            partial,
            height,
            width,
            channels,
            WIDTH=triton.next_power_of_2(width),
            CHANNELS=triton.next_power_of_2(channels),
        )
        return dy.permute(0, 3, 1, 2), partial.sum(dim=0)


def _channels_last(field: Tensor) -> Tensor:
    """(B, C, H, W) as (B, H, W, C), contiguous."""
    return field.permute(0, 2, 3, 1).contiguous()


def _launch_forward(rows: Tensor, bias: Tensor | None, padded: Tensor) -> None:
    batch, height, width, channels = rows.shape
    _forward[(batch * (height + 2),)](
        rows,
        rows if bias is None else bias,
        padded,
        height,
        width,
        channels,
        padded.shape[-1],
        ACTIVATE=bias is not None,
        WIDTH=triton.next_power_of_2(width + 2),
        CHANNELS=triton.next_power_of_2(padded.shape[-1]),
    )


@triton.jit
def _forward(
    y,
    bias,
    padded,
    height,
    width,
    channels,
    padded_channels,
    ACTIVATE: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """One padded row of sites."""
    row = tl.program_id(0).to(tl.int64)
    image, i = row // (height + 2), (row % (height + 2) + height - 1) % height
    column, c = tl.arange(0, WIDTH)[:, None], tl.arange(0, CHANNELS)[None, :]
    j = (column + width - 1) % width
    inside = column < width + 2
    source = ((image * height + i) * width + j) * channels + c
    value = tl.load(y + source, mask=inside & (c < channels), other=0.0).to(tl.float32)
    if ACTIVATE:
        value += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)
        value *= tl.sigmoid(value)
    target = (row * (width + 2) + column) * padded_channels + c
    tl.store(padded + target, value, mask=inside & (c < padded_channels))


@triton.jit
def _fold_row(gradient, start, j, c, width, channels, mask):
    """What a padded row of the gradient gives to the sites of a row."""
    total = tl.load(gradient + (start + j + 1) * channels + c, mask=mask, other=0.0)
    first, last = mask & (j == 0), mask & (j == width - 1)
    total = total.to(tl.float32)
    right = tl.load(gradient + (start + width + 1) * channels + c + 0 * j, mask=first, other=0.0)
    left = tl.load(gradient + start * channels + c + 0 * j, mask=last, other=0.0)
    return total + right.to(tl.float32) + left.to(tl.float32)


@triton.jit
def _backward(
    y,
    bias,
    gradient,
    dy,
    partial,
    height,
    width,
    channels,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """One row of sites."""
    row = tl.program_id(0).to(tl.int64)
    image, i = row // height, row % height
    j, c = tl.arange(0, WIDTH)[:, None], tl.arange(0, CHANNELS)[None, :]
    mask = (j < width) & (c < channels)
    top = image * (height + 2)
    folded = _fold_row(gradient, (top + i + 1) * (width + 2), j, c, width, channels, mask)
    if i == 0:
        ghost = (top + height + 1) * (width + 2)
        folded += _fold_row(gradient, ghost, j, c, width, channels, mask)
    if i == height - 1:
        folded += _fold_row(gradient, top * (width + 2), j, c, width, channels, mask)
    site = (row * width + j) * channels + c
    value = tl.load(y + site, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)
    sigmoid = tl.sigmoid(value)
    folded *= sigmoid * (1 + value * (1 - sigmoid))
    folded = tl.where(mask, folded, 0.0)
    tl.store(dy + site, folded, mask=mask)
    column = tl.arange(0, CHANNELS)
    tl.store(partial + row * channels + column, tl.sum(folded, axis=0), mask=column < channels)
