"""The only training loop: runs the stages of a method, epoch by epoch.

The latent cache follows from the weights: a stage that needs `z` or `z_next` finds the encodings
of its frames by the encoder as it was when the stage began, and they stay valid until some stage
has moved the encoder. Under TAMPL that is one sweep per epoch. Where an epoch sees a part of the
frames, or sees them moved by symmetries, a new part begins with each epoch, or within it after the
stage that moves the encoder: under TAMPL one part serves a transition pass and the representation
pass that follows, from one sweep. The state at the end of an epoch is the weights, the optimisers
and the epoch's number; parts, batch order and noise are drawn from streams named by seed, epoch
and stage, so a resumed run repeats an uninterrupted one.

In a training in partitions, a batch has as many windows of each, in an order and with noise from
the partition's own streams. Several ranks each have some of the partitions and make their part of
every batch and of the cache. All that comes of the whole data set (means of losses, the scale of
the latent states, closing steps) comes of what all ranks have, and is the same on each.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate, takewhile
from types import MappingProxyType
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError
from ..models import Modules, Transition
from ..models.checkpoint import refuse_unlike, take_prefixed
from ..seeding import torch_generator
from .frames import (
    BLOCKS_TOGETHER,
    Frames,
    Selection,
    Views,
    refuse_long_windows,
    refuse_small_batches,
    select,
    spans,
    steps_per_pass,
)
from .latents import FrameEncoder, LatentScale, latent_scale
from .ranks import ALONE, Ranks
from .settings import TrainingSpec
from .stages import FIELDS, MICROSTATES, Batch, Latents, Stage, Turn
from .stepper import Stepper, focus
from .streaming import Blocks, Outside, read_ahead

__all__ = ["DivergenceError", "EpochRecord", "Trainer"]

WATCHED_PAIRS = 2048
"""Pairs, evenly over the data, whose latent states tell the scale after every epoch."""

WHOLE = -1
"""Where other numbers name a part of the frames: all of them, unmoved."""


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
        ranks: Those that the training is shared with.
    """

    def __init__(
        self,
        turns: Sequence[Turn],
        modules: Modules,
        *,
        frames: Frames,
        training: TrainingSpec,
        ranks: Ranks = ALONE,
    ) -> None:
        self.modules = modules
        self.ranks = ranks
        self._views = Views(frames, training)
        self.frames = frames = self._views.frames
        self.training = training
        self.epoch = 0
        self.schedule = [turn.stages for turn in turns for _ in range(turn.epochs)]
        ends = accumulate(turn.epochs for turn in turns)
        self._closing = dict(zip(ends, turns, strict=True))
        _refuse_bad_stages(turns, modules)
        _refuse_other_division(frames, training)
        stages = [stage for turn in turns for stage in turn.stages]
        for lag in sorted({lag for stage in stages for lag in stage.lags}):
            refuse_long_windows(frames.stretch(lag), training)
        for stage in stages:
            refuse_small_batches(training, self._batch_size(stage), len(stage.lags))
        # On the device beforehand: a recorded step may copy nothing from the host.
        self._reaches = {
            stage.lags: frames.lag * torch.tensor(stage.lags, device=frames.device)
            for stage in stages
        }
        self.steppers = {
            stage.name: Stepper(
                stage,
                modules,
                gather=partial(self._gather, stage),
                total_steps=self._steps(stage) * turn.epochs,
                ranks=ranks,
            )
            for turn in turns
            for stage in turn.stages
        }
        self._encode = FrameEncoder(
            modules, frames, batch_size=training.batch_size, records=ranks.size == 1
        )
        self._cache: Tensor | None = None
        self._cached: int | None = None

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
        stepper, windows = self.steppers[stage.name], 0
        sums: dict[str, Tensor] = defaultdict(lambda: self.frames.macrostates.new_zeros(()))
        for step, (starts, noise, read) in enumerate(self._batches(stage)):
            self.ranks.look(step)
            windows += len(starts)
            for name, value in stepper.step(starts, noise, read).items():
                sums[name] += len(starts) * value
        # A module of one's own may keep averages of what its rank has seen.
        self.ranks.copy_buffers(self.modules)
        if "encoder" in stage.moves:
            self._cached = None
        if stage.finish is not None:
            stage.finish(self.modules)
        return self._means(stage, {name: value / windows for name, value in sums.items()})

    def _close(self, turn: Turn) -> None:
        """Ends a turn: what follows builds on averaged weights, of which the model is made."""
        for stage in turn.stages:
            settled = self.steppers[stage.name].settle()
            if settled and "encoder" in stage.moves:
                self._cached = None
        if turn.finish is not None:
            pairs = self.frames.pairs
            y, y_next = (
                self.ranks.gather(self.frames.y(index))
                for index in (pairs, pairs + self.frames.lag)
            )
            turn.finish(self.modules, replace(self._latents(pairs), y=y, y_next=y_next))
            self.ranks.copy_state(self.modules)

    def first_batch(self, stage: Stage) -> Batch:
        """The first batch that a stage would see now."""
        self._refresh(stage)
        return self._gather(stage, *next(self._batches(stage)))

    @property
    def in_last_turn(self) -> bool:
        """Whether an epoch of the last turn is done, so that every part of a model was trained."""
        *_, (end, turn) = self._closing.items()
        return self.epoch > end - turn.epochs

    @property
    def is_settled(self) -> bool:
        """Whether the model after the present epoch is worth validating."""
        end, turn = next((e, t) for e, t in self._closing.items() if self.epoch <= e)
        return self.epoch - (end - turn.epochs) >= turn.settled * turn.epochs

    def _steps(self, stage: Stage) -> int:
        """Batches of a pass, the most there can be."""
        size = self._batch_size(stage) // (self.training.partitions * len(stage.lags))
        once = steps_per_pass(self.frames, self.training, size, stage.lags)
        if stage.steps is None or stage.passes is None:
            return stage.steps or once
        # Every epoch has another part of the pairs.
        return min(stage.steps, math.ceil(stage.passes * once / self.training.fraction))

    def _batch_size(self, stage: Stage) -> int:
        return stage.batch_size or self.training.batch_size

    def _part(self, stage: Stage) -> int:
        """Number of the part of the frames that a stage of the present epoch sees."""
        before = takewhile(lambda each: each.name != stage.name, self.schedule[self.epoch])
        return self.epoch + any("encoder" in each.moves for each in before)

    def _selections(self, part: int, lags: tuple[int, ...] = (1,)) -> list[Selection]:
        """What the stages of a part see of each partition that is here, lag by lag."""
        # Windows of one pair, all of them, are the same in every part.
        whole = self.training.fraction == 1 and self.training.window == 2
        number = 0 if whole else part
        return [
            selection
            for partition in self.frames.partitions
            for selection in select(
                self.frames, self.training, number, partition=partition, lags=lags
            )
        ]

    def _refresh(self, stage: Stage) -> None:
        part = self._cache_part(stage)
        self._views.show(part)
        if self._cached == part or not stage.needs & {"z", "z_next"}:
            return
        if self._cache is None:
            size = (len(self.frames), self.modules.spec.latent_dim)
            self._cache = self.frames.macrostates.new_zeros(size)
        # In place: a recorded step reads the cache where it is.
        if self.training.fraction < 1 and part != WHOLE:
            selections = self._selections(part, stage.lags)
            index = torch.cat([each.frames for each in selections]).unique()
            self._cache[index] = self._encode(index)
        elif self.frames.present is not None:
            index = self.frames.present.nonzero().squeeze(1)
            self._cache[index] = self._encode(index)
        else:
            self._cache.copy_(self._encode())
        self._cached = part

    def _cache_part(self, stage: Stage) -> int:
        """Number of the part of the frames that a stage's latent states are of."""
        if self.training.symmetries:
            return self._part(stage)
        # Where nothing will move the encoder again, all frames are encoded once and for all.
        coming = (each for stages in self.schedule[self.epoch :] for each in stages)
        final = not any("encoder" in each.moves for each in coming)
        return WHOLE if self.training.fraction == 1 or final else self._part(stage)

    def _batches(
        self, stage: Stage
    ) -> Iterator[tuple[Tensor, Mapping[str, Tensor], Mapping[str, Tensor]]]:
        """Starts of windows, noise and what has to be read of the batches of a pass."""
        device, seed = self.frames.device, self.training.seed
        partitions, address = self.frames.partitions, ("train", self.epoch, stage.name)
        orders, noises = (
            [
                torch_generator(seed, *address, *partitions.address(each), word, device=device)
                for each in partitions
            ]
            for word in ("order", "noise")
        )
        selections = self._selections(self._part(stage), stage.lags)
        size = self._batch_size(stage) // (partitions.count * len(stage.lags))
        steps = None if stage.steps is None else self._steps(stage)
        # The lags of a partition share its stream.
        orders = [order for order in orders for _ in stage.lags]
        passes = [
            selection.batches(size, order, steps=steps)
            for selection, order in zip(selections, orders, strict=True)
        ]
        batches = (torch.cat(parts) for parts in zip(*passes, strict=True))
        common = torch_generator(seed, *address, "noise", device=device)
        for starts, read in self._read(batches, stage, selections[0].block):
            pairs = len(starts) * (self.training.window - 1)
            if partitions.count == 1:
                noise = stage.draw(self.modules, pairs, noises[0])
            else:
                noise = self._draw_parts(stage, pairs // len(noises), noises, common)
            if len(stage.lags) > 1:
                noise = {**noise, "lag": self._number_lags(stage, pairs)}
            yield starts, noise, read

    def _number_lags(self, stage: Stage, count: int) -> Tensor:
        """Number of the lag of each of so many windows or pairs of a batch."""
        lags, parts = len(stage.lags), len(self.frames.partitions.own)
        numbers = torch.arange(lags, device=self.frames.device)
        return numbers.repeat_interleave(count // (lags * parts)).repeat(parts)

    def _draw_parts(
        self,
        stage: Stage,
        pairs: int,
        generators: Sequence[torch.Generator],
        common: torch.Generator,
    ) -> dict[str, Tensor]:
        """The noise of a batch of several partitions.

        Arguments:
            stage: Draws it.
            pairs: Of each partition in the batch.
            generators: A stream for each partition that is here.
            common: The stream of what belongs to the batch as a whole.
        """
        draws = [stage.draw(self.modules, pairs, generator) for generator in generators]
        own = {
            name: _join_rows([draw[name] for draw in draws], pairs, f"{stage.name}` draws `{name}")
            for name in draws[0]
            if name not in stage.shared
        }
        if not stage.shared:
            return own
        whole = stage.draw(self.modules, pairs, common)
        return own | {name: whole[name] for name in sorted(stage.shared)}

    def _read(
        self, batches: Iterable[Tensor], stage: Stage, block: int | None
    ) -> Iterator[tuple[Tensor, Mapping[str, Tensor]]]:
        """Batches with those fields that are not on the device, read ahead of their use."""
        names, stored = sorted(stage.needs & MICROSTATES), self.frames.stored
        if not names or not isinstance(stored, Outside):
            for starts in batches:
                yield starts, {}
            return
        # Threads that read must not wait for the device: the order goes to the host at once.
        listed = list(batches)
        on_host = torch.cat(listed).cpu().split([len(starts) for starts in listed])
        blocks = None
        if block is not None:
            # A batch may hold windows of two groups of blocks, and those of a later partition
            # begin within the blocks that are read.
            kept = (2 if len(self.frames.partitions.own) == 1 else 4) * BLOCKS_TOGETHER
            reach = self.frames.lag * max(stage.lags) * self.training.window
            blocks = Blocks(stored, block, reach=reach, kept=kept * len(stage.lags))

        def read(starts: Tensor) -> dict[str, NDArray[Any]]:
            found = {}
            for name in names:
                index = self._index(stage, name, starts).numpy()
                if blocks is None:
                    found[name] = stored.read(index)
                else:
                    found[name] = blocks.read(starts.numpy(), index.reshape(len(starts), -1))
            return found

        frames = sum(len(self._index(stage, name, on_host[0])) for name in names)
        options = {"ahead": stored.count_ahead(frames)}
        if blocks is not None:  # which are read in sequence
            options["threads"] = 1
        for starts, (_, found) in zip(listed, read_ahead(on_host, read, **options), strict=True):
            yield starts, {name: stored.put(frames) for name, frames in found.items()}

    def _gather(
        self,
        stage: Stage,
        starts: Tensor,
        noise: Mapping[str, Tensor],
        read: Mapping[str, Tensor] = MappingProxyType({}),
    ) -> Batch:
        fields = {}
        for name in sorted(stage.needs):
            if name in read:
                fields[name] = self.frames.input(read[name])
            else:
                fields[name] = self._field(name, self._index(stage, name, starts))
        return Batch(fields, noise, self.training.window)

    def _latents(self, index: Tensor) -> Latents:
        """Finite latent states of pairs of all ranks, from the cache where it holds all of them.

        Arguments:
            index: The pairs that are here.
        """
        after = index + self.frames.lag
        cached = self.training.fraction == 1 and self._cached is not None
        if self._cache is not None and (cached or self._cached == WHOLE):
            latents = Latents(self._cache[index], self._cache[after])
        else:
            latents = Latents(self._encode(index), self._encode(after))
        latents = Latents(self.ranks.gather(latents.z), self.ranks.gather(latents.z_next))
        if not latents.both.isfinite().all():
            raise DivergenceError(
                f"training diverged in epoch {self.epoch}: the latent states are not finite; "
                "lower the learning rate and train in a new folder"
            )
        return latents

    def _index(self, stage: Stage, name: str, starts: Tensor) -> Tensor:
        """The frames that a field of the windows at some starts is of."""
        window, lag = self.training.window, self._lags(stage, starts)
        if name == "x_window":
            return spans(starts, window, lag)
        return spans(starts + lag if name.endswith("_next") else starts, window - 1, lag)

    def _lags(self, stage: Stage, starts: Tensor) -> Tensor | int:
        """Frames from one end of a pair to the other, for the windows at some starts."""
        if len(stage.lags) == 1:
            return self.frames.lag * stage.lags[0]
        lags = self._reaches[stage.lags].to(starts.device)
        return lags[self._number_lags(stage, len(starts)).to(starts.device)]

    def _field(self, name: str, index: Tensor) -> Tensor:
        source = name.removesuffix("_next").removesuffix("_window")
        if source == "z":
            assert self._cache is not None
            return self._cache[index]
        return self.frames.field(source, index)

    def _means(self, stage: Stage, losses: Mapping[str, Tensor]) -> dict[str, float]:
        # The only synchronisation of a pass: losses are summed on the device until here.
        means = {name: self.ranks.mean(value).item() for name, value in losses.items()}
        if not all(torch.isfinite(torch.tensor(list(means.values())))):
            raise DivergenceError(
                f"training diverged in the {stage.name} stage of epoch {self.epoch + 1}: the loss "
                f"is {means['total']}; lower the stage's learning rate and train in a new folder"
            )
        return means

    def _watch(self) -> LatentScale:
        pairs, device = self.frames.pairs, self.frames.device
        # Evenly over the pairs of all ranks, of which some are before those that are here.
        counts = self.ranks.gather(torch.tensor([len(pairs)], device=device)).tolist()
        before, stride = sum(counts[: self.ranks.rank]), -(-sum(counts) // WATCHED_PAIRS)
        latents = self._latents(pairs[-before % stride :: stride])
        generator = torch_generator(self.training.seed, "watch", self.epoch, device=device)
        return latent_scale(self._fitted_transition(), latents, generator)

    def _fitted_transition(self) -> Transition | None:
        """The transition of latent states, once a stage or a closing step has touched it."""
        if self.modules.spec.transition.carries_macrostate:
            # Its loss is of another state; the transition that holds the scale of z is `anchor`.
            anchor = dict(self.modules.named_children()).get("anchor")
            return anchor if isinstance(anchor, Transition) else None
        stages = [stage for stages in self.schedule[: self.epoch] for stage in stages]
        moved = any("transition" in stage.moves for stage in stages)
        closed = any(end <= self.epoch and turn.finish for end, turn in self._closing.items())
        return self.modules.transition if moved or closed else None

    def averaged(self) -> Modules:
        """A frozen copy of the modules, with averaged weights where the turn averages."""
        copy = deepcopy(self.modules).requires_grad_(False).eval()
        parameters = dict(copy.named_parameters())
        # A turn that has ended left its averages in the modules, and may have gone on from there.
        running = self.epoch > 0 and self.epoch not in self._closing
        for stage in self.schedule[self.epoch - 1] if running else ():
            for name, value in self.steppers[stage.name].average.items():
                parameters[name].copy_(value)
        return copy

    def tensors(self) -> dict[str, Tensor]:
        """Everything to resume from, by name."""
        state = {f"modules/{key}": value for key, value in self.modules.state_dict().items()}
        for name, stepper in self.steppers.items():
            state |= {f"stages/{name}/{key}": value for key, value in stepper.tensors()}
        return state

    def copy_state(self) -> None:
        """Takes up the state of the leader, which may be that of a checkpoint."""
        if self.ranks.size == 1:
            return
        epoch, tensors = self.ranks.lead(
            lambda: (self.epoch, {name: value.cpu() for name, value in self.tensors().items()})
        )
        if not self.ranks.leads:
            self.load(epoch, tensors)

    def load(self, epoch: int, tensors: Mapping[str, Tensor]) -> None:
        """Takes up the state after `epoch` epochs that `tensors` gave; refuses any other."""
        if type(epoch) is not int or not 0 <= epoch <= len(self.schedule):
            raise InputError(
                f"`epoch` is {epoch!r} in the checkpoint; it must be from 0 to "
                f"{len(self.schedule)}"
            )
        stages = {name: f"stages/{name}/" for name in self.steppers}
        prefixes = ("modules/", *stages.values())
        if unknown := sorted(name for name in tensors if not name.startswith(prefixes)):
            raise InputError(f"the checkpoint has an unknown tensor `{unknown[0]}`")
        modules = take_prefixed(tensors, "modules/")
        refuse_unlike(modules, self.modules.state_dict(), "the checkpoint")
        for name, stepper in self.steppers.items():
            stepper.load(take_prefixed(tensors, stages[name]))
        self.modules.load_state_dict(modules)
        self.epoch = epoch
        self._cached = None


def _join_rows(parts: Sequence[Tensor], pairs: int, which: str) -> Tensor:
    """What was drawn for the pairs of several partitions, as if drawn for all of them at once."""
    if any(part.ndim == 0 or len(part) % pairs for part in parts):
        raise InputError(
            f"stage `{which}` of shape {tuple(parts[0].shape)} for {pairs} pairs of a partition; "
            "name it in `shared` if it belongs to the batch as a whole, or train in one partition"
        )
    return torch.cat([part.unflatten(0, (-1, pairs)) for part in parts], dim=1).flatten(0, 1)


def _refuse_other_division(frames: Frames, training: TrainingSpec) -> None:
    if frames.partitions.count != training.partitions:
        raise InputError(
            f"`training.partitions` is {training.partitions} and the frames are in "
            f"{frames.partitions.count}: give that number to `Frames.load`"
        )


def _refuse_bad_stages(turns: Sequence[Turn], modules: Modules) -> None:
    stages = [stage for turn in turns for stage in turn.stages]
    names = [stage.name for stage in stages]
    if len(set(names)) < len(names):
        raise InputError(f"the stages are named {names}; give each a name of its own")
    known = {name for name, _ in modules.named_modules() if name}
    for stage in stages:
        if not known.issuperset(stage.moves):
            own = {name for name, _ in modules.named_children()}
            raise InputError(
                f"stage `{stage.name}` moves {', '.join(stage.moves)}; name modules, or parts of "
                f"them, of {', '.join(sorted(own))}"
            )
        if unknown := sorted(stage.needs - FIELDS):
            raise InputError(
                f"stage `{stage.name}` needs {', '.join(unknown)}; a batch may hold "
                f"{', '.join(sorted(FIELDS))}"
            )
