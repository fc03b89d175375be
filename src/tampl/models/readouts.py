"""Readouts R: each specification builds its module."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from torch import nn

from ..errors import InputError
from ..frozen import Frozen
from ..nn import MLP
from ..plugins import open_choice, register_entry
from .parts import Widths

__all__ = [
    "READOUTS",
    "AnyReadout",
    "IdentityReadoutSpec",
    "MLPReadoutSpec",
    "ReadoutSpec",
    "register_readout",
]


class ReadoutSpec(Frozen, ABC):
    """A readout as plain data, with the name by which recipes and checkpoints find it."""

    name: str

    @abstractmethod
    def build(self, latent_dim: int, observables: int) -> nn.Module:
        """Builds the module: z (B, latent_dim) to standardised macrostates (B, observables)."""


class MLPReadoutSpec(ReadoutSpec):
    """R(z) = MLP(z), affine where `hidden` is empty."""

    name: Literal["mlp"]
    hidden: Widths = (128, 128)

    def build(self, latent_dim: int, observables: int) -> nn.Module:
        """Builds the readout of the standardised macrostate."""
        return MLP(latent_dim, observables, hidden=self.hidden)


class IdentityReadoutSpec(ReadoutSpec):
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


READOUTS: dict[str, type[ReadoutSpec]] = {"mlp": MLPReadoutSpec, "identity": IdentityReadoutSpec}
"""Every specification of a readout by its name."""


def register_readout(name: str, spec: type[ReadoutSpec]) -> None:
    """Makes a readout from outside of the package known by its name, in recipes too."""
    register_entry(READOUTS, name, spec, what="readout")


if TYPE_CHECKING:
    AnyReadout = ReadoutSpec
else:
    AnyReadout = open_choice(READOUTS, group="tampl.readouts", base=ReadoutSpec)
