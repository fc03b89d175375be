r"""Periodic convolutions on a GPU: bias, activation and circular padding in one kernel.

On a card the convolutions of a small encoder are cheap and the steps between them are not: adding
the bias, SiLU, and padding each read and write the whole field, and so do their gradients. Here

    p = pad(silu(y + b))                    from the output y of a convolution without bias,
    dy = fold(dp) silu'(y + b),    db = sum dy,

take one kernel each way; fold, the adjoint of circular padding, adds what the ghost rows and
columns received to the sites they are copies of. The first convolution has too few channels for
the libraries' fast kernels. It is a product of 3 x 3 patches with a small matrix, and is done
together with what follows it; its output is made again on the way back instead of being kept.
Fields are (B, C, H, W) with channels last in memory, as convolutions in bfloat16 want them.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.nn.functional import conv2d, silu

__all__ = ["convolve"]

CHUNKS = 4
"""Parts of an image whose sums in the first layer's gradient are made by programs of their own."""

SMALLEST = 16
"""Tensor cores multiply matrices of this size at least."""


def convolve(x: Tensor, convolutions: Sequence[nn.Conv2d], dtype: torch.dtype) -> Tensor:
    """SiLU(conv(pad(.))) for each 3 x 3 convolution in turn, on periodic lattices.

    Arguments:
        x: Network input on a GPU, (B, C, H, W); no gradient reaches it.
        convolutions: The convolutions, whose weights stay in their own precision.
        dtype: Precision of the arithmetic.
    """
    first, *others = convolutions
    weight, bias, (stride, _) = first.weight, first.bias, first.stride
    field = _FirstLayer.apply(x.detach(), weight, bias, stride, dtype)
    for number, convolution in enumerate(others, start=1):
        weight = convolution.weight.to(dtype, memory_format=torch.channels_last)
        y, bias = conv2d(field, weight, stride=convolution.stride), convolution.bias
        assert bias is not None
        if number == len(others):
            return silu(y.float() + bias[:, None, None])
        field = _ActivatedPad.apply(y, bias)
    return field[..., 1:-1, 1:-1].float()


class _FirstLayer(torch.autograd.Function):
    """pad(silu(conv(pad(x)) + b)) of a field of few channels."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int, dtype: torch.dtype
    ) -> Tensor:
        rows, matrix = _channels_last(x), _as_matrix(weight, dtype)
        ctx.save_for_backward(rows, matrix, bias)
        ctx.stride, ctx.shape = stride, weight.shape
        batch, height, width, channels = rows.shape
        out_height, out_width = -(-height // stride), -(-width // stride)
        shape = (batch, out_height + 2, out_width + 2, matrix.shape[1])
        padded = rows.new_empty(shape, dtype=dtype)
        _first_forward[(batch * (out_height + 2),)](
            *(rows, matrix, bias, padded),
            *(height, width, out_height, out_width, channels, matrix.shape[1]),
            STRIDE=stride,
            WIDTH=_block(out_width + 2),
            INPUTS=_block(len(matrix)),
            OUTPUTS=_block(matrix.shape[1]),
            PRECISION=_precision(dtype),
        )
        return padded.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor, None, None]:
        rows, matrix, bias = ctx.saved_tensors
        batch, height, width, channels = rows.shape
        gradient = _channels_last(gradients[0])
        out_height, out_width = gradient.shape[1] - 2, gradient.shape[2] - 2
        shape = (batch * CHUNKS, len(matrix) + 1, matrix.shape[1])
        # One partial sum for each part of an image, the bias in the last row, added up
        # afterwards: atomics would not be reproducible.
        partial = torch.empty(shape, dtype=torch.float32, device=rows.device)
        _first_backward[(batch * CHUNKS,)](
            *(rows, matrix, bias, gradient, partial),
            *(height, width, out_height, out_width, channels, matrix.shape[1]),
            STRIDE=ctx.stride,
            CHUNKS=CHUNKS,
            WIDTH=_block(out_width),
            INPUTS=_block(len(matrix)),
            OUTPUTS=_block(matrix.shape[1]),
            PRECISION=_precision(matrix.dtype),
        )
        total = partial.sum(dim=0)
        outputs, inputs, *_ = ctx.shape
        weight = total[:-1].view(3, 3, inputs, outputs).permute(3, 2, 0, 1)
        return None, weight.contiguous(), total[-1], None, None


class _ActivatedPad(torch.autograd.Function):
    """pad(silu(y + b)) of a field."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, bias: Tensor) -> Tensor:
        rows = _channels_last(y)
        ctx.save_for_backward(rows, bias)
        batch, height, width, channels = rows.shape
        padded = rows.new_empty((batch, height + 2, width + 2, channels))
        _forward[(batch * (height + 2),)](
            *(rows, bias, padded, height, width, channels),
            WIDTH=triton.next_power_of_2(width + 2),
            CHANNELS=triton.next_power_of_2(channels),
        )
        return padded.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        rows, bias = ctx.saved_tensors
        batch, height, width, channels = rows.shape
        dy = torch.empty_like(rows)
        partial = torch.empty((batch * height, channels), dtype=bias.dtype, device=bias.device)
        _backward[(batch * height,)](
            *(rows, bias, _channels_last(gradients[0]), dy, partial, height, width, channels),
            WIDTH=triton.next_power_of_2(width),
            CHANNELS=triton.next_power_of_2(channels),
        )
        return dy.permute(0, 3, 1, 2), partial.sum(dim=0)


def _channels_last(field: Tensor) -> Tensor:
    """(B, C, H, W) as (B, H, W, C), contiguous."""
    return field.permute(0, 2, 3, 1).contiguous()


