"""Encoders E as plain data: each specification builds its module for a kind of microstate."""

from abc import ABC, abstractmethod
from copy import deepcopy
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, model_validator
from torch import nn

from ..errors import InputError
from ..frozen import Depth, Frozen, Width
from ..microstates import Chain, Image, Lattice, Microstate, Particles, Vector
from ..nn import MLP, DeepSet, Harmonics, LatticeEncoder, ResNet, group_norm
from ..plugins import open_choice, register_entry
from .parts import DTYPES, Precision, Source, Widths, mismatch
from .pretrained import load_imagenet

__all__ = [
    "ENCODERS",
    "AnyEncoder",
    "DeepSetEncoderSpec",
    "EncoderSpec",
    "LatticeEncoderSpec",
    "LinearEncoderSpec",
    "MLPEncoderSpec",
    "MacrostateEncoderSpec",
    "ModuleEncoderSpec",
    "ResNetEncoderSpec",
    "register_encoder",
]


class EncoderSpec(Frozen, ABC):
    """An encoder as plain data.

    Attributes:
        name: By which recipes and checkpoints find it again.
        reads: Whether it sees the microstate ("x") or the macrostate ("y") of a frame.
    """

    reads: ClassVar[Source] = "x"
    name: str

    @abstractmethod
    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the module: network input of the microstates (B, ...) to z (B, latent_dim)."""


class LatticeEncoderSpec(EncoderSpec):
    """Circular convolutions on the one-hot lattice.

    Attributes:
        widths: Channels after each convolution.
        hidden: Hidden widths of the closing MLP.
        precision: Of the convolutions on a GPU; a CPU has float32.
    """

    name: Literal["lattice"]
    widths: Widths = Field((32, 64, 128, 128), min_length=1)
    hidden: Widths = (128,)
    precision: Precision = "float32"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for lattices of one number of states."""
        if not isinstance(microstate, Lattice):
            raise mismatch(self.name, "lattice", microstate)
        return LatticeEncoder(
            microstate.states,
            latent_dim,
            widths=self.widths,
            hidden=self.hidden,
            dtype=DTYPES[self.precision],
        )


class DeepSetEncoderSpec(EncoderSpec):
    """A shared network on every particle, the mean over the set, an MLP.

    Attributes:
        widths: Features of a particle after each shared layer.
        hidden: Hidden widths of the closing MLP.
        harmonics: The largest wave number of the waves that the shared network sees in place of
            positions, summed over the axes (`Harmonics`).
        counts: Whether the network sees how many particles there are, for sets of various sizes.
        precision: Of the shared layers on a GPU; a CPU has float32.
    """

    name: Literal["deepset"]
    widths: Widths = Field((256, 256), min_length=1)
    hidden: Widths = (128,)
    # None, and not 0 or False: what was trained before there was a choice stays the same recipe.
    harmonics: int | None = Field(None, ge=1, le=16)
    counts: bool | None = None
    precision: Precision = "float32"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for particles of some types, however many."""
        if not isinstance(microstate, Particles):
            raise mismatch(self.name, "particles", microstate)
        return DeepSet(
            microstate.dim,
            microstate.types,
            embed=microstate.embed,
            outputs=latent_dim,
            widths=self.widths,
            hidden=self.hidden,
            lift=Harmonics(microstate.wraps, self.harmonics) if self.harmonics else None,
            counted=microstate.count if self.counts else None,
            dtype=DTYPES[self.precision],
        )


class ResNetEncoderSpec(EncoderSpec):
    """A residual network on pictures; as it stands, ResNet-34.

    Attributes:
        weights: What the network starts from: "none" for random weights, "imagenet" for those of
            torchvision, or the path of torchvision's file. It has to be said.
        widths: Channels of the four stages.
        blocks: Basic blocks of the four stages.
        norm: "group" to normalise groups of channels over each picture, with random weights;
            None for batch normalisation with fixed statistics, as the weights of a file need it.
        precision: Of the convolutions on a GPU; a CPU has float32.
    """

    name: Literal["resnet"]
    weights: str = Field(min_length=1)
    widths: tuple[Width, Width, Width, Width] = (64, 128, 256, 512)
    blocks: tuple[Depth, Depth, Depth, Depth] = (3, 4, 6, 3)
    norm: Literal["group"] | None = None
    precision: Precision = "float32"

    @model_validator(mode="after")
    def _refuse_other_sizes(self) -> Self:
        sizes = (self.widths, self.blocks)
        if self.weights != "none" and sizes != ((64, 128, 256, 512), (3, 4, 6, 3)):
            raise InputError(
                f"`weights` is {self.weights!r}, which are of ResNet-34, and `widths` or `blocks` "
                'are of another network: leave them out, or choose weights = "none"'
            )
        if self.weights != "none" and self.norm is not None:
            raise InputError(
                f"`norm` is {self.norm!r} and `weights` is {self.weights!r}, which belong to "
                'batch normalisation: leave `norm` out, or choose weights = "none"'
            )
        return self

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for pictures of any size."""
        if not isinstance(microstate, Chain | Image):
            raise mismatch(self.name, "chain or image", microstate)
        encoder = ResNet(
            latent_dim,
            widths=self.widths,
            blocks=self.blocks,
            norm=group_norm if self.norm == "group" else nn.BatchNorm2d,
            dtype=DTYPES[self.precision],
        )
        if self.weights != "none":
            load_imagenet(encoder, self.weights)
        return encoder


