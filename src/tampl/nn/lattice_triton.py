"""Periodic convolutions of a lattice on a GPU, with fused steps between the library's products."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, silu

from .first_layer_triton import MOST_STATES, FirstLayer
from .padding_triton import ActivatedPad

__all__ = ["convolve", "deconvolve"]


def convolve(x: Tensor, convolutions: Sequence[nn.Conv2d], dtype: torch.dtype) -> Tensor:
    """SiLU(conv(pad(.))) for each 3 x 3 convolution in turn, on periodic lattices.

    Arguments:
        x: One-hot sites on a GPU, (B, C, H, W); no gradient reaches them.
        convolutions: The convolutions, whose weights stay in their own precision.
        dtype: Precision of the arithmetic.
    """
    first, *others = convolutions
    assert first.bias is not None
    stride = first.stride[0]
    if x.shape[1] <= MOST_STATES:
        field = FirstLayer.apply(x.detach(), first.weight, first.bias, stride, dtype)
    else:
        weight = first.weight.to(dtype, memory_format=torch.channels_last)
        y = conv2d(pad(x.detach().to(dtype), (1, 1, 1, 1), mode="circular"), weight, stride=stride)
        field = ActivatedPad.apply(y, first.bias, y.shape[-2:])
    for number, convolution in enumerate(others, start=1):
        weight = convolution.weight.to(dtype, memory_format=torch.channels_last)
        y, bias = conv2d(field, weight, stride=convolution.stride), convolution.bias
        assert bias is not None
        if number == len(others):
            return silu(y.float() + bias[:, None, None])
        field = ActivatedPad.apply(y, bias, y.shape[-2:])
    return field[..., 1:-1, 1:-1].float()


def deconvolve(
    field: Tensor,
    convolutions: Sequence[nn.Conv2d],
    sizes: Sequence[tuple[int, int]],
    dtype: torch.dtype,
) -> Tensor:
    """conv(pad(enlarge(SiLU(.)))) for each 3 x 3 convolution in turn, on periodic lattices.

    Arguments:
        field: The coarsest field on a GPU, (B, C, H, W).
        convolutions: The convolutions of stride 1, whose weights stay in their own precision.
        sizes: Height and width before each, from one to two times those of the field before; a
            site is repeated.
        dtype: Precision of the arithmetic.
    """
    y, bias = field.to(dtype), field.new_zeros(field.shape[1])
    for size, convolution in zip(sizes, convolutions, strict=True):
        weight = convolution.weight.to(dtype, memory_format=torch.channels_last)
        y = conv2d(ActivatedPad.apply(y, bias, size), weight)
        assert convolution.bias is not None
        bias = convolution.bias
    return y.float() + bias[:, None, None]
