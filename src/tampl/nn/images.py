"""Networks on gray pictures: residual networks as encoders, and a decoder back to a picture.

Parameters have the names of torchvision's. The network is that of He et al.: a 7 x 7 stem, four
stages of basic blocks, the mean over the picture, one linear layer. `blocks` of 3, 4, 6, 3 and
`widths` of 64, 128, 256, 512 are ResNet-34. It differs from torchvision's in three points.

*One channel.* A gray picture repeated in three equal channels gives the same as one channel with
the weights of the stem summed over its channels; so ImageNet's stem is summed, and gray levels are
normalised by the mean over channels of ImageNet's means and standard deviations. With random
weights no mean is subtracted: what is black stays zero, and pictures differ by their light only.

*Statistics of batch normalisation are fixed*, at ImageNet's or, without those, at mean 0 and
variance 1. What a picture is encoded to then depends on that picture alone, in training as in
evaluation: a cached latent state equals what the encoder returns, an average of weights needs no
statistics of its own, and processes that train together need not exchange any. Scale and shift are
trained, and applied to the weights of the convolution instead of its output, which saves a pass
over the activations. Where weights are random, groups of channels may be normalised instead, over
one picture: activations then keep their size, at the cost of a pass over them.

*Branches start small.* Without normalisation a residual branch would double the variance in every
block. Branches of n blocks start with a scale of n^(-1/2), so that it grows by a factor e at most.
Not at zero: of a small picture the shortcuts alone see a few pixels, which may all be black.

References:
    He et al., "Deep residual learning for image recognition", CVPR 2016; Hayou et al., "Stable
    ResNet", AISTATS 2021, for the scale of branches; Wu and He, "Group normalization", ECCV 2018.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, interpolate, relu, silu

from .lattice import doubled_sizes
from .mlp import MLP

__all__ = ["IMAGENET_MEAN", "ImageDecoder", "Norm", "ResNet", "group_norm"]

IMAGENET_MEAN = 0.449
"""Mean gray level of ImageNet, over its three channels."""


_STD = 0.226  # likewise its standard deviation


Norm = Callable[[int], nn.Module]
"""Makes the normalisation of so many channels."""


def group_norm(channels: int) -> nn.GroupNorm:
    """A normalisation of groups of four channels or more, at most 32 groups."""
    return nn.GroupNorm(math.gcd(channels, min(32, max(1, channels // 4))), channels)


class ResNet(nn.Module):
    """A residual network: pictures (B, 1, H, W) with values in [0, 1] to (B, outputs).

    The buffer `mean` is the gray level that counts as zero, beside the weights that go with it.

    Arguments:
        outputs: Size of the encoding.
        widths: Channels of the four stages.
        blocks: Basic blocks of the four stages.
        norm: What follows each convolution, by its number of channels: `nn.BatchNorm2d`, whose
            statistics are fixed, or `group_norm`.
        dtype: Precision of the convolutions on a GPU; weights and the last layer keep their own.
    """

    mean: Tensor

    def __init__(
        self,
        outputs: int,
        *,
        widths: Sequence[int] = (64, 128, 256, 512),
        blocks: Sequence[int] = (3, 4, 6, 3),
        norm: Norm = nn.BatchNorm2d,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.register_buffer("mean", torch.tensor(0.0))
        self.conv1 = nn.Conv2d(1, widths[0], 7, stride=2, padding=3, bias=False)
        self.bn1 = norm(widths[0])
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(widths[0], widths[0], blocks[0], norm, stride=1)
        self.layer2 = _stage(widths[0], widths[1], blocks[1], norm, stride=2)
        self.layer3 = _stage(widths[1], widths[2], blocks[2], norm, stride=2)
        self.layer4 = _stage(widths[2], widths[3], blocks[3], norm, stride=2)
        self.fc = nn.Linear(widths[-1], outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, BasicBlock):
                nn.init.constant_(module.bn2.get_parameter("weight"), sum(blocks) ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.mean) / _STD
        if x.is_cuda:
            x = x.to(self.dtype, memory_format=torch.channels_last)
        x = self.maxpool(relu(_convolve(x, self.conv1, self.bn1)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.to(self.fc.weight.dtype).mean(dim=(-2, -1)))


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions beside the identity, or a 1 x 1 convolution where sizes change."""

    def __init__(self, inputs: int, width: int, norm: Norm, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = norm(width)
        self.downsample: nn.Sequential | None = None
        if stride > 1 or inputs != width:
            shortcut = nn.Conv2d(inputs, width, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shortcut, norm(width))

    def forward(self, x: Tensor) -> Tensor:
        branch = _convolve(relu(_convolve(x, self.conv1, self.bn1)), self.conv2, self.bn2)
        return relu(branch + (x if self.downsample is None else _convolve(x, *self.downsample)))


def _stage(inputs: int, width: int, count: int, norm: Norm, *, stride: int) -> nn.Sequential:
    rest = (BasicBlock(width, width, norm, stride=1) for _ in range(count - 1))
    return nn.Sequential(BasicBlock(inputs, width, norm, stride=stride), *rest)


def _convolve(x: Tensor, convolution: nn.Module, norm: nn.Module) -> Tensor:
    """A convolution and its normalisation; that of a batch is in evaluation mode, in one."""
    assert isinstance(convolution, nn.Conv2d)
    if isinstance(norm, nn.GroupNorm):
        weight = convolution.weight.to(x.dtype)
        x = conv2d(x, weight, None, convolution.stride, convolution.padding)
        scale, shift = norm.weight.to(x.dtype), norm.bias.to(x.dtype)
        return nn.functional.group_norm(x, norm.num_groups, scale, shift, norm.eps)
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None and norm.running_var is not None
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
    weight = convolution.weight * scale[:, None, None, None]
    shift = norm.bias - norm.running_mean * scale
    return conv2d(
        x, weight.to(x.dtype), shift.to(x.dtype), convolution.stride, convolution.padding
    )


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
