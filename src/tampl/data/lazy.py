"""Microstates that stay in their shards, for data sets larger than memory.

A shard's datasets are contiguous and uncompressed (docs/data_format.md), so that the place of a
frame in its file follows from its number. Frames are read from there by the system, without HDF5
and without a lock: several threads may read at once, and nothing is kept but what was asked for.

    x = store.dataset("train", memory=0).x     # LazyMicrostates, (n, F, *shape)
    x[:10], x[:, ::2]                          # still on disk
    x[0], x[:, 0], x[runs, times]              # arrays
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import InputError
from .shards import refuse_oversized

__all__ = ["LazyMicrostates", "Place"]

_SPARE = 256
"""Files that the rest of the process may have open."""


@dataclass(frozen=True)
class Place:
    """Where the microstates of consecutive trajectories are: a file, an offset, how many."""

    path: Path
    offset: int
    count: int


class _Shards:
    """Open shards whose frames are numbered through; several threads may read them at once.

    Arguments:
        places: Where the trajectories are, one place after another.
        frames: Frames of a trajectory.
        shape: Shape of a microstate.
        dtype: Type of the stored form.
    """

    def __init__(
        self, places: Sequence[Place], frames: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.frames, self.shape, self.dtype = frames, shape, dtype
        self.size = prod(shape) * dtype.itemsize
        self._offsets = [place.offset for place in places]
        self._firsts = np.cumsum([0, *(place.count for place in places)]) * frames
        self._lock = Lock()
        _allow_files(len(places) + _SPARE)
        with ExitStack() as stack:
            self._files = [
                stack.enter_context(place.path.open("rb", buffering=0)) for place in places
            ]
            finalize(self, stack.pop_all().close)

    def read(self, index: NDArray[np.int64]) -> NDArray[Any]:
        refuse_oversized(len(index) * self.size, f"an array of {len(index):,} frames")
        out = np.empty((len(index), *self.shape), self.dtype)
        number = np.searchsorted(self._firsts, index, side="right") - 1
        # Frames that follow each other in one file are read in one go.
        cuts = np.flatnonzero((np.diff(index) != 1) | (np.diff(number) != 0)) + 1
        for begin, end in zip([0, *cuts], [*cuts, len(index)], strict=True):
            if begin < end:
                file = int(number[begin])
                within = int(index[begin] - self._firsts[file])
                self._fill(out[begin:end], file, self._offsets[file] + within * self.size)
        return out

    def _fill(self, out: NDArray[Any], number: int, offset: int) -> None:
        """Fills a contiguous array with the bytes of a file from an offset."""
        file, rest = self._files[number], out.reshape(-1).view(np.uint8).data
        while rest:
            if hasattr(os, "preadv"):
                got = os.preadv(file.fileno(), [rest], offset)
            else:  # Windows
                with self._lock:
                    file.seek(offset)
                    got = file.readinto(rest) or 0
            if not got:
                raise InputError(
                    f"{file.name} has become shorter since it was opened: check the store"
                )
            rest, offset = rest[got:], offset + got


@dataclass(frozen=True, eq=False)
class LazyMicrostates:
    """An array of microstates (n, F, *shape) on disk; `open` is the way to one.

    A selection of trajectories, or of every k-th frame, stays on disk, unless it is to be read if
    it is small. Whatever else is asked of it is read.
    """

    _shards: _Shards
    _rows: NDArray[np.int64]
    _columns: NDArray[np.int64]
    _part: float = 0

    @classmethod
    def open(
        cls,
        places: Sequence[Place],
        *,
        frames: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        part: float = 0,
    ) -> "LazyMicrostates":
        """The microstates of all trajectories at some places, one place after another.

        Arguments:
            places: Where they are.
            frames: Frames of a trajectory.
            shape: Shape of a microstate.
            dtype: Type of the stored form.
            part: Bytes up to which a selection of trajectories is read at once.
        """
        rows = np.arange(sum(place.count for place in places))
        return cls(_Shards(places, frames, shape, dtype), rows, np.arange(frames), part)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, F, *shape)."""
        return (len(self._rows), len(self._columns), *self._shards.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored form."""
        return self._shards.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401
        keys = key if isinstance(key, tuple) else (key,)
        if any(part is ... for part in keys):
            place = next(i for i, part in enumerate(keys) if part is ...)
            fill = (slice(None),) * (self.ndim - len(keys) + 1)
            keys = (*keys[:place], *fill, *keys[place + 1 :])
        row, column, *inner = (*keys, slice(None)) if len(keys) == 1 else keys
        selects = isinstance(row, slice) or np.ndim(row) == 1
        if selects and isinstance(column, slice) and not inner:
            chosen = row if isinstance(row, slice) else np.asarray(row)
            part = replace(self, _rows=self._rows[chosen], _columns=self._columns[column])
            return np.asarray(part) if part.nbytes <= self._part else part
        n, frames = self.shape[:2]
        # Views of the numbers of rows and columns, of which indexing copies what it selects.
        rows, columns = (
            np.broadcast_to(axis, (n, frames))[row, column]
            for axis in (np.arange(n)[:, None], np.arange(frames))
        )
        index = rows * frames + columns
        found = self.read(index.ravel()).reshape(*index.shape, *self.shape[2:])
        return found[(slice(None),) * index.ndim + tuple(inner)] if inner else found

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        n, frames = self.shape[:2]
        whole = self.read(np.arange(n * frames)).reshape(self.shape)
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def read(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """The frames at some places, counted through all trajectories, (len(index), *shape)."""
        row, column = np.divmod(index, len(self._columns))
        return self._shards.read(self._rows[row] * self._shards.frames + self._columns[column])


def _allow_files(count: int) -> None:
    """Lets the process have so many files open, where the system leaves the choice to it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
