r"""What a method is: turns of stages for the one trainer.

A *stage* says which modules move and by which loss; a *turn* runs its stages in order, some number
of times. TAMPL repeats one turn of two stages, joint training one stage; methods in two steps have
two turns. A loss is pure: all randomness reaches it as data, drawn beforehand from a passed
generator.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from ..microstates import Symmetry
from ..models import ModelSpec, Modules
from ..records import Record
from ..systems.base import Description

__all__ = [
    "FIELDS",
    "Batch",
    "Latents",
    "Losses",
    "Method",
    "OptimiserSpec",
    "Stage",
    "TrainingSpec",
    "Turn",
    "current_loss",
]


class OptimiserSpec(Record):
    """AdamW with a cosine schedule, gradient clipping and an average of the weights.

    Attributes:
        learning_rate: The rate at the start.
        final_fraction: The rate at the end over the rate at the start; 1 keeps it constant.
        weight_decay: AdamW's decoupled decay.
        clip: Largest norm of a step's gradient; 0 for no clipping.
        average: Decay of the exponential average of the weights that the model is made of; 0 to
            use the last weights.
    """

    learning_rate: PositiveFloat = 1e-3
    final_fraction: float = Field(0.01, ge=0, le=1)
    weight_decay: float = Field(0.01, ge=0)
    clip: float = Field(1.0, ge=0)
    average: float = Field(0.0, ge=0, lt=1)


class TrainingSpec(Record):
    """How long and how to train; the same for every method of a comparison.

    Attributes:
        seed: Governs initial weights, batch order and noise.
        epochs: Epochs of each of a method's turns.
        batch_size: Pairs in a batch.
        window: Frames in a window; batches are made of windows, of one pair each by default.
        fraction: Share of the windows that an epoch sees.
        symmetries: Motions that the system's laws and observables allow; every trajectory is moved
            anew in each part of the training.
        representation: Optimiser of stages that move the encoder.
        transition: Optimiser of stages on a frozen representation.
        validate_every: Epochs between validations, in the second half of the training.
        validation_members: Rollouts from each validation microstate.
        save_every: Epochs between checkpoints to resume from.
    """

    seed: NonNegativeInt = 42
    epochs: PositiveInt
    batch_size: PositiveInt = 512
    window: int = Field(2, ge=2)
    fraction: float = Field(1.0, gt=0, le=1)
    symmetries: tuple[Symmetry, ...] = ()
    representation: OptimiserSpec = OptimiserSpec()
    transition: OptimiserSpec = OptimiserSpec()
    validate_every: PositiveInt = 5
    validation_members: PositiveInt = 8
    save_every: PositiveInt = 5

    @property
    def averaged(self) -> OptimiserSpec:
        """`representation` with the average of `transition`.

        For stages that move the encoder and are not alternated with others: nothing has to follow
        the encoder step by step, and what an average gains, no method goes without.
        """
        return self.representation.model_copy(update={"average": self.transition.average})


FIELDS = frozenset({"x", "x_next", "x_window", "y", "y_next", "z", "z_next"})
"""What a batch may hold: network input, standardised macrostates, cached latent states.

`x_window` is the network input of all frames of the batch's windows, for what encodes both ends
of the pairs: `Batch.latents` splits the encodings.
"""


@dataclass(frozen=True)
class Batch:
    """The fields that a stage asked for, each (B, ...), and its noise.

    Attributes:
        fields: Tensors by name, of `FIELDS`.
        noise: What the stage drew for this batch.
        window: Frames in a window.
    """

    fields: Mapping[str, Tensor]
    noise: Mapping[str, Tensor]
    window: int = 2

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.fields:
            raise KeyError(f"the batch has no `{name}`; add it to the stage's `needs`")
        return self.fields[name]

    def latents(self, z_window: Tensor) -> "Latents":
        """Both ends of the pairs from the encodings of `x_window`."""
        windows = z_window.unflatten(0, (-1, self.window))
        return Latents(windows[:, :-1].flatten(0, 1), windows[:, 1:].flatten(0, 1))


@dataclass(frozen=True)
class Losses:
    """The loss to descend, and its parts for the log."""

    total: Tensor
    parts: Mapping[str, Tensor]


@dataclass(frozen=True)
class Stage:
    """One pass over the training pairs.

    Attributes:
        name: What the log calls it.
        moves: Names of the modules that are trained; all others are frozen and in evaluation mode.
        needs: Fields of a batch. `z` and `z_next` come from the latent cache: the encodings by the
            encoder as it was when the stage began.
        loss: Pure function of modules and batch.
        draw: Draws the noise of a batch of a given size.
        optimiser: How the modules move.
        finish: Optional closing step, after every pass.
        replays: Whether a GPU may record a step and replay it; not where the loss waits for the
            device.
    """

    name: str
    moves: tuple[str, ...]
    needs: frozenset[str]
    loss: Callable[[Modules, Batch], Losses]
    draw: Callable[[Modules, int, torch.Generator], Mapping[str, Tensor]]
    optimiser: OptimiserSpec
    finish: Callable[[Modules], None] | None = None
    replays: bool = True


@dataclass(frozen=True)
class Latents:
    """Latent states at both ends of pairs, each (n, d)."""

    z: Tensor
    z_next: Tensor

    @property
    def both(self) -> Tensor:
        """Those of both ends, (2 n, d)."""
        return torch.cat([self.z, self.z_next])


@dataclass(frozen=True)
class Turn:
    """Stages in order, the whole sequence repeated; one repetition is an epoch.

    Attributes:
        stages: The stages.
        epochs: How often they are repeated.
        finish: Optional closing step, once, with the latent states of all training pairs.
    """

    stages: tuple[Stage, ...]
    epochs: int
    finish: Callable[[Modules, Latents], None] | None = None


def current_loss(modules: Modules, z: Tensor, y: Tensor) -> Tensor:
    """L_cur = E || R(z) - y ||^2, the sum over observables."""
    return (modules.readout(z) - y).square().sum(dim=-1).mean()


class Method(Record, ABC):
    """Losses and schedule; what training yields is a `MacroModel` that needs no method.

    A method is a frozen record of its own settings, such as the weights of its losses.
    """

    @abstractmethod
    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        """Builds the modules that are trained.

        Arguments:
            spec: The recipe's architecture; a method that needs another one builds that.
            description: The system.
        """

    @abstractmethod
    def turns(self, training: TrainingSpec) -> Sequence[Turn]:
        """The stages for the trainer."""
