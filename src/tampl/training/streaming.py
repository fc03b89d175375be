"""Frames that are not on the device: read in batches, ahead of their use.

Frames that do not fit stay on disk (`tampl.data.lazy`) or, where the device has less memory than
the machine, in the machine's memory. The order of a pass is known when it begins, so that threads
read the next batches while the device works on the present one. What a batch holds is the same in
either case: frames in stored form, in the same order, with the same standardisation.

Batches of random pairs read single frames from everywhere. Batches in the order of blocks
(`TrainingSpec.order`) take their frames from a few blocks of the data at a time; these are read
as wholes, in sequence, and kept as long as batches need them.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data.dataset import Normalization, Reader

__all__ = ["BUFFERS", "Blocks", "Outside", "count_bytes_beside", "read_ahead"]

Item = TypeVar("Item")


Result = TypeVar("Result")


_READERS = 4
"""Batches that are read at the same time; a disk answers several requests at once."""

_AHEAD = 16
"""Batches that are read ahead of their use, if they are small."""

_AHEAD_BYTES = 2**28
"""Of batches that are read ahead, unless two are larger."""


_BYTES_OF_INDICES = 40
"""Of the pairs, windows and order of a pass, for each frame."""

BUFFERS = 2**29
"""Bytes of the blocks and batches of frames that are read from a disk, about."""


def count_bytes_beside(frames: int, observables: int, latent_dim: int) -> int:
    """Bytes that a training takes in memory beside the microstates.

    Arguments:
        frames: Frames of the training set.
        observables: How many observables a macrostate has, in both precisions.
        latent_dim: Size of the latent state, which the cache holds of every frame.
    """
    return frames * (12 * observables + 4 * latent_dim + _BYTES_OF_INDICES)


@dataclass(frozen=True, eq=False)
class Outside:
    """Frames of a data set that are read when they are needed.

    Attributes:
        source: Where they are, (n, F, *shape).
        normalization: What standardises them, where their kind is standardised.
        device: Where they are needed.
    """

    source: NDArray[Any] | Reader
    normalization: Normalization | None
    device: torch.device

    def read(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """The frames at some places, counted through all trajectories, (len(index), *shape)."""
        if isinstance(self.source, np.ndarray):
            found = self.source.reshape(-1, *self.source.shape[2:])[index]
        else:
            found = self.source.read(index)
        return found if self.normalization is None else self.normalization.standardize(found)

    def count_ahead(self, frames: int) -> int:
        """How many batches of so many frames are read ahead of their use."""
        size = frames * prod(self.source.shape[2:]) * self.source.dtype.itemsize
        return max(2, min(_AHEAD, _AHEAD_BYTES // size))

    def put(self, frames: NDArray[Any]) -> Tensor:
        """Frames on the device; a GPU copies them from pinned memory while it computes."""
        tensor = torch.from_numpy(frames)
        if self.device.type != "cuda":
            return tensor.to(self.device)
        return tensor.pin_memory().to(self.device, non_blocking=True)


class Blocks:
    """Reads the frames of windows from whole blocks, of which the last ones are kept.

    Arguments:
        frames: The frames.
        size: Frames in a block.
        reach: Frames behind the end of a block that its windows may hold.
        kept: Blocks in memory.
    """

    def __init__(self, frames: Outside, size: int, *, reach: int, kept: int) -> None:
        self._frames, self._size, self._reach, self._kept = frames, size, reach, kept
        self._total = frames.source.shape[0] * frames.source.shape[1]
        self._blocks: OrderedDict[int, NDArray[Any]] = OrderedDict()

    def read(self, starts: NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[Any]:
        """The frames of windows.

        Arguments:
            starts: The first frame of each window, (n,).
            index: The frames wanted of it, (n, k).
        """
        numbers, which = np.unique(starts // self._size, return_inverse=True)
        parts = [self._load(int(number)) for number in numbers]
        out = np.empty((*index.shape, *parts[0].shape[1:]), parts[0].dtype)
        for place, (number, part) in enumerate(zip(numbers, parts, strict=True)):
            mine = which == place
            out[mine] = part[index[mine] - number * self._size]
        return out.reshape(-1, *out.shape[2:])

    def _load(self, number: int) -> NDArray[Any]:
        if number not in self._blocks:
            first = number * self._size
            last = min(first + self._size + self._reach, self._total)
            self._blocks[number] = self._frames.read(np.arange(first, last))
            while len(self._blocks) > self._kept:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]


def read_ahead(
    items: Iterable[Item],
    read: Callable[[Item], Result],
    *,
    ahead: int = _AHEAD,
    threads: int = _READERS,
) -> Iterator[tuple[Item, Result]]:
    """Yields items with what is read for them; threads read ahead of what is asked for.

    Arguments:
        items: What to read for.
        read: Reads for one item.
        ahead: How many items are read ahead of their use.
        threads: How many items are read at the same time.

    Example:
        >>> list(read_ahead([3, 1, 2], str))
        [(3, '3'), (1, '1'), (2, '2')]
    """
    with ThreadPoolExecutor(threads, "reader") as pool:
        pending: deque[tuple[Item, Future[Result]]] = deque()
        try:
            for item in items:
                pending.append((item, pool.submit(read, item)))
                if len(pending) > ahead:
                    first, future = pending.popleft()
                    yield first, future.result()
            while pending:
                first, future = pending.popleft()
                yield first, future.result()
        finally:
            pool.shutdown(cancel_futures=True)
