"""ImageNet weights of ResNet-34: torchvision's public file, checked and adapted to gray pictures.

The file is looked for where torch keeps what it has downloaded (`torch.hub.get_dir()`), and
fetched once if it is not there; or its path is given. Its name carries the first digits of its
SHA-256, against which it is checked before it is read, and it is read as tensors only, so no code
in it runs.

Encoders as data.
"""

import hashlib
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from ..errors import InputError
from ..frozen import Frozen
from ..microstates import Chain, Image, Lattice, Microstate, Particles, Vector
from ..nn import MLP, DeepSet, LatticeEncoder
from ..nn.images import IMAGENET_MEAN, ResNet
from .parts import DTYPES, Precision, Source, Widths, mismatch

__all__ = [
    "URL",
    "AnyEncoder",
    "DeepSetEncoderSpec",
    "LatticeEncoderSpec",
    "LinearEncoderSpec",
    "MLPEncoderSpec",
    "MacrostateEncoderSpec",
    "ResNetEncoderSpec",
    "load_imagenet",
]

URL = "https://download.pytorch.org/models/resnet34-b627a593.pth"


DIGEST = "b627a593"


def load_imagenet(encoder: ResNet, weights: str) -> None:
    """Gives a ResNet-34 the weights of torchvision, all but those of its last layer.

    Arguments:
        encoder: The network; changed.
        weights: "imagenet", or the path of torchvision's file.
    """
    tensors = _read(_fetch() if weights == "imagenet" else Path(weights))
    # A gray picture has three equal channels: their weights add up.
    tensors["conv1.weight"] = tensors["conv1.weight"].sum(dim=1, keepdim=True)
    own = {name: value for name, value in encoder.state_dict().items() if name.startswith("fc.")}
    encoder.load_state_dict({**tensors, **own, "mean": torch.tensor(IMAGENET_MEAN)})


def _fetch() -> Path:
    path = Path(torch.hub.get_dir()) / "checkpoints" / Path(URL).name
    if path.is_file():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(URL, str(path), hash_prefix=DIGEST, progress=False)
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"the ImageNet weights could not be had from {URL} ({error}): give the path of that "
            "file as `model.encoder.weights`, or start from random weights by "
            'weights = "none"'
        ) from error
    return path


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise InputError(
            f"`weights` is {str(path)!r}, and no such file exists: give torchvision's "
            f'{Path(URL).name}, or choose "imagenet" or "none"'
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if not digest.startswith(DIGEST):
        raise InputError(
            f"{path} is not torchvision's file: its SHA-256 begins with {digest[:8]}, not with "
            f"{DIGEST}; get {URL} again"
        )
    return torch.load(path, map_location="cpu", weights_only=True)


class LatticeEncoderSpec(Frozen):
    """Circular convolutions on the one-hot lattice.

    Attributes:
        widths: Channels after each convolution.
        hidden: Hidden widths of the closing MLP.
        precision: Of the convolutions on a GPU; a CPU has float32.
    """

    name: Literal["lattice"]
    reads: ClassVar[Source] = "x"
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


class DeepSetEncoderSpec(Frozen):
    """A shared network on every particle, the mean over the set, an MLP.

    Attributes:
        widths: Features of a particle after each shared layer.
        hidden: Hidden widths of the closing MLP.
        precision: Of the shared layers on a GPU; a CPU has float32.
    """

    name: Literal["deepset"]
    reads: ClassVar[Source] = "x"
    widths: Widths = Field((256, 256), min_length=1)
    hidden: Widths = (128,)
    precision: Precision = "float32"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for particles of some types, however many."""
        if not isinstance(microstate, Particles):
            raise mismatch(self.name, "particles", microstate)
        return DeepSet(
            microstate.dim,
            microstate.types,
            outputs=latent_dim,
            widths=self.widths,
            hidden=self.hidden,
            dtype=DTYPES[self.precision],
        )


class ResNetEncoderSpec(Frozen):
    """A residual network on pictures; as it stands, ResNet-34.

    Attributes:
        weights: What the network starts from: "none" for random weights, "imagenet" for those of
            torchvision, or the path of torchvision's file. It has to be said.
        widths: Channels of the four stages.
        blocks: Basic blocks of the four stages.
        precision: Of the convolutions on a GPU; a CPU has float32.
    """

    name: Literal["resnet"]
    reads: ClassVar[Source] = "x"
    weights: str = Field(min_length=1)
    widths: tuple[PositiveInt, PositiveInt, PositiveInt, PositiveInt] = (64, 128, 256, 512)
    blocks: tuple[PositiveInt, PositiveInt, PositiveInt, PositiveInt] = (3, 4, 6, 3)
    precision: Precision = "float32"

    @model_validator(mode="after")
    def _refuse_other_sizes(self) -> Self:
        sizes = (self.widths, self.blocks)
        if self.weights != "none" and sizes != ((64, 128, 256, 512), (3, 4, 6, 3)):
            raise InputError(
                f"`weights` is {self.weights!r}, which are of ResNet-34, and `widths` or `blocks` "
                'are of another network: leave them out, or choose weights = "none"'
            )
        return self

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for pictures of any size."""
        if not isinstance(microstate, Chain | Image):
            raise mismatch(self.name, "chain or image", microstate)
        encoder = ResNet(
            latent_dim, widths=self.widths, blocks=self.blocks, dtype=DTYPES[self.precision]
        )
        if self.weights != "none":
            load_imagenet(encoder, self.weights)
        return encoder


class MLPEncoderSpec(Frozen):
    """An MLP on plain vectors."""

    name: Literal["mlp"]
    reads: ClassVar[Source] = "x"
    hidden: Widths = (128, 128)

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise mismatch(self.name, "vector", microstate)
        return MLP(microstate.size, latent_dim, hidden=self.hidden)


class LinearEncoderSpec(Frozen):
    """E(x) = B x, the encoder of the paper's analysis."""

    name: Literal["linear"]
    reads: ClassVar[Source] = "x"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the encoder for vectors of one size."""
        if not isinstance(microstate, Vector):
            raise mismatch(self.name, "vector", microstate)
        return nn.Linear(microstate.size, latent_dim, bias=False)


class MacrostateEncoderSpec(Frozen):
    """No encoder: the latent state is the standardised macrostate itself."""

    name: Literal["macrostate"]
    reads: ClassVar[Source] = "y"

    def build(self, microstate: Microstate, latent_dim: int) -> nn.Module:
        """Builds the identity."""
        return nn.Identity()


AnyEncoder = Annotated[
    LatticeEncoderSpec
    | DeepSetEncoderSpec
    | ResNetEncoderSpec
    | MLPEncoderSpec
    | LinearEncoderSpec
    | MacrostateEncoderSpec,
    Field(discriminator="name"),
]
