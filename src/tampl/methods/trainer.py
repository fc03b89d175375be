"""The only training loop: runs the stages of a method, epoch by epoch.

The latent cache follows from the weights: a stage that needs `z` or `z_next` finds the encodings
of all frames by the encoder as it was when the stage began, and they stay valid until some stage
has moved the encoder. Under TAMPL that is one sweep per epoch. The state at the end of an epoch is
the weights, the optimisers and the epoch's number; batch order and noise are drawn from streams
named by seed, epoch and stage, so a resumed run repeats an uninterrupted one.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from ..data.frames import Frames
from ..errors import InputError
from ..models import Modules, Transition
from ..seeding import torch_generator
from .base import FIELDS, Batch, Latents, Stage, TrainingSpec, Turn
from .latents import FrameEncoder, LatentScale, latent_scale
from .stepper import Stepper, focus

__all__ = ["DivergenceError", "EpochRecord", "Trainer"]

WATCHED_PAIRS = 2048
"""Pairs, evenly over the data, whose latent states tell the scale after every epoch."""


class DivergenceError(InputError):
    """A loss that is no longer finite."""


@dataclass(frozen=True)
class EpochRecord:
    """What one epoch did: losses by stage and part, latent scale, seconds by stage."""

    epoch: int
    losses: Mapping[str, Mapping[str, float]]
    latent: LatentScale
    seconds: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The record as plain data for the log."""
        return asdict(self)


