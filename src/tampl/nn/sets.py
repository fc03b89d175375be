r"""Networks for sets of particles, blind to the order of their members.

A DeepSet shares one network phi among all particles and sees the set through a mean:

    z = rho(a (1/n sum_i phi(r_i, c_i) - m)),    r_i a position, c_i the one-hot of a type,

with a fixed factor a and m the mean of the initial phi over particles of all types everywhere. A
mean cannot count; where the number n of particles varies, rho sees log(n / N) beside it.

A small phi of plain coordinates is smooth, and a mean over it hardly sees the fine structure of a
pattern. phi may therefore be given waves of the position (`Harmonics`): the means of these are the
Fourier coefficients of the particles' density.

Sets of fewer than N particles are filled up with rows of zeros. phi has no biases and SiLU(0) = 0,
so that such a row stays exactly zero and a plain sum over all rows leaves it out. Nothing is lost:
the one-hot gives the first layer a bias for each type.

The other way, from z to a set, goes a law of one particle, q(r, c | z) = q_pos(r | z)
q_type(c | r, z), which all particles share.

References: Zaheer et al., "Deep Sets", NeurIPS 2017; Durkan et al., "Neural Spline Flows", NeurIPS
2019.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, log_softmax, silu
from zuko.flows import NSF

from .mlp import MLP, SILU_GAIN

__all__ = ["DeepSet", "Harmonics", "ParticleLaw"]

SCALE = 4.0
"""Splines act on [-5, 5]; this brings positions in [-1, 1] inside, with room for noise."""

CONTRAST = 4.0
"""By how much sets are set apart, before their mean and behind it; `DeepSet` says why."""

LAST_GAIN = 0.5
"""Of the last layer, where others have `SILU_GAIN`: patterns then begin some 0.4 apart."""

_GRID = 16


class DeepSet(nn.Module):
    """Shared layers, mean over particles, MLP: (B, N, dim + types) to (B, outputs).

    As a function it is exactly invariant under permutations of the particles and under rows of
    zeros; in floating point, up to the order of a sum.

    Under a mean over hundreds of particles all sets look much alike, and little is learned of the
    clusters in them for long. So rho sees how a set differs from a mixture without any structure,
    `CONTRAST` times enlarged; weights keep the size of activations, those of the first layer are
    `CONTRAST` times larger, such that its units tell places and types apart, and those of the last
    smaller, such that encodings begin no wider than the base noise of a flow.

    Arguments:
        dim: Coordinates of a particle, the first columns of the input.
        types: Number of types, whose one-hot is the last columns; all zero where no particle is.
        embed: What the first columns are of coordinates in [-1, 1], (..., dim) to (..., features);
            the coordinates themselves by default.
        outputs: Size of the encoding.
        widths: Features of a particle after each shared layer.
        hidden: Hidden widths of the closing MLP.
        lift: What phi sees of the embedded columns, (..., features) to (..., more); themselves by
            default.
        counted: The number N that sets are counted against; None where all have the same size.
        dtype: Precision of the shared layers on a GPU; weights, sum and MLP keep their own.

    Example:
        >>> encoder = DeepSet(2, 2, outputs=8, widths=[16, 16], hidden=[16])
        >>> encoder(torch.zeros(5, 100, 4)).shape
        torch.Size([5, 8])
    """

    mixed: Tensor

    def __init__(
        self,
        dim: int,
        types: int,
        *,
        embed: Callable[[Tensor], Tensor] = lambda coordinates: coordinates,
        outputs: int,
        widths: Sequence[int],
        hidden: Sequence[int],
        lift: nn.Module | None = None,
        counted: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.types = types
        self.lift = lift
        self.counted = counted
        self.dtype = dtype
        places = self._places(dim, embed)
        features = (places if lift is None else lift(places)).shape[1]
        self.layers = nn.ModuleList(
            nn.Linear(width, next_width, bias=False)
            for width, next_width in itertools.pairwise([features + types, *widths])
        )
        self.head = MLP(widths[-1] + (counted is not None), outputs, hidden=hidden)
        for layer in (*self.layers[1:], *self.head):
            if isinstance(layer, nn.Linear):
                gain = LAST_GAIN if layer is self.head[-1] else SILU_GAIN
                nn.init.normal_(layer.weight, std=gain / layer.in_features**0.5)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        # A particle has its coordinates and one type; the other inputs are zero.
        first = self.layers[0].get_parameter("weight")
        nn.init.normal_(first, std=CONTRAST / (features + 1) ** 0.5)
        # Kept with the weights, which mean nothing without it.
        self.register_buffer("mixed", self._mixture(places))

    @staticmethod
    def _places(dim: int, embed: Callable[[Tensor], Tensor]) -> Tensor:
        """The first columns of particles at every point of a grid."""
        axis = (torch.arange(_GRID) + 0.5) * (2 / _GRID) - 1
        return embed(torch.cartesian_prod(*[axis] * dim).reshape(-1, dim))

    @torch.no_grad()
    def _mixture(self, places: Tensor) -> Tensor:
        """The mean of phi over particles of every type at some places."""
        types = torch.eye(self.types).repeat_interleave(len(places), dim=0)
        particles = torch.cat([places.repeat(self.types, 1), types], dim=-1)
        return self.features(particles, particles.dtype).mean(dim=0)

    def forward(self, x: Tensor) -> Tensor:
        low = x.is_cuda and self.dtype == torch.bfloat16
        features = self.features(x, self.dtype if low else x.dtype)
        present = x[..., -self.types :].sum(dim=(-2, -1)).clamp_min(1)
        mean = features.sum(dim=-2, dtype=x.dtype) / present.unsqueeze(-1)
        seen = CONTRAST * (mean - self.mixed)
        if self.counted is not None:
            number = (present / self.counted).log().unsqueeze(-1)
            seen = torch.cat([seen, CONTRAST * number], dim=-1)
        return self.head(seen)

    def features(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """The phi of every particle, (B, N, widths[-1]), in a given precision."""
        first, *others = (layer.get_parameter("weight").to(dtype) for layer in self.layers)
        if self.lift is not None:
            columns, types = x[..., : -self.types], x[..., -self.types :]
            # Rows of zeros stay zero, whatever the lift makes of them.
            x = torch.cat([self.lift(columns) * types.sum(dim=-1, keepdim=True), types], dim=-1)
        h = x.to(dtype)
        if dtype != x.dtype:
            # Eight bits of a position are too few; what they leave of it goes in beside it.
            h = torch.cat([h, (x - h).to(dtype)], dim=-1)
            first = torch.cat([first, first], dim=-1)
        for weight in (first, *others):
            h = silu(linear(h, weight))
        return h


class Harmonics(nn.Module):
    r"""Products of waves along all axes, for all wave numbers whose sum is at most `degree`.

    Along an axis with walls these are standing waves, cos(pi k (r + 1) / 2) of a coordinate r in
    [-1, 1]; along a periodic one cos(k theta) and sin(k theta), of the columns cos(theta) and
    sin(theta). Further columns are handed on.

    Arguments:
        wraps: Which axes are periodic.
        degree: The largest sum of wave numbers.

    Example:
        >>> Harmonics((False, False), 2)(torch.zeros(7, 2)).shape
        torch.Size([7, 5])
    """

    numbers: Tensor
    chosen: Tensor

    def __init__(self, wraps: Sequence[bool], degree: int) -> None:
        super().__init__()
        self.wraps = tuple(wraps)
        numbers = torch.arange(degree + 1)
        # Along an axis with walls the sines have no place among the products.
        waves = [range(degree + 1 + degree * wrap) for wrap in self.wraps]
        orders = [*numbers.tolist(), *numbers[1:].tolist()]
        chosen = [
            wave
            for wave in itertools.product(*waves)
            if 0 < sum(orders[k] for k in wave) <= degree
        ]
        # Not saved: they follow from the specification.
        self.register_buffer("numbers", numbers, persistent=False)
        self.register_buffer("chosen", torch.tensor(chosen).T, persistent=False)

    def forward(self, seen: Tensor) -> Tensor:
        product, first = seen.new_ones(()), 0
        for wraps, chosen in zip(self.wraps, self.chosen, strict=True):
            column = seen[..., first : first + 1]
            if wraps:
                angle = torch.atan2(seen[..., first + 1 : first + 2], column) * self.numbers
                waves = torch.cat([angle.cos(), angle[..., 1:].sin()], dim=-1)
            else:
                waves = (torch.pi / 2 * (column + 1) * self.numbers).cos()
            product = product * waves.index_select(-1, chosen)
            first += 1 + wraps
        return torch.cat([product, seen[..., first:]], dim=-1)


class ParticleLaw(nn.Module):
    """q(r, c | z): an autoregressive spline flow for the position, a softmax for the type.

    The flow takes scaled positions to a standard normal. The scale is accounted for: q_pos is a
    density of the positions themselves and integrates to one over r.

    Arguments:
        latent_dim: Size of z.
        dim: Coordinates of a particle.
        types: Number of types.
        transforms: Number of spline transformations, in alternating order of the coordinates.
        bins: Bins of a spline.
        hidden: Hidden widths of the network behind each transformation.
        type_hidden: Hidden widths of the network of the types.
    """

    def __init__(
        self,
        latent_dim: int,
        dim: int,
        types: int,
        *,
        transforms: int,
        bins: int,
        hidden: Sequence[int],
        type_hidden: Sequence[int],
    ) -> None:
        super().__init__()
        self.dim = dim
        self.types = types
        self.positions = NSF(
            dim,
            context=latent_dim,
            bins=bins,
            transforms=transforms,
            hidden_features=hidden,
            activation=nn.SiLU,
        )
        self.kinds = MLP(dim + latent_dim, types, hidden=type_hidden)

    def log_position(self, r: Tensor, z: Tensor) -> Tensor:
        """The log q_pos(r | z) of positions (..., dim) given z (..., d): (...)."""
        # zuko keeps torch's distributions from validating values, which would wait for a GPU.
        return self.positions(z).log_prob(SCALE * r) + self.dim * math.log(SCALE)

    def log_type(self, r: Tensor, z: Tensor) -> Tensor:
        """The log q_type(c | r, z) of every type c: (..., types)."""
        return log_softmax(self.kinds(torch.cat([SCALE * r, z], dim=-1)), dim=-1)
