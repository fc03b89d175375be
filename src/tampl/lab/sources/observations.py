"""The macrostates of an import: read from files beside the trajectories, or computed.

    y.npy                     (n, F) or (n, F, m); (F,) or (F, m) of a single trajectory
    runs.h5:/y                an array of a file of arrays, in the same shapes
    energies.csv              a column for each observable, the frames of all trajectories in turn
    {stem}.csv, {file}:y      one for each file of trajectories, beside it or in it
    radius-of-gyration        a name of the library, with settings as in `density:x=0..0.5`
    mine:width                a function in mine.py; it runs because its name was typed

What is read has a value for every frame of the files, before any are thinned. What is computed
sees each trajectory of the store from its first frame on.
"""

import csv
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...description import Observable
from ...errors import InputError
from ...microstates import Microstate
from ...observables import FunctionMap, ObservableMap, find_observable
from .arrays import ARRAY_SUFFIXES, fill_in, open_array
from .tracks import Track, refuse_damage, split_address

__all__ = ["ComputedObservation", "Observation", "ReadObservation", "find_observation"]

_CSV = ".csv"
_CLOCKS = ("t", "time", "frame", "step", "trajectory")
"""Columns of a table that are no observables."""


class Observation(ABC):
    """Where one `--observable` gets its values from.

    Attributes:
        text: The option as it was typed.
    """

    text: str

    @abstractmethod
    def describe(self, kind: Microstate, tracks: Sequence[Track]) -> tuple[Observable, ...]:
        """The observables, in the order of their values."""

    @abstractmethod
    def sources(self, tracks: Sequence[Track]) -> list[Path]:
        """The files that the values depend on beside the trajectories."""


