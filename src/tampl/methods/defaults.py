"""Settings for data of any kind and size, where the user gives none: all of them, with reasons.

Architecture, from the kind and size of the microstates:
    latent_dim    8, and twice the number of observables where that is more: the paper's systems
                  level off at 4 to 16.
    encoder       lattices: circular convolutions of stride 2 down to a lattice of about 4 x 4;
                  particles: a DeepSet, which sees waves of the positions, whose means are Fourier
                  coefficients of the density, and counts particles where their number varies;
                  pictures and chains: a thin residual network from random weights, a tenth of
                  ResNet-34's cost; vectors: an MLP.
    transition    a conditional flow of 3 x 256, four midpoint steps that shorten towards the end:
                  a wider velocity network was the largest gain on the paper's lattice, and more
                  steps differ by noise only.
    readout       an MLP with one hidden layer of 128.
    decoder       for the methods that reconstruct, the encoder's mirror image.

Training, from the number of training pairs:
    batch_size    pairs / 150 as a power of two, between 32 and 512: some 150 steps an epoch, as in
                  the recipes that were tuned.
    epochs        as many as make 4,500 steps of each stage, between 10 and 200: the tuned recipes
                  have 4,200 (32 x 32 lattice) to 12,500 (100 x 100).
    rates         2e-3 with a cosine down to a hundredth; 4e-3 is faster on lattices, and is the
                  rate at which vectors began to diverge.
    average       of the weights over the last tenth of the transition's steps.
    validation    about seven times in the second half, eight members.
"""

from collections.abc import Callable, Mapping
from math import log2

import numpy as np
from torch import nn

from ..data.dataset import Dataset
from ..errors import InputError
from ..frozen import Frozen
from ..microstates import Chain, Image, Lattice, Particles, Vector
from ..models.decoders import (
    ImageDecoderSpec,
    LatticeDecoderSpec,
    SplineDecoderSpec,
    VectorDecoderSpec,
)
from ..models.encoders import (
    DeepSetEncoderSpec,
    LatticeEncoderSpec,
    MLPEncoderSpec,
    ModuleEncoderSpec,
    ResNetEncoderSpec,
)
from ..models.model import ModelSpec
from ..models.readouts import MLPReadoutSpec
from ..models.transitions import FlowTransitionSpec
from ..training.settings import OptimiserSpec, TrainingSpec

__all__ = ["complete_architecture", "default_training"]

LATENT_DIM = 8
STEPS, STEPS_PER_EPOCH = 4500, 150
EPOCHS, BATCHES = (10, 200), (32, 512)
RATE = 2e-3

Part = str | Frozen | None
"""A part of a model as a user gives it: a name, a specification, or nothing."""


def complete_architecture(
    train: Dataset,
    *,
    latent_dim: int | None = None,
    encoder: Part | nn.Module = None,
    transition: Part = None,
    readout: Part = None,
    decoder: Part = None,
) -> ModelSpec:
    """The architecture for data, with defaults for all parts that are not given.

    Arguments:
        train: The training set.
        latent_dim: Size of z.
        encoder: E by name, by specification, or as a module that takes the network input of the
            microstates (B, ...) and returns (B, latent_dim).
        transition: T by name or by specification.
        readout: R by name or by specification.
        decoder: The decoder of methods that reconstruct, by name or by specification.
    """
    description = train.description
    own_encoder, own_decoder = _default_parts(train)
    if isinstance(encoder, nn.Module):
        encoder = ModuleEncoderSpec.of(encoder)
    if latent_dim is None:
        latent_dim = max(LATENT_DIM, 2 * len(description.observables))
    if encoder is None and own_encoder is None:
        raise InputError(
            f"`encoder` is missing, and microstates of kind {description.microstate.kind!r} have "
            "no default: give a name, a specification or a module"
        )
    return ModelSpec.model_validate(
        {
            "latent_dim": latent_dim,
            "encoder": _find_part(encoder, own_encoder),
            "transition": _find_part(transition, _TRANSITION),
            "readout": _find_part(readout, _READOUT),
            "decoder": _find_part(decoder, own_decoder),
        }
    )