class MLPEncoderSpec(EncoderSpec):
    """An MLP on plain vectors."""

    name: Literal["mlp"]
    hidden: Widths = (128, 128)

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise mismatch(self.name, "vector", microstate)
        return MLP(microstate.size, latent_dim, hidden=self.hidden)


class LinearEncoderSpec(EncoderSpec):
    """E(x) = B x, the encoder of the paper's analysis."""

    name: Literal["linear"]

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise mismatch(self.name, "vector", microstate)
        return nn.Linear(microstate.size, latent_dim, bias=False)


class MacrostateEncoderSpec(EncoderSpec):
    """No encoder: the latent state is the standardised macrostate itself."""

    name: Literal["macrostate"]
    reads: ClassVar[Source] = "y"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the identity."""
        return nn.Identity()


class ModuleEncoderSpec(EncoderSpec):
    """A module of the user's own; a checkpoint keeps its weights and not its code.

    Attributes:
        module: The name of its class, for messages.
    """

    name: Literal["module"] = "module"
    module: str
    _given: nn.Module | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, module: nn.Module) -> "ModuleEncoderSpec":
        """The specification that builds copies of a module."""
        spec = cls(module=type(module).__name__)
        spec._given = module
        return spec

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Copies the module, so that every training starts from the same weights."""
        if self._given is None:
            raise InputError(
                f"the encoder is a module of class {self.module!r} from outside of tampl: give "
                "one as `encoder`, as in tampl.load(path, encoder=module)"
            )
        return deepcopy(self._given)


ENCODERS: dict[str, type[EncoderSpec]] = {
    "lattice": LatticeEncoderSpec,
    "deepset": DeepSetEncoderSpec,
    "resnet": ResNetEncoderSpec,
    "mlp": MLPEncoderSpec,
    "linear": LinearEncoderSpec,
    "macrostate": MacrostateEncoderSpec,
    "module": ModuleEncoderSpec,
}
"""Every specification of an encoder by its name."""


def register_encoder(name: str, spec: type[EncoderSpec]) -> None:
    """Makes an encoder from outside of the package known by its name, in recipes too."""
    register_entry(ENCODERS, name, spec, what="encoder")


if TYPE_CHECKING:
    AnyEncoder = EncoderSpec
else:
    AnyEncoder = open_choice(ENCODERS, group="tampl.encoders", base=EncoderSpec)
