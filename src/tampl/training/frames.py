"""Which frames a training sees: all frames on the device, windows of them, moved by symmetries.

Frames of all trajectories lie one after another; a *pair* is the index t of a frame whose
successor t + lag belongs to the same trajectory, where both exist. A batch of indices becomes
network input on the device, so the stored form (a byte per site) is all that is ever resident; a
training with symmetries keeps it twice. Microstates that are not in memory, or that do not fit on
the device, are read in batches (`streaming.py`); macrostates are always on the device.

A *window* of W frames, each a lag after the one before, holds W - 1 pairs, so whatever encodes
both ends of its pairs encodes W frames for W - 1 pairs instead of two for each; W = 2 is plain
pairs. Windows tile the trajectories from an offset that is drawn anew for each selection, and a
stated fraction of them, at random, is what one selection holds. With a lag, a trajectory is as
many interleaved ones, and each is tiled. A window with a missing frame is left out.

Symmetries move whole trajectories, not single frames, which keeps pairs and windows intact. They
are drawn anew where the latent cache is made anew, so that the cache is that of the frames a stage
sees.

A rank has the frames of its own partitions (`partitions.py`). A pass takes as many windows from
each partition as the smallest has; which ones are left out of the others changes with the order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from ..data.dataset import Dataset, Statistics
from ..errors import InputError
from ..microstates import Microstate
from ..seeding import torch_generator
from .partitions import Partitions
from .ranks import ALONE, Ranks
from .settings import TrainingSpec
from .streaming import Outside

__all__ = [
    "Frames",
    "Selection",
    "Views",
    "refuse_long_windows",
    "refuse_other_symmetries",
    "refuse_small_batches",
    "select",
    "spans",
    "steps_per_pass",
]


BLOCK_BYTES = 8 * 2**20
"""Bytes of a block of frames, enough for a disk to read it at full speed."""

BLOCKS_TOGETHER = 16
"""Blocks whose windows are mixed."""

DEVICE_SHARE = 0.5
"""Of the free memory of a GPU, what microstates may take; the rest is for the networks."""


@dataclass(frozen=True)
class Frames:
    """All frames of a data set, or of the partitions of it that a rank has.

    Attributes:
        stored: Microstates in stored form, standardised where their kind is, (n_frames, *shape);
            or where they are, if they are not on the device.
        macrostates: Standardised macrostates, (n_frames, m).
        pairs: Index of the first frame of every pair, (n_pairs,).
        length: Frames of a trajectory.
        microstate: The kind of microstate, which makes the network input.
        lag: Frames from one end of a pair to the other.
        partitions: The partitions of the data set.
        present: Which frames exist, (n_frames,); None where all do.
        present_anywhere: The same of the whole data set, in the machine's memory.
    """

    stored: Tensor | Outside
    macrostates: Tensor
    pairs: Tensor
    length: int
    microstate: Microstate
    partitions: Partitions
    lag: int = 1
    present: Tensor | None = None
    present_anywhere: Tensor | None = None

    @classmethod
    def load(
        cls,
        data: Dataset,
        statistics: Statistics,
        *,
        lag: int = 1,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        partitions: int = 1,
        ranks: Ranks = ALONE,
    ) -> "Frames":
        """Puts a data set on a device.

        Arguments:
            data: The trajectories, of all ranks.
            statistics: What standardises macrostates, and microstates where their kind is.
            lag: Frames from one end of a pair to the other.
            device: Where to keep and to train.
            dtype: Precision of the networks.
            partitions: How many parts the trajectories are cut into.
            ranks: Those that the partitions are divided among.
        """
        parts = Partitions.cut(len(data), partitions, ranks)
        anywhere = None if data.present is None else torch.from_numpy(data.present).flatten()
        if ranks.size > 1:
            data = data.select(parts.rows)
        runs, frames = data.y.shape[:2]
        y = torch.from_numpy(statistics.y.standardize(data.y))
        index = torch.arange(runs * frames, device=device).view(runs, frames)
        pairs, present = index[:, : max(0, frames - lag)].flatten(), None
        if data.present is not None:
            present = torch.from_numpy(data.present).flatten().to(device)
            pairs = pairs[present[pairs] & present[pairs + lag]]
        return cls(
            stored=_store(data, statistics, torch.device(device)),
            macrostates=y.flatten(0, 1).to(device, dtype),
            pairs=pairs,
            length=frames,
            microstate=data.description.microstate,
            partitions=parts,
            lag=lag,
            present=present,
            present_anywhere=anywhere,
        )

    def __len__(self) -> int:
        return len(self.macrostates)

    @property
    def device(self) -> torch.device:
        """Where the training takes place."""
        return self.macrostates.device

    @property
    def block(self) -> int:
        """Frames in a block of the data (`TrainingSpec.order`)."""
        kind = self.microstate
        return max(1, BLOCK_BYTES // (prod(kind.shape) * kind.dtype.itemsize))

    def x(self, index: Tensor) -> Tensor:
        """Network input of the frames at `index`."""
        if isinstance(self.stored, Outside):
            return self.input(self.stored.put(self.stored.read(index.cpu().numpy())))
        kind = self.stored.dtype
        # On a GPU torch may not index 16-bit words without a sign; the same bits with one it can.
        words = self.stored.view(torch.int16) if kind == torch.uint16 else self.stored
        return self.input(words[index].view(kind))

    def input(self, stored: Tensor) -> Tensor:
        """Network input of frames in stored form."""
        return self.microstate.network_input(stored, self.macrostates.dtype)

    def y(self, index: Tensor) -> Tensor:
        """Standardised macrostates of the frames at `index`."""
        return self.macrostates[index]

    @property
    def steps(self) -> int:
        """Frames of a trajectory that are a lag apart."""
        return (self.length - 1) // self.lag + 1

    def stretch(self, factor: int) -> "Frames":
        """The same frames with pairs that are so many lags apart; their index is left as it is."""
        return self if factor == 1 else replace(self, lag=factor * self.lag)

    def windows(self, size: int, offset: int) -> Tensor:
        """Starts of windows of `size` frames that follow each other, sharing their end frames.

        Arguments:
            size: Frames in a window, at least two and at most `steps`.
            offset: Place of the first window in each trajectory, in lags.
        """
        return self._tile(len(self), self.present, size, offset, self.pairs.device)

    def count_windows(self, size: int, offset: int) -> int:
        """How many windows the partition has that has the fewest, here or on another rank."""
        partitions, known = self.partitions, self.present_anywhere
        if known is None:
            each = len(self._tile(self.length, None, size, offset, torch.device("cpu")))
            return partitions.smallest * each
        starts = self._tile(len(known), known, size, offset, known.device)
        ends = torch.tensor(partitions.cuts[1:]) * self.length
        partition = torch.searchsorted(ends, starts, right=True)
        return int(partition.bincount(minlength=partitions.count).min())

    def _tile(
        self,
        frames: int,
        present: Tensor | None,
        size: int,
        offset: int,
        device: torch.device,
    ) -> Tensor:
        """Starts of windows in so many frames of whole trajectories."""
        within = torch.arange(max(0, self.length - self.lag * (size - 1)), device=device)
        place = within // self.lag - offset
        within = within[(place >= 0) & (place % (size - 1) == 0)]
        first = torch.arange(0, frames, self.length, device=device)
        starts = (first[:, None] + within).flatten()
        if present is None:
            return starts
        return starts[present[spans(starts, size, self.lag)].view(-1, size).all(dim=1)]

    def field(self, name: str, index: Tensor) -> Tensor:
        """`x` or `y` of the frames at `index`, by name."""
        return {"x": self.x, "y": self.y}[name](index)


def _store(data: Dataset, statistics: Statistics, device: torch.device) -> Tensor | Outside:
    """The microstates on the device, or where they are if they do not fit there."""
    if isinstance(data.x, np.ndarray) and _fits_on(data.x.nbytes, device):
        x = data.x if statistics.x is None else statistics.x.standardize(data.x)
        return torch.from_numpy(x).flatten(0, 1).to(device)
    return Outside(data.x, statistics.x, device)


def _fits_on(size: int, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return size <= DEVICE_SHARE * free


@dataclass(frozen=True)
class Selection:
    """Windows of frames of one partition.

    Attributes:
        starts: Index of the first frame of each window, (n,).
        window: Frames in a window.
        lag: Frames from one of them to the next.
        block: Frames in a block, where the order of a pass is that of blocks.
        size: Windows in a pass, where other partitions have fewer; all by default.
        first: Index of the partition's first frame, where its blocks begin.
        together: Blocks whose windows are mixed.
    """

    starts: Tensor
    window: int
    lag: int = 1
    block: int | None = None
    size: int | None = None
    first: int = 0
    together: int = BLOCKS_TOGETHER

    @property
    def pairs(self) -> Tensor:
        """Index of the first frame of every pair, (n (W - 1),)."""
        return spans(self.starts, self.window - 1, self.lag)

    @property
    def frames(self) -> Tensor:
        """Index of every frame, (n W,)."""
        return spans(self.starts, self.window, self.lag)

    def batches(
        self, batch_size: int, generator: torch.Generator, *, steps: int | None = None
    ) -> Iterator[Tensor]:
        """Starts of windows in the order of a pass, as many at once as hold `batch_size` pairs.

        Arguments:
            batch_size: Pairs in a batch.
            generator: Of the order.
            steps: How many batches, each of windows drawn anew; None for every window once.
        """
        count, device = len(self.starts), self.starts.device
        most = count if self.size is None else self.size
        size = _windows_per_batch(batch_size, self.window)
        if steps is None:
            order = torch.randperm(count, generator=generator, device=device)
            if self.block is not None:
                order = order[self._groups(self.block, generator)[order].argsort(stable=True)]
            yield from self.starts[order[:most]].split(size)
            return
        for _ in range(steps):
            drawn = torch.randint(count, (min(size, most),), generator=generator, device=device)
            yield self.starts[drawn]

    def _groups(self, block: int, generator: torch.Generator) -> Tensor:
        """The group of blocks that each window belongs to; blocks are grouped at random."""
        device, number = self.starts.device, (self.starts - self.first) // block
        count = int(number.max()) + 1
        ranks = torch.randperm(count, generator=generator, device=device)
        return ranks[number] // self.together


def select(
    frames: Frames,
    training: TrainingSpec,
    number: int,
    *,
    partition: int = 0,
    lags: tuple[int, ...] = (1,),
) -> list[Selection]:
    """The selections of a number, one for each lag, of as many windows each.

    Arguments:
        frames: The frames.
        training: Window, fraction and seed.
        number: Which of the selections of a training; with all pairs each is the same.
        partition: The partition that is selected from, one that is here.
        lags: Those of a stage.
    """
    partitions, rows = frames.partitions, frames.partitions.here(partition)
    first, last = rows.start * frames.length, rows.stop * frames.length
    tilings, kept = [], []
    for lag in lags:
        stretched, address = frames.stretch(lag), ("windows", number, *_name_lag(lag))
        generator = torch_generator(training.seed, *address)
        offset = int(torch.randint(_count_offsets(stretched, training), (), generator=generator))
        kept.append(_count_kept(training, stretched.count_windows(training.window, offset), lags))
        if own := partitions.address(partition):
            generator = torch_generator(training.seed, *address, *own)
        tilings.append((stretched, offset, generator))
    found = []
    for stretched, offset, generator in tilings:
        starts = stretched.windows(training.window, offset)
        starts = starts[(starts >= first) & (starts < last)]
        if training.fraction < 1:
            chosen = torch.randperm(len(starts), generator=generator)[: min(kept)].sort().values
            starts = starts[chosen.to(starts.device)]
        selection = Selection(
            starts,
            training.window,
            stretched.lag,
            block=frames.block if training.order == "blocks" else None,
            size=min(kept),
            first=first,
            # Of all partitions, so that the order is the same on however many ranks.
            together=max(1, BLOCKS_TOGETHER // partitions.count),
        )
        found.append(selection)
    return found


def _name_lag(lag: int) -> tuple[str | int, ...]:
    return () if lag == 1 else ("lag", lag)


def spans(starts: Tensor, length: int, lag: Tensor | int = 1) -> Tensor:
    """Index of `length` frames from each start, one window after another.

    Arguments:
        starts: Where the windows start, (n,).
        length: Frames of each.
        lag: From one frame to the next, of all windows or of each (n,).
    """
    if isinstance(lag, Tensor):
        lag = lag[:, None]
    return (starts[:, None] + lag * torch.arange(length, device=starts.device)).flatten()


def steps_per_pass(
    frames: Frames, training: TrainingSpec, batch_size: int, lags: tuple[int, ...] = (1,)
) -> int:
    """Batches of a pass, the most there can be.

    Arguments:
        frames: The frames.
        training: Window and fraction.
        batch_size: Pairs of each partition and lag in a batch.
        lags: Those of a stage.
    """
    most = [max(_count_windows(frames.stretch(lag), training)) for lag in lags]
    kept = _count_kept(training, min(most), lags)
    return -(-kept // _windows_per_batch(batch_size, training.window))


def refuse_small_batches(training: TrainingSpec, batch_size: int, lags: int = 1) -> None:
    """Refuses a batch without a window for each partition and lag.

    Arguments:
        training: Window and partitions.
        batch_size: Pairs in a batch.
        lags: How many lags a stage has.
    """
    if training.partitions * lags > max(1, batch_size // (training.window - 1)):
        each, what = (f" and a stage has {lags} lags", " and lag") if lags > 1 else ("", "")
        raise InputError(
            f"`training.partitions` is {training.partitions}{each} and a batch has {batch_size} "
            f"pairs, in windows of {training.window - 1}: it needs a window of each "
            f"partition{what} at least"
        )


def refuse_long_windows(frames: Frames, training: TrainingSpec) -> None:
    """Refuses a window that no trajectory holds."""
    if training.window > frames.steps or not min(_count_windows(frames, training)):
        apart = f", {frames.lag} frames apart," if frames.lag > 1 else ""
        known = frames.present_anywhere
        held = "" if known is None else " at most, and some are missing"
        divided = " in some partition" if frames.partitions.count > 1 else ""
        many = "" if frames.steps == 1 else "s"
        has = f"a trajectory has {frames.steps} frame{many}{apart}{held}{divided}".rstrip(",")
        raise InputError(
            f"`training.window` is {training.window}; {has}: choose a smaller `window` or smaller "
            "lags"
        )


def _count_offsets(frames: Frames, training: TrainingSpec) -> int:
    """How many offsets of windows there are."""
    return min(training.window - 1, frames.steps - training.window + 1)


def _count_windows(frames: Frames, training: TrainingSpec) -> list[int]:
    """How many windows a partition has, by their offset."""
    offsets = range(_count_offsets(frames, training))
    return [frames.count_windows(training.window, offset) for offset in offsets]


def _count_kept(training: TrainingSpec, windows: int, lags: tuple[int, ...] = (1,)) -> int:
    return max(1, round(training.fraction * windows / len(lags)))


def _windows_per_batch(batch_size: int, window: int) -> int:
    return max(1, batch_size // (window - 1))


_AT_ONCE = 256
"""Trajectories that are moved in one go, which bounds the memory; the motions depend on it."""


class Views:
    """The frames of a training, with its symmetries.

    Arguments:
        frames: The frames as they were simulated; they are left as they are.
        training: Seed and symmetries.

    Attributes:
        frames: The frames as they are seen at present. Recorded steps read them where they are.
    """

    def __init__(self, frames: Frames, training: TrainingSpec) -> None:
        refuse_other_symmetries(frames.microstate, training)
        self._training = training
        self._simulated = frames
        self._shown: int | None = None
        self.frames = frames
        if training.symmetries:
            self.frames = replace(frames, stored=_require_resident(frames).clone())

    def show(self, part: int) -> None:
        """Moves every trajectory as in this part of the training."""
        if not self._training.symmetries or part == self._shown:
            return
        whole, partitions = (-1, self._simulated.length), self.frames.partitions
        simulated, seen = (
            _require_resident(frames).unflatten(0, whole)
            for frames in (self._simulated, self.frames)
        )
        for partition in partitions:
            address = ("symmetries", part, *partitions.address(partition))
            generator = torch_generator(self._training.seed, *address)
            rows = partitions.here(partition)
            pieces = (frames[rows].split(_AT_ONCE) for frames in (simulated, seen))
            for there, here in zip(*pieces, strict=True):
                kind = self.frames.microstate
                here.copy_(kind.transformed(there, self._training.symmetries, generator))
        self._shown = part


def _require_resident(frames: Frames) -> Tensor:
    if isinstance(frames.stored, Outside):
        raise InputError(
            "`training.symmetries` moves whole trajectories, which have to be in memory, and the "
            "training set is too large: allow more `memory`, or train without symmetries"
        )
    return frames.stored


def refuse_other_symmetries(kind: Microstate, training: TrainingSpec) -> None:
    """Refuses symmetries that microstates of a kind do not have."""
    known = kind.symmetries
    for name in training.symmetries:
        if name not in known:
            raise InputError(
                f"`training.symmetries` has {name!r}; microstates of this kind and shape have "
                f"{', '.join(sorted(known)) or 'none'}"
            )