class Trainer:
    """Trains modules on frames, one epoch per call.

    Arguments:
        turns: What the method asks for.
        modules: The modules, on the device and in the precision of the frames.
        frames: The training frames.
        training: Seed, batch size and lengths.
    """

    def __init__(
        self,
        turns: Sequence[Turn],
        modules: Modules,
        *,
        frames: Frames,
        training: TrainingSpec,
    ) -> None:
        self.modules = modules
        self.frames = frames
        self.training = training
        self.epoch = 0
        self.schedule = [turn.stages for turn in turns for _ in range(turn.epochs)]
        ends = accumulate(turn.epochs for turn in turns)
        self._closing = dict(zip(ends, turns, strict=True))
        _refuse_bad_stages(turns, modules)
        steps_per_pass = -(-len(frames.pairs) // training.batch_size)
        self.steppers = {
            stage.name: Stepper(
                stage,
                modules,
                gather=partial(self._gather, stage.needs),
                total_steps=steps_per_pass * turn.epochs,
            )
            for turn in turns
            for stage in turn.stages
        }
        self._encode = FrameEncoder(modules, frames, batch_size=training.batch_size)
        self._cache: Tensor | None = None
        self._cache_is_valid = False

    def run_epoch(self) -> EpochRecord:
        """Runs the stages of the next epoch."""
        losses, seconds = {}, {}
        for stage in self.schedule[self.epoch]:
            start = time.perf_counter()
            losses[stage.name] = self.run_stage(stage)
            seconds[stage.name] = time.perf_counter() - start
        self.epoch += 1
        if self.epoch in self._closing:
            self._close(self._closing[self.epoch])
        return EpochRecord(self.epoch, losses, self._watch(), seconds)

    def run_stage(self, stage: Stage) -> dict[str, float]:
        """Runs one stage of the present epoch; returns its mean losses by part."""
        self._refresh(stage)
        focus(self.modules, stage.moves)
        stepper = self.steppers[stage.name]
        sums: dict[str, Tensor] = defaultdict(lambda: self.frames.macrostates.new_zeros(()))
        for index, noise in self._batches(stage):
            for name, value in stepper.step(index, noise).items():
                sums[name] += len(index) * value
        if "encoder" in stage.moves:
            self._cache_is_valid = False
        if stage.finish is not None:
            stage.finish(self.modules)
        return self._means(stage, sums)

    def _close(self, turn: Turn) -> None:
        """Ends a turn: what follows builds on averaged weights, of which the model is made."""
        for stage in turn.stages:
            settled = self.steppers[stage.name].settle()
            if settled and "encoder" in stage.moves:
                self._cache_is_valid = False
        if turn.finish is not None:
            turn.finish(self.modules, self._latents(self.frames.pairs))

    def first_batch(self, stage: Stage) -> Batch:
        """The first batch that a stage would see now."""
        self._refresh(stage)
        index, noise = next(self._batches(stage))
        return Batch(self._gather(stage.needs, index), noise)

    def _refresh(self, stage: Stage) -> None:
        if self._cache_is_valid or not stage.needs & {"z", "z_next"}:
            return
        if self._cache is None:
            self._cache = self._encode()
        else:
            self._cache.copy_(self._encode())  # in place: a recorded step reads it where it is
        self._cache_is_valid = True

    def _batches(self, stage: Stage) -> Iterator[tuple[Tensor, Mapping[str, Tensor]]]:
        """Indices and noise of the batches of a pass."""
        device = self.frames.stored.device
        address = ("train", self.epoch, stage.name)
        order = torch_generator(self.training.seed, *address, "order", device=device)
        noise = torch_generator(self.training.seed, *address, "noise", device=device)
        pairs = self.frames.pairs
        shuffled = pairs[torch.randperm(len(pairs), generator=order, device=device)]
        for index in shuffled.split(self.training.batch_size):
            yield index, stage.draw(self.modules, len(index), noise)

    def _gather(self, needs: frozenset[str], index: Tensor) -> dict[str, Tensor]:
        return {name: self._field(name, index) for name in sorted(needs)}

    def _field(self, name: str, index: Tensor) -> Tensor:
        source = name.removesuffix("_next")
        at = index if name == source else index + 1
        if source == "z":
            assert self._cache is not None
            return self._cache[at]
        return self.frames.field(source, at)

    def _latents(self, index: Tensor) -> Latents:
        """Latent states of pairs, from the cache where it is valid."""
        if self._cache is not None and self._cache_is_valid:
            return Latents(self._cache[index], self._cache[index + 1])
        return Latents(self._encode(index), self._encode(index + 1))

    def _means(self, stage: Stage, sums: Mapping[str, Tensor]) -> dict[str, float]:
        # The only synchronisation of a pass: losses are summed on the device until here.
        means = {name: value.item() / len(self.frames.pairs) for name, value in sums.items()}
        if not all(torch.isfinite(torch.tensor(list(means.values())))):
            raise DivergenceError(
                f"training diverged in the {stage.name} stage of epoch {self.epoch + 1}: the loss "
                f"is {means['total']}; lower the stage's learning rate and train in a new folder"
            )
        return means

    def _watch(self) -> LatentScale:
        pairs, device = self.frames.pairs, self.frames.stored.device
        latents = self._latents(pairs[:: -(-len(pairs) // WATCHED_PAIRS)])
        generator = torch_generator(self.training.seed, "watch", self.epoch, device=device)
        return latent_scale(self._fitted_transition(), latents, generator)

    def _fitted_transition(self) -> Transition | None:
        """The transition, once a stage or a closing step has touched it."""
        stages = [stage for stages in self.schedule[: self.epoch] for stage in stages]
        moved = any("transition" in stage.moves for stage in stages)
        closed = any(end <= self.epoch and turn.finish for end, turn in self._closing.items())
        return self.modules.transition if moved or closed else None

    def averaged(self) -> Modules:
        """A frozen copy of the modules, with averaged weights where a stage averages."""
        copy = deepcopy(self.modules).requires_grad_(False).eval()
        parameters = dict(copy.named_parameters())
        for stepper in self.steppers.values():
            if stepper.steps:
                for name, value in stepper.average.items():
                    parameters[name].copy_(value)
        return copy

    def tensors(self) -> dict[str, Tensor]:
        """Everything to resume from, by name."""
        state = {f"modules/{key}": value for key, value in self.modules.state_dict().items()}
        for name, stepper in self.steppers.items():
            state |= {f"stages/{name}/{key}": value for key, value in stepper.tensors()}
        return state

    def load(self, epoch: int, tensors: Mapping[str, Tensor]) -> None:
        """Takes up the state after `epoch` epochs that `tensors` gave."""
        self.epoch = epoch
        self._cache_is_valid = False
        self.modules.load_state_dict(_under("modules/", tensors))
        for name, stepper in self.steppers.items():
            stepper.load(_under(f"stages/{name}/", tensors))


def _refuse_bad_stages(turns: Sequence[Turn], modules: Modules) -> None:
    stages = [stage for turn in turns for stage in turn.stages]
    names = [stage.name for stage in stages]
    if len(set(names)) < len(names):
        raise InputError(f"the stages are named {names}; give each a name of its own")
    known = {name for name, _ in modules.named_children()}
    for stage in stages:
        if not known.issuperset(stage.moves):
            raise InputError(f"stage `{stage.name}` moves {stage.moves}; modules are {known}")
        if not stage.needs <= FIELDS:
            raise InputError(f"stage `{stage.name}` needs {set(stage.needs)}; have {set(FIELDS)}")


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
