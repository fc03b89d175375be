"""Convolutions on periodic lattices.

Circular padding makes a convolution commute with the lattice's translations; a mean over the sites
then forgets where on the lattice a pattern sits. With k convolutions of stride 2 this holds for
shifts by 2^k sites, and only where 2^k divides the lattice's size: an odd size on the way down
leaves an uneven grid. A decoder goes the other way: it doubles a coarse lattice until the exact
size is reached, odd sizes included.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, interpolate

from .mlp import MLP, SILU_GAIN

__all__ = ["CircularConv2d", "LatticeDecoder", "LatticeEncoder", "doubled_sizes"]


class CircularConv2d(nn.Conv2d):
    """A 3 x 3 convolution on a periodic lattice: (B, C, H, W) to (B, C', H / stride, W / stride).

    Arguments:
        channels: Number of input channels.
        outputs: Number of output channels.
        stride: Step between the sites that are kept; sizes are rounded up.
    """

    def __init__(self, channels: int, outputs: int, *, stride: int = 1) -> None:
        super().__init__(channels, outputs, 3, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return conv2d(_CircularPad.apply(x), self.weight, self.bias, self.stride)


class _CircularPad(torch.autograd.Function):
    """One more row and column on each side, from the other side.

    By hand, because torch's own circular padding fills and adds whole tensors on the way back: on
    two cores this saves a fifth of an encoder's step.
    """

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        padded = x.new_empty(*x.shape[:-2], height + 2, width + 2)
        padded[..., 1:-1, 1:-1] = x
        padded[..., 0, 1:-1], padded[..., -1, 1:-1] = x[..., -1, :], x[..., 0, :]
        padded[..., 0], padded[..., -1] = padded[..., -2], padded[..., 1]
        return padded

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        columns = gradient[..., 1:-1].clone()
        columns[..., -1] += gradient[..., 0]
        columns[..., 0] += gradient[..., -1]
        inner = columns[..., 1:-1, :]
        inner[..., -1, :] += columns[..., 0, :]
        inner[..., 0, :] += columns[..., -1, :]
        return inner


class LatticeEncoder(nn.Module):
    """Stride-2 circular convolutions, mean over sites, MLP: (B, C, H, W) to (B, outputs).

    After k convolutions a site has seen 2^(k + 1) - 1 sites across: patterns further apart than
    that look alike. Torch's initial weights make activations several times smaller in each layer;
    ours keep their size, however many layers there are.

    Arguments:
        channels: Number of input channels, one per state of a site.
        outputs: Size of the encoding.
        widths: Channels after each convolution; each halves the lattice.
        hidden: Hidden widths of the closing MLP.
        dtype: Precision of the convolutions on a GPU; weights and MLP keep their own.
    """

    def __init__(
        self,
        channels: int,
        outputs: int,
        *,
        widths: Sequence[int],
        hidden: Sequence[int],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        layers: list[nn.Module] = []
        for width, next_width in pairwise([channels, *widths]):
            convolution = CircularConv2d(width, next_width, stride=2)
            nn.init.normal_(convolution.weight, std=SILU_GAIN / (9 * width) ** 0.5)
            nn.init.zeros_(convolution.get_parameter("bias"))
            layers += [convolution, nn.SiLU()]
        self.convolutions = nn.Sequential(*layers)
        self.head = MLP(widths[-1], outputs, hidden=hidden)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self._field(x).mean(dim=(-2, -1)))

    def _field(self, x: Tensor) -> Tensor:
        if not (x.is_cuda and self.dtype == torch.bfloat16):
            return self.convolutions(x)
        from .lattice_triton import convolve  # Triton comes with torch for GPUs only

        layers = [layer for layer in self.convolutions if isinstance(layer, CircularConv2d)]
        return convolve(x, layers, self.dtype).to(x.dtype)


def doubled_sizes(size: tuple[int, int], doublings: int) -> list[tuple[int, int]]:
    """Heights and widths from the coarsest on: halves of `size` rounded up, as strides go down.

    Example:
        >>> doubled_sizes((100, 25), 2)
        [(25, 7), (50, 13), (100, 25)]
    """
    height, width = size
    return [(-(-height // 2**k), -(-width // 2**k)) for k in range(doublings, -1, -1)]


class LatticeDecoder(nn.Module):
    """MLP to a coarse lattice, then doublings with circular convolutions: z to (B, C, H, W).

    Arguments:
        inputs: Size of the encoding.
        channels: Number of output channels, one per state of a site.
        size: Height and width of the lattice, which are met exactly.
        widths: Channels before each convolution, the coarsest lattice first; each doubles it.
        hidden: Hidden widths of the opening MLP.
        dtype: Precision of the convolutions on a GPU; weights and MLP keep their own.
    """

    def __init__(
        self,
        inputs: int,
        channels: int,
        *,
        size: tuple[int, int],
        widths: Sequence[int],
        hidden: Sequence[int],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.sizes = doubled_sizes(size, len(widths))
        height, width = self.sizes[0]
        self.coarse = (widths[0], height, width)
        self.head = MLP(inputs, widths[0] * height * width, hidden=hidden)
        self.convolutions = nn.ModuleList(
            CircularConv2d(width, next_width)
            for width, next_width in pairwise([*widths, channels])
        )

    def forward(self, z: Tensor) -> Tensor:
        field, sizes = self.head(z).unflatten(-1, self.coarse), self.sizes[1:]
        if z.is_cuda and self.dtype == torch.bfloat16:
            from .lattice_triton import deconvolve  # Triton comes with torch for GPUs only

            layers = [layer for layer in self.convolutions if isinstance(layer, CircularConv2d)]
            return deconvolve(field, layers, sizes, self.dtype).to(z.dtype)
        for size, convolution in zip(sizes, self.convolutions, strict=True):
            field = convolution(interpolate(nn.functional.silu(field), size=size))
        return field
