"""Readouts R: each specification builds its module."""

from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from ..errors import InputError
from ..frozen import Frozen
from ..nn import MLP
from .parts import Widths

__all__ = ["AnyReadout", "IdentityReadoutSpec", "MLPReadoutSpec"]


class MLPReadoutSpec(Frozen):
    """R(z) = MLP(z), affine where `hidden` is empty."""

    name: Literal["mlp"]
    hidden: Widths = (128, 128)

    def build(self, latent_dim: int, observables: int) -> nn.Module:
        """Builds the readout of the standardised macrostate."""
        return MLP(latent_dim, observables, hidden=self.hidden)


class IdentityReadoutSpec(Frozen):
    """R(z) = z, where the latent state is the macrostate."""

    name: Literal["identity"]

    def build(self, latent_dim: int, observables: int) -> nn.Module:
        """Builds the identity."""
        if latent_dim != observables:
            raise InputError(
                f"the readout `identity` needs as many latent dimensions as observables; "
                f"`model.latent_dim` is {latent_dim}, the system has {observables}"
            )
        return nn.Identity()


AnyReadout = Annotated[MLPReadoutSpec | IdentityReadoutSpec, Field(discriminator="name")]
