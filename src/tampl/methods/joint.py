r"""JLD, joint latent dynamics: encoder, readout and transition by one loss, through both ends.

    L = lambda_cur E || R(E(x_t)) - y_t ||^2 + lambda_tr E l_tr(T; E(x_t), E(x_{t+1})) + penalty

Nothing anchors the scale of z here: shrinking it lowers the second term (the paper's analysis of
joint training). A further term may keep it open: JLD-SIG and JLD-VIC are JLD with a penalty on the
latent batch, JLD-Recon with the reconstruction of microstates.

Reference: Han, Zhao, Li, "Learning Macroscopic Dynamics without Reconstructing Microscopic
States", where JLD and its variants are baselines.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from pydantic import PositiveFloat
from torch import Tensor

from ..description import Description
from ..models import ModelSpec, Modules
from ..training.settings import TrainingSpec
from ..training.stages import Batch, Losses, Stage, Turn, current_loss
from .base import Method
from .penalties import AnyPenalty, Penalty, Sig, Vic
from .reconstruction import Recon

__all__ = ["Jld", "JldRecon", "JldSig", "JldVic", "Joint"]


class Joint(Method, ABC):
    """Joint training on the weighted sum, with a further term or without.

    Attributes:
        lambda_cur: Weight of the current macrostate's loss.
        lambda_tr: Weight of the transition loss.
    """

    lambda_cur: PositiveFloat = 1.0
    lambda_tr: PositiveFloat = 1.0

    @property
    @abstractmethod
    def term(self) -> Penalty | None:
        """The further term, or none."""

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        built = Modules.build(spec, description)
        if self.term is not None:
            # After the others, so that one seed gives every method the same start.
            built.add(self.term.modules(spec, description))
        return built

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        moves: tuple[str, ...]
        moves, needs = ("encoder", "readout", "transition"), frozenset({"x_window", "y"})
        if self.term is not None:
            moves, needs = moves + self.term.moves, needs | self.term.needs
        stage = Stage(
            name="joint",
            moves=moves,
            needs=needs,
            loss=self._loss,
            draw=self._draw,
            optimiser=training.averaged,
            shared=frozenset() if self.term is None else self.term.shared,
        )
        return (Turn((stage,), training.epochs),)

    def _draw(
        self, modules: Modules, count: int, generator: torch.Generator
    ) -> Mapping[str, Tensor]:
        draws = dict(modules.transition.draw(count, generator))
        if self.term is not None:
            further = self.term.draw(modules, count, generator)
            assert not draws.keys() & further.keys(), "a penalty's draws have names of their own"
            draws |= further
        return draws

    def _loss(self, modules: Modules, batch: Batch) -> Losses:
        latents = batch.latents(modules.encoder(batch["x_window"]))
        current = current_loss(modules, latents.z, batch["y"])
        transition = modules.transition.loss(latents.z, latents.z_next, batch.noise)
        parts = {"cur": current, "tr": transition}
        total = self.lambda_cur * current + self.lambda_tr * transition
        if self.term is not None:
            parts["penalty"] = self.term.loss(modules, latents, batch)
            total = total + parts["penalty"]
        return Losses(total, parts)


class Jld(Joint):
    """Joint latent dynamics; alone in its row it has no further term.

    Attributes:
        penalty: A further term of one's own, by its name among the penalties; none by default.
    """

    penalty: AnyPenalty | None = None

    @property
    def term(self) -> Penalty | None:
        return self.penalty


class JldSig(Joint):
    """JLD whose latent batch is held near an isotropic Gaussian.

    Attributes:
        penalty: Weight and number of directions.
    """

    penalty: Sig = Sig()

    @property
    def term(self) -> Penalty:
        return self.penalty


class JldVic(Joint):
    """JLD with the variance and covariance penalties of VICReg.

    Attributes:
        penalty: Their weights.
    """

    penalty: Vic = Vic()

    @property
    def term(self) -> Penalty:
        return self.penalty


class JldRecon(Joint):
    """JLD that reconstructs the microstates too.

    Attributes:
        penalty: The weight of the reconstruction.
    """

    penalty: Recon = Recon()

    @property
    def term(self) -> Penalty:
        return self.penalty
