r"""The first convolution of one-hot sites on a GPU, as a sum of table entries.

It has too few channels for the libraries' fast kernels. On one-hot sites the three states in a row
of a 3 x 3 patch make a code, and with the weights of that row summed in advance for every code

    y = T_0[code above] + T_1[code beside] + T_2[code below].

What follows, pad(silu(y + b)), is done in the same kernel, and y is made again on the way back
instead of being kept. The gradient of the weights is a product of one-hot patches with dy; a patch
is kept as the bits of one number.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from .padding_triton import channels_last, fold, slope

__all__ = ["MOST_STATES", "FirstLayer"]

MOST_STATES = 3
"""The bits of a patch, nine for each state, must fit into 32."""

SHARE, PIECE = 2048, 128
"""Outputs that one program of the product sums over, and how many of them at a time."""

CODES = 32
"""Entries of a table: at least MOST_STATES^3, and a power of two."""

PATCH = 32
"""Bits of a patch, unused ones included."""

SMALLEST = 16
"""Tensor cores multiply matrices of this size at least."""

BLOCK = 256


class FirstLayer(torch.autograd.Function):
    """pad(silu(conv(pad(x)) + b)) of one-hot sites x, for a 3 x 3 convolution."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int, dtype: torch.dtype
    ) -> Tensor:
        rows = channels_last(x)
        batch, height, width, states = rows.shape
        out_height, out_width = -(-height // stride), -(-width // stride)
        codes = _row_codes(rows, out_width, stride)
        table = _table(weight).to(dtype).contiguous()
        outputs = len(weight)
        padded = rows.new_empty((batch, out_height + 2, out_width + 2, outputs), dtype=dtype)
        _forward[(batch * (out_height + 2),)](
            *(codes, table, bias, padded, height, out_height, out_width, outputs),
            STRIDE=stride,
            CODES=CODES,
            WIDTH=_block(out_width + 2),
            OUTPUTS=_block(outputs),
            num_warps=2,
        )
        ctx.save_for_backward(codes, table, bias)
        ctx.stride, ctx.states = stride, states
        return padded.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor, None, None]:
        codes, table, bias = ctx.saved_tensors
        gradient = channels_last(gradients[0])
        batch, height, out_width = codes.shape
        out_height, outputs = gradient.shape[1] - 2, table.shape[-1]
        sites = batch * out_height * out_width
        dy = table.new_empty((sites, outputs))
        patches = torch.empty(sites, dtype=torch.int32, device=codes.device)
        bias_sums = bias.new_empty((batch * out_height, outputs), dtype=torch.float32)
        _backward[(batch * out_height,)](
            *(codes, table, bias, gradient, dy, patches, bias_sums),
            *(height, out_height, out_width, outputs),
            STRIDE=ctx.stride,
            STATES=ctx.states,
            CODES=CODES,
            WIDTH=_block(out_width),
            OUTPUTS=_block(outputs),
        )
        # Partial sums that are added up afterwards: atomics would not be reproducible.
        shares = triton.cdiv(sites, SHARE)
        sums = bias_sums.new_empty((shares, 9 * ctx.states, outputs))
        _multiply[(shares,)](
            *(patches, dy, sums, sites, 9 * ctx.states, outputs),
            SHARE=SHARE,
            PIECE=PIECE,
            PATCH=PATCH,
            OUTPUTS=_block(outputs),
            PRECISION="ieee" if table.dtype == torch.float32 else "tf32",
        )
        weight = sums.sum(dim=0).view(3, 3, ctx.states, outputs).permute(3, 2, 0, 1)
        return None, weight.contiguous(), bias_sums.sum(dim=0), None, None


def _row_codes(rows: Tensor, out_width: int, stride: int) -> Tensor:
    """Codes of the three sites around each output's in every row, (B, H, W') from (B, H, W, S)."""
    batch, height, width, states = rows.shape
    codes = torch.empty((batch, height, out_width), dtype=torch.uint8, device=rows.device)
    _encode_rows[(triton.cdiv(codes.numel(), BLOCK),)](
        *(rows, codes, codes.numel(), width, out_width),
        STRIDE=stride,
        STATES=states,
        BLOCK=BLOCK,
    )
    return codes


def _table(weight: Tensor) -> Tensor:
    """Sums of the weights (O, S, 3, 3) along each row of a patch: (3, CODES, O), by code."""
    left, middle, right = weight.permute(3, 2, 1, 0)
    sums = left[:, :, None, None] + middle[:, None, :, None] + right[:, None, None, :]
    sums = sums.flatten(1, 3)
    return pad(sums, (0, 0, 0, CODES - sums.shape[1]))


def _block(size: int) -> int:
    return max(SMALLEST, triton.next_power_of_2(size))


@triton.jit
def _wrap(i, n):
    i = tl.where(i < 0, i + n, i)
    return tl.where(i < n, i, i - n)


