r"""Methods supervised by macrostates alone: two questions put to the latent target.

*Macro-only* has no encoder. The same conditional flow is learned on the standardised macrostates,

    L = E l_tr(T; y_t, y_{t+1}):

is y a sufficient state? *Next-macro* keeps encoder and readout and replaces the latent target by
the next macrostate, the paper's L_macro with a deterministic transition,

    L = lambda_cur E || R(E(x_t)) - y_t ||^2 + lambda_next E || R(T(E(x_t))) - y_{t+1} ||^2:

is one step enough? The paper's first proposition says that it need not be: L = 0 leaves the second
step free.
"""

from pydantic import PositiveFloat

from ..description import Description
from ..errors import InputError
from ..models import ModelSpec, Modules
from ..models.encoders import MacrostateEncoderSpec
from ..models.readouts import IdentityReadoutSpec
from ..models.transitions import FlowTransitionSpec, MLPTransitionSpec
from ..training.settings import TrainingSpec
from ..training.stages import Batch, Losses, Stage, Turn, current_loss
from .base import Method

__all__ = ["MacroOnly", "NextMacro"]


class MacroOnly(Method):
    """The transition learned on macrostates, without an encoder."""

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        if self.latent_dim not in (None, len(description.observables)):
            raise InputError(
                f"`latent_dim` is {self.latent_dim}; the latent state of `macro-only` is the "
                f"macrostate, of size {len(description.observables)}: leave it out"
            )
        bare = ModelSpec(
            latent_dim=len(description.observables),
            encoder=MacrostateEncoderSpec(name="macrostate"),
            transition=spec.transition,
            readout=IdentityReadoutSpec(name="identity"),
        )
        return Modules.build(bare, description)

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        stage = Stage(
            name="transition",
            moves=("transition",),
            needs=frozenset({"y", "y_next"}),
            loss=_macro_transition_loss,
            draw=lambda modules, count, generator: modules.transition.draw(count, generator),
            optimiser=training.transition,
        )
        return (Turn((stage,), training.epochs),)


class NextMacro(Method):
    """Current and next macrostate as the only targets.

    Attributes:
        lambda_cur: Weight of the current macrostate's loss.
        lambda_next: Weight of the next macrostate's loss.
    """

    lambda_cur: PositiveFloat = 1.0
    lambda_next: PositiveFloat = 1.0

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        transition = spec.transition
        if isinstance(transition, FlowTransitionSpec):
            # As wide as the velocity field, so that no method has the smaller network.
            transition = MLPTransitionSpec(name="mlp", hidden=transition.hidden)
        return Modules.build(spec.model_copy(update={"transition": transition}), description)

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        stage = Stage(
            name="macro",
            moves=("encoder", "readout", "transition"),
            needs=frozenset({"x", "y", "y_next"}),
            loss=self._loss,
            draw=lambda modules, count, generator: {},
            optimiser=training.averaged,
        )
        return (Turn((stage,), training.epochs),)

    def _loss(self, modules: Modules, batch: Batch) -> Losses:
        z = modules.encoder(batch["x"])
        # A deterministic transition takes no noise: (B, 0).
        z_next = modules.transition(z, z[:, :0])
        current = current_loss(modules, z, batch["y"])
        following = current_loss(modules, z_next, batch["y_next"])
        total = self.lambda_cur * current + self.lambda_next * following
        return Losses(total, {"cur": current, "next": following})


def _macro_transition_loss(modules: Modules, batch: Batch) -> Losses:
    loss = modules.transition.loss(batch["y"], batch["y_next"], batch.noise)
    return Losses(loss, {"tr": loss})
