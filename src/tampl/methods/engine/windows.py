"""Which frames an epoch sees: windows of consecutive frames, all of them or a part.

A window of W frames holds W - 1 pairs, so whatever encodes both ends of its pairs encodes W frames
for W - 1 pairs instead of two for each; W = 2 is plain pairs. Windows tile the trajectories from
an offset that is drawn anew for each selection, and a stated fraction of them, at random, is what
one selection holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ...data.frames import Frames
from ...errors import InputError
from ...seeding import torch_generator
from ..base import TrainingSpec

__all__ = ["Selection", "refuse_long_windows", "select", "spans", "steps_per_pass"]


@dataclass(frozen=True)
class Selection:
    """Windows of frames.

    Attributes:
        starts: Index of the first frame of each window, (n,).
        window: Frames in a window.
    """

    starts: Tensor
    window: int

    @property
    def pairs(self) -> Tensor:
        """Index of the first frame of every pair, (n (W - 1),)."""
        return spans(self.starts, self.window - 1)

    def batches(self, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
        """Starts of windows in random order, as many at once as hold `batch_size` pairs."""
        count, device = len(self.starts), self.starts.device
        order = torch.randperm(count, generator=generator, device=device)
        yield from self.starts[order].split(_per_batch(batch_size, self.window))


def select(frames: Frames, training: TrainingSpec, number: int) -> Selection:
    """The selection of a number.

    Arguments:
        frames: The frames.
        training: Window, fraction and seed.
        number: Which of the selections of a training; with all pairs each is the same.
    """
    generator = torch_generator(training.seed, "windows", number)
    room = min(training.window - 1, frames.length - training.window + 1)
    offset = int(torch.randint(room, (), generator=generator))
    starts = frames.windows(training.window, offset)
    kept = _kept(training, len(starts))
    if kept < len(starts):
        chosen = torch.randperm(len(starts), generator=generator)[:kept].sort().values
        starts = starts[chosen.to(starts.device)]
    return Selection(starts, training.window)


def spans(starts: Tensor, length: int) -> Tensor:
    """Index of `length` consecutive frames from each start, one window after another."""
    return (starts[:, None] + torch.arange(length, device=starts.device)).flatten()


def steps_per_pass(frames: Frames, training: TrainingSpec) -> int:
    """Batches of a pass, the most there can be."""
    kept = _kept(training, len(frames.windows(training.window, 0)))
    return -(-kept // _per_batch(training.batch_size, training.window))


def refuse_long_windows(frames: Frames, training: TrainingSpec) -> None:
    """Refuses a window that no trajectory holds."""
    if training.window > frames.length:
        raise InputError(
            f"`training.window` is {training.window}; a trajectory has {frames.length} frames"
        )


def _kept(training: TrainingSpec, windows: int) -> int:
    return max(1, round(training.fraction * windows))


def _per_batch(batch_size: int, window: int) -> int:
    return max(1, batch_size // (window - 1))
