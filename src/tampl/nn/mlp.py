"""Multilayer perceptrons and residual maps."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

__all__ = ["MLP", "SILU_GAIN", "Residual"]

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
