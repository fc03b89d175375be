r"""Methods that reconstruct microstates, which TAMPL does without.

A decoder p(x | z) is trained by L_rec = E[-log p(x_t | E(x_t))] per degree of freedom. *JLD-Recon*
adds lambda_rec L_rec to the joint loss. *TwoStage-Recon* trains encoder and decoder by L_rec
alone, freezes the representation, and then fits readout and transition,

    E || R(z_t) - y_t ||^2 + E l_tr(T; z_t, z_{t+1}),

which share no weights, so that their sum is two fits side by side. No model keeps the decoder.

References: Champion et al., "Data-driven discovery of coordinates and governing equations", PNAS
2019 (joint); Chen et al., "Learning macroscopic dynamics from partial microscopic observations",
NeurIPS 2024 (in two stages).
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from ..description import Description
from ..errors import InputError
from ..models import Decoder, ModelSpec, Modules
from ..training.settings import TrainingSpec
from ..training.stages import Batch, Latents, Losses, Stage, Turn, current_loss
from .base import Method
from .penalties import PENALTIES, Penalty

__all__ = ["Recon", "TwoStageRecon"]


class Recon(Penalty):
    """The reconstruction of x_t from its latent state.

    Attributes:
        weight: lambda_rec.
    """

    moves: ClassVar[tuple[str, ...]] = ("decoder",)
    needs: ClassVar[frozenset[str]] = frozenset({"x"})
    name: Literal["recon"] = "recon"
    weight: PositiveFloat = 1.0

    def modules(self, spec: ModelSpec, description: Description) -> Mapping[str, nn.Module]:
        return {"decoder": build_decoder(spec, description)}

    def draw(
        self, modules: Modules, count: int, generator: torch.Generator
    ) -> Mapping[str, Tensor]:
        return _decoder(modules).draw(count, generator)

    def loss(self, modules: Modules, latents: Latents, batch: Batch) -> Tensor:
        return self.weight * _decoder(modules).loss(latents.z, batch["x"], batch.noise)


PENALTIES["recon"] = Recon


class TwoStageRecon(Method):
    """An autoencoder first, then readout and transition on its frozen latent states."""

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        built = Modules.build(spec, description)
        built.add({"decoder": build_decoder(spec, description)})
        return built

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        autoencoder = Stage(
            name="autoencoder",
            moves=("encoder", "decoder"),
            needs=frozenset({"x"}),
            loss=_reconstruction_loss,
            draw=lambda modules, count, generator: _decoder(modules).draw(count, generator),
            optimiser=training.averaged,
        )
        dynamics = Stage(
            name="dynamics",
            moves=("readout", "transition"),
            needs=frozenset({"y", "z", "z_next"}),
            loss=_dynamics_loss,
            draw=lambda modules, count, generator: modules.transition.draw(count, generator),
            optimiser=training.transition,
        )
        return Turn((autoencoder,), training.epochs), Turn((dynamics,), training.epochs)


def build_decoder(spec: ModelSpec, description: Description) -> Decoder:
    """The decoder of an architecture; refuses one that has none."""
    if spec.decoder is None:
        raise InputError(
            "`model.decoder` is missing, and the method reconstructs microstates; add a section "
            "[model.decoder] to the recipe"
        )
    return spec.decoder.build(description.microstate, spec.latent_dim)


def _reconstruction_loss(modules: Modules, batch: Batch) -> Losses:
    loss = _decoder(modules).loss(modules.encoder(batch["x"]), batch["x"], batch.noise)
    return Losses(loss, {"rec": loss})


def _dynamics_loss(modules: Modules, batch: Batch) -> Losses:
    current = current_loss(modules, batch["z"], batch["y"])
    transition = modules.transition.loss(batch["z"], batch["z_next"], batch.noise)
    return Losses(current + transition, {"cur": current, "tr": transition})


def _decoder(modules: Modules) -> Decoder:
    decoder = modules.get_submodule("decoder")
    assert isinstance(decoder, Decoder)
    return decoder
