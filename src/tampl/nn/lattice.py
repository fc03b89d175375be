"""Convolutions on periodic lattices.

Circular padding makes a convolution commute with the lattice's translations; a mean over the sites
then forgets where on the lattice a pattern sits. With k convolutions of stride 2 this holds for
shifts by 2^k sites, and only where 2^k divides the lattice's size: an odd size on the way down
leaves an uneven grid.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from .mlp import MLP

__all__ = ["LatticeEncoder"]


class LatticeEncoder(nn.Module):
    """Stride-2 circular convolutions, mean over sites, MLP: (B, C, H, W) to (B, outputs).

    Arguments:
        channels: Number of input channels, one per state of a site.
        outputs: Size of the encoding.
        widths: Channels after each convolution; each halves the lattice.
        hidden: Hidden widths of the closing MLP.
    """

    def __init__(
        self, channels: int, outputs: int, *, widths: Sequence[int], hidden: Sequence[int]
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in widths:
            layers += [
                nn.Conv2d(channels, width, 3, stride=2, padding=1, padding_mode="circular"),
                nn.SiLU(),
            ]
            channels = width
        self.convolutions = nn.Sequential(*layers)
        self.head = MLP(channels, outputs, hidden=hidden)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.convolutions(x).mean(dim=(-2, -1)))
