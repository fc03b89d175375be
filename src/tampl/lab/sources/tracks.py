"""What every format is read as: tracks, trajectories in files that are read piece by piece.

A format is one function from an argument of the command line, such as `runs.h5:/traj/x`, to the
tracks in it. Any stretch of a track can be read by itself, so that an import holds a few megabytes
of a trajectory at a time, and goes over the files as often as it must.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...errors import InputError
from ...frozen import Frozen

__all__ = [
    "Beside",
    "Piece",
    "Reading",
    "Track",
    "cut_tracks",
    "read_edges",
    "refuse_damage",
    "refuse_missing",
    "split_address",
]

_PIECE_BYTES = 16 * 2**20
"""Of the numbers that are read at once."""


class Reading(Frozen):
    """How to read files; what a format has no use for is left alone.

    Attributes:
        kind: Kind of the microstates; None to recognise it.
        times: Where the times of the frames are; None where the format says it, or nobody.
        types: Where the types of particles are: an array, or `names`, `elements` or `types` of
            atoms.
        box: Edges of the box of particles, such as `32,32`, or where an array of them is.
        closed: The axes along which the box has walls, such as `xy`; it is periodic along others.
        topology: The file that names the atoms of a molecular trajectory.
        select: Which atoms to keep, in the words of MDAnalysis.
        molecule: Whether the atoms are one molecule: centred, aligned, kept in order.
        axes: The coordinates to keep.
    """

    kind: Literal["vector", "lattice", "image", "particles"] | None = None
    times: str | None = None
    types: str | None = None
    box: str | None = None
    closed: str = ""
    topology: Path | None = None
    select: str = Field("all", min_length=1)
    molecule: bool = False
    axes: Literal["xyz", "xy"] = "xyz"


@dataclass(frozen=True)
class Piece:
    """Consecutive frames of a track.

    Attributes:
        x: What the files hold, (F, *shape); of particles their positions, (F, N, dim).
        times: Times of the frames, (F,); None where nobody knows them.
        types: Types of the particles by name or number, (N,) or (F, N).
        box: Edges of the box, (F, dim).
    """

    x: NDArray[Any]
    times: NDArray[np.float64] | None = None
    types: NDArray[Any] | None = None
    box: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Track:
    """A trajectory in a file.

    Attributes:
        name: What a message calls it.
        file: The file or folder that it is in.
        frames: How many frames it has.
        read: Reads the frames of a range.
        place: Its number among the trajectories of its array; None where it is alone.
        time_unit: What its times are measured in, where the format says it.
        counts_steps: Whether its times are steps of a simulation, whose length nobody knows.
    """

    name: str
    file: Path
    frames: int
    read: Callable[[range], Piece]
    place: int | None = None
    time_unit: str = ""
    counts_steps: bool = False

    def cut(self, frames: range) -> Piece:
        """Reads the frames of a range; refuses a file that is damaged there."""
        with refuse_damage(self.name):
            return self.read(frames)

    def pieces(self, frames: range) -> Iterator[tuple[range, Piece]]:
        """Reads the frames of a range a few megabytes at a time."""
        start = 0
        length = 1
        while start < len(frames):
            part = frames[start : start + length]
            piece = self.cut(part)
            yield part, piece
            start += length
            length = max(1, _PIECE_BYTES // max(1, piece.x[:1].nbytes))


@contextmanager
def refuse_damage(what: str) -> Iterator[None]:
    """Turns what the reader of a format raises for a damaged file into one line."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # which one depends on the format and on the damaged byte
        reason = " ".join(str(error).split())
        raise InputError(f"{what} cannot be read: it is damaged or cut off ({reason})") from error


def refuse_missing(path: Path) -> None:
    """Refuses a path to nothing, or to a pipe or device, which would be waited for."""
    if not path.exists():
        raise InputError(f"{path} does not exist: give the path of an existing file")
    if not (path.is_file() or path.is_dir()):
        raise InputError(f"{path} is no regular file: give the path of one, or of a folder")


def split_address(text: str) -> tuple[Path, str | None]:
    """A file and the name of an array in it, as in `runs.h5:/traj/x`.

    Example:
        >>> split_address("runs.npz:x")
        (PosixPath('runs.npz'), 'x')
    """
    head, colon, tail = text.rpartition(":")
    if Path(text).exists() or not colon or not head:
        return Path(text), None
    return Path(head), tail


@dataclass(frozen=True)
class Beside:
    """Arrays that say more of the trajectories of an array; None where there are none.

    Attributes:
        times: Of the frames, (F,) for all trajectories or (n, F).
        types: Of the particles, (N,) for all, (n, N) or (n, F, N).
        box: Edges, (dim,) for all, (n, dim) or (n, F, dim). Of an array with a single trajectory
            all have no axis n.
    """

    times: NDArray[Any] | None = None
    types: NDArray[Any] | None = None
    box: NDArray[np.float64] | None = None


