"""What a method asks of the trainer: turns of stages.

A *stage* says which modules move and by which loss; a *turn* runs its stages in order, some number
of times. TAMPL repeats one turn of two stages, joint training one stage; methods in two steps have
two turns. A loss is pure: all randomness reaches it as data, drawn beforehand from a passed
generator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..models import Modules
from .settings import OptimiserSpec

__all__ = ["FIELDS", "MICROSTATES", "Batch", "Latents", "Losses", "Stage", "Turn", "current_loss"]

FIELDS = frozenset({"x", "x_next", "x_window", "y", "y_next", "z", "z_next"})
"""What a batch may hold: network input, standardised macrostates, cached latent states.

`x_window` is the network input of all frames of the batch's windows, for what encodes both ends
of the pairs: `Batch.latents` splits the encodings.
"""


MICROSTATES = frozenset({"x", "x_next", "x_window"})
"""Those of `FIELDS` that are network input."""


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
        moves: Names of the modules that are trained, or of parts of them, such as "transition" and
            "transition.flow"; all others are frozen and in evaluation mode.
        needs: Fields of a batch. `z` and `z_next` come from the latent cache: the encodings by the
            encoder as it was when the stage began.
        loss: Pure function of modules and batch.
        draw: Draws the noise of a batch of a given size, tensors by name. What is drawn for pairs
            has rows, one for each pair, or several times as many, all pairs one after another.
        optimiser: How the modules move.
        finish: Optional closing step, after every pass.
        replays: Whether a GPU may record a step and replay it; not where the loss waits for the
            device.
        batch_size: Pairs in a batch; None for that of the training.
        steps: Batches in a pass, drawn at random; None for one pass over all pairs.
        passes: Where `steps` are given, how often they may go over the pairs at most; None for no
            limit.
        shared: Names of noise that is not drawn for pairs but for the batch as a whole, so that
            all partitions of a batch have the same.
        lags: How far apart the frames of its pairs are, in steps of the model. A batch has as many
            pairs of each lag, one lag after another in each partition; where there are several,
            the noise `lag` holds the number of each pair's. An epoch has no more pairs for it.
    """

    name: str
    moves: tuple[str, ...]
    needs: frozenset[str]
    loss: Callable[[Modules, Batch], Losses]
    draw: Callable[[Modules, int, torch.Generator], Mapping[str, Tensor]]
    optimiser: OptimiserSpec
    finish: Callable[[Modules], None] | None = None
    replays: bool = True
    batch_size: int | None = None
    steps: int | None = None
    passes: float | None = None
    shared: frozenset[str] = frozenset()
    lags: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Latents:
    """Latent states at both ends of pairs, each (n, d), and standardised macrostates (n, m).

    A closing step gets the macrostates too.
    """

    z: Tensor
    z_next: Tensor
    y: Tensor | None = None
    y_next: Tensor | None = None

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
        settled: The fraction of the turn after which its models are worth validating.
    """

    stages: tuple[Stage, ...]
    epochs: int
    finish: Callable[[Modules, Latents], None] | None = None
    settled: float = 0.0


def current_loss(modules: Modules, z: Tensor, y: Tensor) -> Tensor:
    """L_cur = E || R(z) - y ||^2, the sum over observables."""
    return (modules.readout(z) - y).square().sum(dim=-1).mean()