class ComputedObservation(Observation):
    """A map of the library, or a function of one's own."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.map: ObservableMap = find_observable(text)

    def describe(self, kind: Microstate, tracks: Sequence[Track]) -> tuple[Observable, ...]:
        self.map.refuse_other_kind(kind)
        return self.map.describe(kind)

    def sources(self, tracks: Sequence[Track]) -> list[Path]:
        owner = self.map.function if isinstance(self.map, FunctionMap) else type(self.map)
        module = sys.modules.get(getattr(owner, "__module__", ""))
        place = getattr(module, "__file__", None)
        own = place is not None and not type(self.map).__module__.startswith("tampl.")
        return [Path(place)] if place and (own or isinstance(self.map, FunctionMap)) else []

    def observe(
        self, blocks: Iterator[NDArray[Any]], kind: Microstate, name: str
    ) -> NDArray[np.float64]:
        """The values along a trajectory, (F, m).

        Arguments:
            blocks: Its microstates in stored form, block after block.
            kind: What they are.
            name: What a message calls the trajectory.
        """
        try:
            return self.map.observe(blocks, kind)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error


class ReadObservation(Observation):
    """Values in a file: one for all trajectories, or one for each file of trajectories."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.by_file = "{" in text

    def describe(self, kind: Microstate, tracks: Sequence[Track]) -> tuple[Observable, ...]:
        address = self._address(tracks[0])
        with refuse_damage(address):
            names = _read_names(address, self._values(tracks[0], 0, len(tracks)))
        return tuple(Observable(name=name, symbol=name) for name in names)

    def sources(self, tracks: Sequence[Track]) -> list[Path]:
        return list(dict.fromkeys(split_address(self._address(track))[0] for track in tracks))

    def read(
        self, tracks: Sequence[Track], needed: Sequence[NDArray[np.int64]]
    ) -> list[NDArray[np.float64]]:
        """The values of every frame of every track, (F, m) each.

        Arguments:
            tracks: The tracks.
            needed: The frames of each whose values must be finite.
        """
        frames = sum(track.frames for track in tracks)
        found, done = [], 0
        for number, track in enumerate(tracks):
            with refuse_damage(self._address(track)):
                values = self._values(track, number, len(tracks), before=done, all_frames=frames)
            done += track.frames
            found.append(self._refuse_unusable(values, track, needed[number]))
        width = {values.shape[1] for values in found}
        if len(width) > 1:
            raise InputError(
                f"`--observable` {self.text} has {min(width)} columns for some trajectories and "
                f"{max(width)} for others"
            )
        return found

    def _address(self, track: Track) -> str:
        return fill_in(self.text, track.file)

    def _values(
        self, track: Track, number: int, count: int, *, before: int = 0, all_frames: int = 0
    ) -> NDArray[Any]:
        """The values of a track, (F, m); the length is not checked yet."""
        address = self._address(track)
        path = split_address(address)[0]
        if path.suffix.lower() == _CSV:
            table = _read_table(path)[1]
            if self.by_file or not all_frames:
                return table
            if len(table) != all_frames:
                raise InputError(
                    f"{path} has {len(table)} rows, and the trajectories have {all_frames} frames "
                    "together: give a row for each frame"
                )
            return table[before : before + track.frames]
        array = open_array(address)
        alone = track.place is None if self.by_file else count == 1
        place = (track.place or 0) if self.by_file else number
        if alone and array.shape[0] != 1:
            values = np.asarray(array)
        elif array.ndim < 2 or place >= array.shape[0]:
            raise InputError(
                f"{address} has shape {tuple(array.shape)}; of {count} trajectories it must hold "
                "(trajectories, frames) or (trajectories, frames, observables)"
            )
        else:
            values = np.asarray(array[place])
        return values[:, None] if values.ndim == 1 else values

    def _refuse_unusable(
        self, values: NDArray[Any], track: Track, needed: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        address = self._address(track)
        if values.dtype.kind not in "biuf":
            raise InputError(f"{address} holds {values.dtype}; observables are real numbers")
        if values.ndim != 2 or len(values) != track.frames:
            raise InputError(
                f"{address} has {len(values)} values for the {track.frames} frames of "
                f"{track.name}: give one for each frame"
            )
        finite = np.isfinite(values[needed]).all(axis=1)
        if not finite.all():
            frame = int(needed[finite.argmin()])
            raise InputError(
                f"{address} holds {values[frame].tolist()} for frame {frame} of {track.name}: "
                "leave the trajectory out, or mend it"
            )
        return values.astype(np.float64)


def find_observation(text: str) -> Observation:
    """What an `--observable` stands for: a file, a name of the library or a function."""
    path = (text.partition("{file}")[2] and text.partition(":")[0]) or split_address(text)[0]
    suffix = Path(path).suffix.lower()
    if "{file}" in text or suffix == _CSV or suffix in ARRAY_SUFFIXES:
        return ReadObservation(text)
    if suffix and Path(path).exists():
        raise InputError(
            f"`--observable` is {text}, a file of unknown format; files of observables end in "
            f"{_CSV}, {', '.join(ARRAY_SUFFIXES)}"
        )
    return ComputedObservation(text)


def _read_table(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Names and values of the columns of a CSV file, without those that count time."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: give the path of an existing file")
    state = path.stat()
    return _parse_table(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _parse_table(path: Path, version: int, size: int) -> tuple[list[str], NDArray[np.float64]]:
    """The table of a file in one state; another state is another table."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no table of numbers with commas ({error})") from error
    if not rows:
        raise InputError(f"{path} is empty; give a row for each frame")
    named = not all(_is_number(cell) for cell in rows[0])
    names = [cell.strip() for cell in rows[0]] if named else []
    body = rows[1:] if named else rows
    width = len(rows[0])
    table = np.empty((len(body), width))
    for number, row in enumerate(body, start=1 + named):
        if len(row) != width or not all(_is_number(cell) for cell in row):
            raise InputError(
                f"{path}, line {number}: {','.join(row)[:80]!r} is no row of {width} numbers"
            )
        table[number - 1 - named] = [float(cell) for cell in row]
    names = names or [path.stem if width == 1 else f"{path.stem}{k + 1}" for k in range(width)]
    kept = [k for k, name in enumerate(names) if name.lower() not in _CLOCKS]
    if not kept:
        raise InputError(f"{path} has no column of an observable, only {', '.join(names)}")
    return [names[k] for k in kept], table[:, kept]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_names(address: str, values: NDArray[Any]) -> list[str]:
    path, inner = split_address(address)
    if path.suffix.lower() == _CSV:
        return _read_table(path)[0]
    stem = inner.strip("/").rpartition("/")[2] if inner else path.stem
    width = values.shape[1] if values.ndim == 2 else 1
    return [stem] if width == 1 else [f"{stem}{k + 1}" for k in range(width)]
