"""Penalties that keep a batch of latent states from collapsing.

SIGReg compares the law of z with N(0, I) along random directions. For a unit vector a and the
projections t_n = <z_n, a> of N states, the Epps-Pulley statistic is

    N int | phi_N(t) - exp(-t^2 / 2) |^2 exp(-t^2 / 2) dt,    phi_N(t) = 1/N sum_n exp(i t t_n),

here by the trapezoidal rule on [0, 5], doubled by symmetry, and averaged over directions that are
drawn anew for every batch. VICReg penalises small variances and all covariances:

    v = 1/d sum_j max(0, 1 - sqrt(Var z_j + 1e-4)),    c = 1/d sum_{i != j} Cov(z_i, z_j)^2.

Both depend on statistics of the whole batch. Where several processes share a batch, sums are taken
over all of them, with gradients: the mean of the processes' gradients is then that of the whole.

References: Balestriero and LeCun, "LeJEPA", 2025; Bardes, Ponce and LeCun, "VICReg", ICLR 2022.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor, nn

from ..description import Description
from ..frozen import Count, Frozen
from ..models import ModelSpec, Modules
from ..plugins import open_choice, register_entry
from ..training.ranks import sum_over_ranks
from ..training.stages import Batch, Latents

__all__ = [
    "PENALTIES",
    "AnyPenalty",
    "Penalty",
    "Sig",
    "Vic",
    "epps_pulley",
    "register_penalty",
    "vicreg_terms",
]

_KNOTS, _LIMIT = 17, 5.0


_VARIANCE_FLOOR = 1e-4


class Penalty(Frozen, ABC):
    """A term of the joint loss beside those of the readout and the transition.

    Attributes:
        moves: Names of the modules that only this term needs, which are trained with the others.
        needs: Fields of a batch that only this term needs.
        shared: Names of draws that belong to a batch as a whole and not to its pairs.
    """

    moves: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[frozenset[str]] = frozenset()
    name: str

    @abstractmethod
    def modules(self, spec: ModelSpec, description: Description) -> Mapping[str, nn.Module]:
        """Builds those modules, by name."""

    @abstractmethod
    def draw(
        self, modules: Modules, count: int, generator: torch.Generator
    ) -> Mapping[str, Tensor]:
        """Draws what the term of a batch of `count` pairs needs, on the generator's device."""

    @abstractmethod
    def loss(self, modules: Modules, latents: Latents, batch: Batch) -> Tensor:
        """The weighted term of a batch of pairs and its latent states."""


class Sig(Penalty):
    """Sketched isotropic Gaussian regularisation.

    Attributes:
        weight: Weight of the mean statistic.
        slices: Number of random directions.
    """

    shared: ClassVar[frozenset[str]] = frozenset({"directions"})
    name: Literal["sig"] = "sig"
    weight: PositiveFloat = 0.05
    slices: Count = 256

    def modules(self, spec: ModelSpec, description: Description) -> Mapping[str, nn.Module]:
        return {}

    def draw(
        self, modules: Modules, count: int, generator: torch.Generator
    ) -> Mapping[str, Tensor]:
        shape, device = (modules.spec.latent_dim, self.slices), generator.device
        directions = torch.randn(shape, generator=generator, device=device)
        return {"directions": directions / directions.norm(dim=0)}

    def loss(self, modules: Modules, latents: Latents, batch: Batch) -> Tensor:
        z = latents.both
        return self.weight * epps_pulley(z @ batch.noise["directions"].to(z.dtype)).mean()


class Vic(Penalty):
    """Variance and covariance penalties of VICReg.

    Attributes:
        variance: Weight of the variance hinge.
        covariance: Weight of the squared covariances.
    """

    name: Literal["vic"] = "vic"
    variance: NonNegativeFloat = 25.0
    covariance: NonNegativeFloat = 1.0

    def modules(self, spec: ModelSpec, description: Description) -> Mapping[str, nn.Module]:
        return {}

    def draw(
        self, modules: Modules, count: int, generator: torch.Generator
    ) -> Mapping[str, Tensor]:
        return {}

    def loss(self, modules: Modules, latents: Latents, batch: Batch) -> Tensor:
        variance, covariance = vicreg_terms(latents.both)
        return self.variance * variance + self.covariance * covariance


def epps_pulley(projections: Tensor) -> Tensor:
    """The statistic against N(0, 1) of each column of projections (N, S): (S,)."""
    t = torch.linspace(0, _LIMIT, _KNOTS, dtype=projections.dtype, device=projections.device)
    phase = projections.unsqueeze(-1) * t
    count = sum_over_ranks(projections.new_full((), len(projections)))
    real, imaginary = (
        sum_over_ranks(part.sum(dim=0)) / count for part in (phase.cos(), phase.sin())
    )
    gaussian = torch.exp(-(t**2) / 2)
    distance = (real - gaussian).square() + imaginary.square()
    return 2 * count * torch.trapezoid(distance * gaussian, t, dim=-1)


def vicreg_terms(z: Tensor) -> tuple[Tensor, Tensor]:
    """The variance hinge v and the covariance penalty c of latent states (N, d)."""
    count = sum_over_ranks(z.new_full((), len(z)))
    centred = z - sum_over_ranks(z.sum(dim=0)) / count
    covariance = sum_over_ranks(centred.T @ centred) / (count - 1).clamp_min(1)
    std = (covariance.diagonal() + _VARIANCE_FLOOR).sqrt()
    off_diagonal = covariance - covariance.diagonal().diag()
    return (1 - std).clamp_min(0).mean(), off_diagonal.square().sum() / z.shape[1]


PENALTIES: dict[str, type[Penalty]] = {"sig": Sig, "vic": Vic}
"""Every penalty by its name."""


def register_penalty(name: str, penalty: type[Penalty]) -> None:
    """Makes a penalty from outside of the package known by its name, for `penalty` of JLD."""
    register_entry(PENALTIES, name, penalty, what="penalty")


if TYPE_CHECKING:
    AnyPenalty = Penalty
else:
    AnyPenalty = open_choice(PENALTIES, group="tampl.penalties", base=Penalty)