@triton.jit
def _encode_rows(
    x,
    codes,
    total,
    width,
    out_width,
    STRIDE: tl.constexpr,
    STATES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    p = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = p < total
    j, row = p % out_width, p // out_width
    code = tl.zeros((BLOCK,), dtype=tl.int32)
    for place in tl.static_range(3):
        site = row * width + _wrap(j * STRIDE + place - 1, width)
        code *= STATES
        for state in tl.static_range(1, STATES):
            here = tl.load(x + site * STATES + state, mask=mask, other=0.0)
            code += state * here.to(tl.int32)
    tl.store(codes + p, code.to(tl.uint8), mask=mask)


@triton.jit
def _forward(
    codes,
    table,
    bias,
    padded,
    height,
    out_height,
    out_width,
    outputs,
    STRIDE: tl.constexpr,
    CODES: tl.constexpr,
    WIDTH: tl.constexpr,
    OUTPUTS: tl.constexpr,
):
    """One padded row of outputs."""
    program = tl.program_id(0).to(tl.int64)
    image, i = program // (out_height + 2), program % (out_height + 2)
    column, o = tl.arange(0, WIDTH)[:, None], tl.arange(0, OUTPUTS)[None, :]
    mask = (column < out_width + 2) & (o < outputs)
    j = _wrap(column - 1, out_width)
    value = tl.zeros((WIDTH, OUTPUTS), dtype=tl.float32)
    value += tl.load(bias + o, mask=o < outputs, other=0.0).to(tl.float32)
    top = _wrap(i - 1, out_height) * STRIDE - 1
    for r in tl.static_range(3):
        row = (image * height + _wrap(top + r, height)) * out_width
        code = tl.load(codes + row + j, mask=column < out_width + 2, other=0).to(tl.int32)
        entry = table + (r * CODES + code) * outputs + o
        value += tl.load(entry, mask=mask, other=0.0).to(tl.float32)
    value *= tl.sigmoid(value)
    tl.store(padded + (program * (out_width + 2) + column) * outputs + o, value, mask=mask)


@triton.jit
def _backward(
    codes,
    table,
    bias,
    gradient,
    dy,
    patches,
    bias_sums,
    height,
    out_height,
    out_width,
    outputs,
    STRIDE: tl.constexpr,
    STATES: tl.constexpr,
    CODES: tl.constexpr,
    WIDTH: tl.constexpr,
    OUTPUTS: tl.constexpr,
):
    """One row of outputs: dy, the bits of its patches, and its share of the bias's gradient."""
    program = tl.program_id(0).to(tl.int64)
    image, i = program // out_height, program % out_height
    j, o = tl.arange(0, WIDTH)[:, None], tl.arange(0, OUTPUTS)[None, :]
    mask = (j < out_width) & (o < outputs)
    value = tl.zeros((WIDTH, OUTPUTS), dtype=tl.float32)
    value += tl.load(bias + o, mask=o < outputs, other=0.0).to(tl.float32)
    bits = tl.zeros((WIDTH, 1), dtype=tl.int32)
    for r in tl.static_range(3):
        row = (image * height + _wrap(i * STRIDE + r - 1, height)) * out_width
        code = tl.load(codes + row + j, mask=j < out_width, other=0).to(tl.int32)
        entry = table + (r * CODES + code) * outputs + o
        value += tl.load(entry, mask=mask, other=0.0).to(tl.float32)
        left, middle, right = code // (STATES * STATES), code // STATES % STATES, code % STATES
        bits |= 1 << (3 * r * STATES + left)
        bits |= 1 << ((3 * r + 1) * STATES + middle)
        bits |= 1 << ((3 * r + 2) * STATES + right)
    folded = fold(gradient, image, i, j, o, out_height, out_width, outputs, mask)
    folded = tl.where(mask, folded * slope(value), 0.0)
    site = program * out_width + j
    tl.store(dy + site * outputs + o, folded, mask=mask)
    tl.store(patches + site, bits, mask=j < out_width)
    out = tl.arange(0, OUTPUTS)
    tl.store(bias_sums + program * outputs + out, tl.sum(folded, axis=0), mask=out < outputs)


@triton.jit
def _multiply(
    patches,
    dy,
    sums,
    sites,
    entries,
    outputs,
    SHARE: tl.constexpr,
    PIECE: tl.constexpr,
    PATCH: tl.constexpr,
    OUTPUTS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One-hot patches (PATCH, SHARE) times dy (SHARE, OUTPUTS), for one share of the sites."""
    program = tl.program_id(0).to(tl.int64)
    bit, o = tl.arange(0, PATCH)[:, None], tl.arange(0, OUTPUTS)[None, :]
    total = tl.zeros((PATCH, OUTPUTS), dtype=tl.float32)
    for start in range(0, SHARE, PIECE):
        first = program * SHARE + start
        across, down = first + tl.arange(0, PIECE)[None, :], first + tl.arange(0, PIECE)[:, None]
        bits = tl.load(patches + across, mask=across < sites, other=0)
        rows = tl.load(dy + down * outputs + o, mask=(down < sites) & (o < outputs), other=0.0)
        one_hot = ((bits >> bit) & 1).to(rows.dtype)
        total += tl.dot(one_hot, rows, input_precision=PRECISION)
    target = sums + (program * entries + bit) * outputs + o
    tl.store(target, total, mask=(bit < entries) & (o < outputs))