def _as_matrix(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """The weight (O, C, 3, 3) as the matrix (9 C, O) that patches are multiplied with."""
    return weight.permute(2, 3, 1, 0).flatten(0, 2).to(dtype).contiguous()


def _block(size: int) -> int:
    return max(SMALLEST, triton.next_power_of_2(size))


def _precision(dtype: torch.dtype) -> str:
    return "ieee" if dtype == torch.float32 else "tf32"


@triton.jit
def _patches(x, image, i, j, height, width, channels, STRIDE: tl.constexpr, INPUTS: tl.constexpr):
    """Patches (positions, 9 C) around the sites that the outputs (i, j) belong to."""
    k = tl.arange(0, INPUTS)[None, :]
    place, c = k // channels, k % channels
    row = (i * STRIDE + place // 3 - 1 + height) % height
    column = (j * STRIDE + place % 3 - 1 + width) % width
    site = (image * height + row) * width + column
    return tl.load(x + site * channels + c, mask=k < 9 * channels, other=0.0)


@triton.jit
def _load_matrix(matrix, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    k, o = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    return tl.load(matrix + k * columns + o, mask=(k < rows) & (o < columns), other=0.0)


@triton.jit
def _first_forward(
    x,
    matrix,
    bias,
    padded,
    height,
    width,
    out_height,
    out_width,
    channels,
    outputs,
    STRIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    INPUTS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One padded row of outputs."""
    row = tl.program_id(0).to(tl.int64)
    image = row // (out_height + 2)
    i = (row % (out_height + 2) + out_height - 1) % out_height
    column, o = tl.arange(0, WIDTH)[:, None], tl.arange(0, OUTPUTS)[None, :]
    j = (column + out_width - 1) % out_width
    weight = _load_matrix(matrix, 9 * channels, outputs, INPUTS, OUTPUTS)
    patches = _patches(x, image, i, j, height, width, channels, STRIDE, INPUTS)
    value = tl.dot(patches.to(weight.dtype), weight, input_precision=PRECISION)
    value += tl.load(bias + o, mask=o < outputs, other=0.0).to(tl.float32)
    value *= tl.sigmoid(value)
    target = (row * (out_width + 2) + column) * outputs + o
    tl.store(padded + target, value, mask=(column < out_width + 2) & (o < outputs))


@triton.jit
def _first_backward(
    x,
    matrix,
    bias,
    gradient,
    partial,
    height,
    width,
    out_height,
    out_width,
    channels,
    outputs,
    STRIDE: tl.constexpr,
    CHUNKS: tl.constexpr,
    WIDTH: tl.constexpr,
    INPUTS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The sums over every CHUNKS-th row of outputs of an image."""
    program = tl.program_id(0).to(tl.int64)
    image, chunk = program // CHUNKS, program % CHUNKS
    j, o = tl.arange(0, WIDTH)[:, None], tl.arange(0, OUTPUTS)[None, :]
    mask = (j < out_width) & (o < outputs)
    weight = _load_matrix(matrix, 9 * channels, outputs, INPUTS, OUTPUTS)
    shift = tl.load(bias + o, mask=o < outputs, other=0.0).to(tl.float32)
    weight_sum = tl.zeros((INPUTS, OUTPUTS), dtype=tl.float32)
    bias_sum = tl.zeros((OUTPUTS,), dtype=tl.float32)
    for i in range(chunk, out_height, CHUNKS):
        patches = _patches(x, image, i, j, height, width, channels, STRIDE, INPUTS)
        patches = patches.to(weight.dtype)
        value = tl.dot(patches, weight, input_precision=PRECISION) + shift
        dy = _fold(gradient, image, i, j, o, out_height, out_width, outputs, mask)
        dy = tl.where(mask, dy * _slope(value), 0.0)
        bias_sum += tl.sum(dy, axis=0)
        turned = tl.trans(patches)
        weight_sum += tl.dot(turned, dy.to(weight.dtype), input_precision=PRECISION)
    k, out = tl.arange(0, INPUTS)[:, None], tl.arange(0, OUTPUTS)
    start = partial + program * (9 * channels + 1) * outputs
    inside = (k < 9 * channels) & (o < outputs)
    tl.store(start + k * outputs + o, weight_sum, mask=inside)
    tl.store(start + 9 * channels * outputs + out, bias_sum, mask=out < outputs)


@triton.jit
def _forward(
    y, bias, padded, height, width, channels, WIDTH: tl.constexpr, CHANNELS: tl.constexpr
):
    """One padded row of sites."""
    row = tl.program_id(0).to(tl.int64)
    image, i = row // (height + 2), (row % (height + 2) + height - 1) % height
    column, c = tl.arange(0, WIDTH)[:, None], tl.arange(0, CHANNELS)[None, :]
    j = (column + width - 1) % width
    mask = (column < width + 2) & (c < channels)
    site = ((image * height + i) * width + j) * channels + c
    value = tl.load(y + site, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)
    value *= tl.sigmoid(value)
    tl.store(padded + (row * (width + 2) + column) * channels + c, value, mask=mask)


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
    site = (row * width + j) * channels + c
    value = tl.load(y + site, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)
    folded = _fold(gradient, image, i, j, c, height, width, channels, mask)
    folded = tl.where(mask, folded * _slope(value), 0.0)
    tl.store(dy + site, folded, mask=mask)
    column = tl.arange(0, CHANNELS)
    tl.store(partial + row * channels + column, tl.sum(folded, axis=0), mask=column < channels)


@triton.jit
def _slope(value):
    """The derivative of SiLU."""
    sigmoid = tl.sigmoid(value)
    return sigmoid * (1 + value * (1 - sigmoid))


@triton.jit
def _fold(gradient, image, i, j, c, height, width, channels, mask):
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