def default_training(train: Dataset, *, epochs: int | None = None, lag: int = 1) -> TrainingSpec:
    """How to train on a data set.

    Arguments:
        train: The training set.
        epochs: The number of epochs, where the user has chosen it.
        lag: Frames of the data in one step of the model.
    """
    pairs = train.count_pairs(lag)
    least, most = BATCHES
    batch_size = min(most, max(least, 2 ** round(log2(max(1, pairs / STEPS_PER_EPOCH)))))
    steps = -(-pairs // batch_size)
    if epochs is None:
        epochs = min(EPOCHS[1], max(EPOCHS[0], round(STEPS / steps)))
    decay = min(0.999, max(0.9, 1 - 10 / (epochs * steps)))
    return TrainingSpec(
        epochs=epochs,
        batch_size=batch_size,
        lag=lag,
        representation=OptimiserSpec(learning_rate=RATE),
        transition=OptimiserSpec(learning_rate=RATE, average=decay),
        validate_every=max(1, epochs // 14),
    )


def _find_part(given: Part, default: Frozen | None) -> Part | dict[str, str]:
    """What `ModelSpec` takes for a part: a specification, or a table with a name."""
    if given is None or given == getattr(default, "name", None):
        return default
    return {"name": given} if isinstance(given, str) else given


_TRANSITION = FlowTransitionSpec(name="flow", hidden=(256, 256, 256), steps=4, grading=2.0)
_READOUT = MLPReadoutSpec(name="mlp", hidden=(128,))


def _choose_lattice(train: Dataset) -> tuple[Frozen, Frozen]:
    side = min(train.description.microstate.shape)
    halvings = min(4, max(1, round(log2(max(2, side)) - 2)))
    widths = (32, 64, 128, 128)[:halvings]
    decoder = LatticeDecoderSpec(name="lattice", widths=widths[::-1], hidden=(64,))
    return LatticeEncoderSpec(name="lattice", widths=widths, hidden=(128,)), decoder


def _choose_particles(train: Dataset) -> tuple[Frozen, Frozen]:
    known = ... if train.present is None else train.present
    numbers = np.count_nonzero(train.x[known][..., -1], axis=-1)
    kind = train.description.microstate
    assert isinstance(kind, Particles)
    encoder = DeepSetEncoderSpec(
        name="deepset",
        widths=(128, 128),
        hidden=(128,),
        harmonics=4 if kind.dim < 3 else 2,
        counts=True if numbers.min() < numbers.max() else None,
    )
    return encoder, SplineDecoderSpec(name="spline", transforms=2, hidden=(64, 64), particles=32)


def _choose_picture(train: Dataset) -> tuple[Frozen, Frozen]:
    widths = (16, 32, 64, 128)
    encoder = ResNetEncoderSpec(name="resnet", weights="none", widths=widths, blocks=(1, 1, 1, 1))
    return encoder, ImageDecoderSpec(name="image", widths=(64, 32, 16, 8), hidden=(128,))


def _choose_vector(train: Dataset) -> tuple[Frozen, Frozen]:
    hidden = (128, 128)
    return MLPEncoderSpec(name="mlp", hidden=hidden), VectorDecoderSpec(
        name="vector", hidden=hidden
    )


_PARTS: Mapping[type, Callable[[Dataset], tuple[Frozen, Frozen]]] = {
    Lattice: _choose_lattice,
    Particles: _choose_particles,
    Chain: _choose_picture,
    Image: _choose_picture,
    Vector: _choose_vector,
}
"""Encoder and decoder by the kind of microstate."""


def _default_parts(train: Dataset) -> tuple[Frozen | None, Frozen | None]:
    choose = _PARTS.get(type(train.description.microstate))
    return (None, None) if choose is None else choose(train)