def read_edges(text: str) -> NDArray[np.float64] | None:
    """The edges of a box as they are typed, `32,32`; None for what is no list of numbers."""
    try:
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        return None


def cut_tracks(
    array: Any,  # noqa: ANN401
    name: str,
    file: Path,
    *,
    reading: Reading,
    beside: Beside,
    stacked: bool | None = None,
) -> list[Track]:
    """The trajectories of an array: (n, F, *shape), or (F, *shape) for a single one.

    Arguments:
        array: Anything with a shape and a type that is cut like an array.
        name: What a message calls it.
        file: The file that it is in.
        reading: The kind of microstate, where the number of axes leaves a choice.
        beside: Times, types and boxes.
        stacked: Whether the first axis is that of the trajectories, where the file says so.
    """
    _refuse_type(array, name)
    single = _is_single(array, name, reading) if stacked is None else not stacked
    count, frames = (None, array.shape[0]) if single else array.shape[:2]
    sides = {
        key: _Side(value, f"{name}: `{key}`", count, frames, own_axes)
        for key, value, own_axes in (
            ("times", beside.times, 0),
            ("types", beside.types, 1),
            ("box", beside.box, 1),
        )
        if value is not None
    }

    def read(place: int | None) -> Callable[[range], Piece]:
        def read_range(frames: range) -> Piece:
            where = slice(frames.start, frames.stop, frames.step)
            x = np.asarray(array[where] if place is None else array[place, where])
            found = {key: side.cut(place, where) for key, side in sides.items()}
            if "box" in found:
                box = found["box"]
                found["box"] = np.broadcast_to(box, (len(x), box.shape[-1]))
            return Piece(x, **found)

        return read_range

    if count is None:
        return [Track(name, file, frames, read(None))]
    return [Track(f"{name}, trajectory {k}", file, frames, read(k), place=k) for k in range(count)]


class _Side:
    """An array beside that of the trajectories: one for all, by trajectory, or by frame.

    Arguments:
        array: The array.
        name: What a message calls it.
        count: Trajectories; None for a single one without an axis.
        frames: Frames.
        own_axes: Axes of its value in a frame; one of no axes changes from frame to frame.
    """

    def __init__(
        self, array: NDArray[Any], name: str, count: int | None, frames: int, own_axes: int
    ) -> None:
        outer = () if count is None else (count,)
        fitting = [(), outer, (*outer, frames)] if own_axes else [(frames,), (*outer, frames)]
        leading = array.shape[: array.ndim - own_axes]
        if array.ndim < own_axes or leading not in fitting:
            wanted = " or ".join(str((*axes, *["..."] * own_axes)) for axes in fitting)
            raise InputError(f"{name} has shape {array.shape}; it must be {wanted}")
        self.array = array
        self.by_frame = not own_axes or len(leading) == len(outer) + 1
        self.by_place = count is not None and len(leading) > (own_axes == 0)

    def cut(self, place: int | None, where: slice) -> NDArray[Any]:
        own = self.array[place] if self.by_place else self.array
        return own[where] if self.by_frame else own


def _refuse_type(array: Any, name: str) -> None:  # noqa: ANN401
    kind = np.dtype(array.dtype).kind
    if kind == "c":
        raise InputError(
            f"{name} holds complex numbers; give real ones, such as real and imaginary parts one "
            "after the other"
        )
    if kind == "O":
        raise InputError(
            f"{name} holds Python objects, and reading them would run code: save an array of "
            "numbers, trajectories of different lengths in files of their own"
        )
    if kind not in "biuf":
        raise InputError(f"{name} holds {array.dtype}; it must hold numbers")
    if not prod(array.shape):
        raise InputError(f"{name} has shape {tuple(array.shape)}; it holds nothing")


def _is_single(array: Any, name: str, reading: Reading) -> bool:  # noqa: ANN401
    """Whether an array is one trajectory, by the number of its axes."""
    axes, shape = len(array.shape), tuple(array.shape)
    boxed = reading.types is not None or reading.box is not None
    kind = reading.kind or ("particles" if boxed else None)
    if kind is not None:
        grid = kind != "vector"
        if axes - grid not in (2, 3):
            raise InputError(
                f"{name} has shape {shape}; microstates of kind `{kind}` need "
                f"{3 + grid} axes (trajectory, frame, {'..., ...' if grid else 'component'}), or "
                f"{2 + grid} for a single trajectory"
            )
        return axes - grid == 2
    if axes == 3 and np.dtype(array.dtype).kind != "f":
        raise InputError(
            f"{name} has shape {shape}: trajectories of vectors, or one trajectory of a lattice "
            "or of pictures? Give `--kind vector`, `lattice` or `image`"
        )
    if axes not in (2, 3, 4):
        raise InputError(
            f"{name} has shape {shape}; give (trajectories, frames, ...) with one axis for "
            "vectors or two for lattices, pictures and particles"
        )
    return axes == 2
