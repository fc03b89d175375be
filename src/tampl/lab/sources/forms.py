"""From what files hold to microstates in stored form.

A first pass over all tracks, `Survey`, collects what a kind of microstate has to know of the whole
data: the shape of a frame, the largest number on a site, the types of particles, their greatest
number, the boxes. It refuses what no microstate is made of, with the place where it stands. Then
`choose_form` settles the kind, and its form turns pieces into stored microstates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.dataset import LATTICE_STATES
from ...errors import InputError
from ...microstates import Image, Lattice, Microstate, Particles, Vector
from .molecules import align
from .order import natural_key
from .tracks import Piece, Reading, Track

__all__ = ["Form", "Survey", "Timing", "choose_form"]

_UNEVEN = 0.05
"""By how much of the interval frames may be off their places; times in 32 bits are rounded."""

_SAME_EDGE = 1e-6
"""Relative differences of edges that are rounding and not a change."""


@dataclass(frozen=True)
class Timing:
    """When the frames of a track are: at whole multiples of the interval.

    Attributes:
        places: The multiples, from 0, one for each frame.
        interval: Time between neighbouring places; None where nobody knows it.
        present: Which of the frames are there; the others hold NaN only.
    """

    places: NDArray[np.int64]
    interval: float | None
    present: NDArray[np.bool_]


class Survey:
    """What the data as a whole are like, collected track by track.

    Arguments:
        reading: How the files are read.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.first: Track | None = None
        self.reference: Piece | None = None
        self.shapes: dict[tuple[int, ...], str] = {}
        self.dtypes: dict[str, str] = {}
        self.lowest, self.highest = np.inf, -np.inf
        self.labels: set[Any] = set()
        self.boxed: dict[bool, str] = {}
        self.edges: list[NDArray[np.float64]] = []

    def add(self, track: Track) -> Timing:
        """Goes over the frames of a track; returns when they are."""
        times: list[NDArray[np.float64]] = []
        present: list[NDArray[np.bool_]] = []
        for frames, piece in track.pieces(range(track.frames)):
            if self.first is None:
                self.first, self.reference = track, piece
            present.append(self._add_numbers(track, frames, piece))
            self._add_particles(track, frames, piece)
            if piece.times is not None:
                times.append(piece.times)
        places, interval = _read_timing(np.concatenate(times) if times else None, track)
        return Timing(places, interval, np.concatenate(present))

    @property
    def dtype(self) -> str:
        """The kind of the numbers: `f` where any track has floats."""
        return "f" if "f" in self.dtypes else next(iter(self.dtypes))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a frame, the same in all tracks."""
        (shape, name), *others = self.shapes.items()
        if others:
            raise InputError(
                f"{others[0][1]} has frames of shape {others[0][0]}, and {name} of shape {shape}: "
                "give trajectories of one system, with frames of one shape"
            )
        return shape

    @property
    def particles(self) -> bool:
        """Whether the frames are sets of particles."""
        if self.reading.kind is not None:
            return self.reading.kind == "particles"
        return bool(self.labels) or self.reading.box is not None  # molecules have neither

    def _add_numbers(self, track: Track, frames: range, piece: Piece) -> NDArray[np.bool_]:
        """Takes note of the numbers of a piece; returns which frames are there, (F,)."""
        x = piece.x
        self.shapes.setdefault(x.shape[1:], track.name)
        self.dtypes.setdefault(x.dtype.kind, track.name)
        finite = np.isfinite(x)
        if piece.types is not None and piece.types.shape[-1:] != x.shape[1:2]:
            raise InputError(
                f"{track.name}: `types` has shape {piece.types.shape} for {x.shape[1]} particles"
            )
        if piece.types is not None and piece.types.dtype.kind in "iu":
            # What stands where there is no particle does not matter.
            finite |= (np.broadcast_to(piece.types, x.shape[:2]) == 0)[..., None]
        inner = tuple(range(1, x.ndim))
        present = finite.all(axis=inner) | ~np.isnan(x).all(axis=inner)
        if not finite[present].all():
            finite[~present] = True
            frame, *place = (int(k) for k in np.argwhere(~finite)[0])
            raise InputError(
                f"{track.name} holds {x[(frame, *place)]} in frame {frames[frame]} at "
                f"{tuple(place)}: leave the trajectory out, or mend it"
            )
        if present.any():
            self.lowest = min(self.lowest, np.nanmin(x[present]))
            self.highest = max(self.highest, np.nanmax(x[present]))
        return present

    def _add_particles(self, track: Track, frames: range, piece: Piece) -> None:
        if piece.types is not None:
            self.labels.update(np.unique(piece.types).tolist())
        if piece.box is None:
            return
        if not (piece.box > 0).all():
            frame = int((piece.box > 0).all(axis=1).argmin())
            raise InputError(
                f"{track.name} has a box of {piece.box[frame].tolist()} in frame "
                f"{frames[frame]}; edges must be positive"
            )
        self.edges.append(np.stack([piece.box.min(axis=0), piece.box.max(axis=0)]))


def _read_timing(
    times: NDArray[np.float64] | None, track: Track
) -> tuple[NDArray[np.int64], float | None]:
    """Places and interval of a `Timing`."""
    if times is None:
        return np.arange(track.frames), None
    if not np.isfinite(times).all():
        raise InputError(f"{track.name} has {times[~np.isfinite(times)][0]} among its times")
    steps = np.diff(times)
    if len(steps) and not (steps > 0).all():
        frame = int((steps > 0).argmin())
        raise InputError(
            f"{track.name} has frame {frame + 1} at time {times[frame + 1]:g}, and the frame "
            f"before it at {times[frame]:g}: sort the frames by time, each time once"
        )
    if not len(steps):
        return np.arange(len(times)), None
    step = float(np.median(steps))
    multiples = steps / step
    whole = np.round(multiples)
    off = np.abs(multiples - whole) > _UNEVEN * np.maximum(whole, 1)
    if off.any() or not (whole >= 1).all():
        frame = int((off | (whole < 1)).argmax())
        raise InputError(
            f"{track.name} has frames {steps[frame]:g} apart at time {times[frame]:g}, where most "
            f"are {step:g} apart: frames must be evenly spaced; some may be missing"
        )
    places = np.concatenate([[0], whole.cumsum()]).astype(np.int64)
    interval = None if track.counts_steps else float((times[-1] - times[0]) / places[-1])
    return places, interval


class Form(ABC):
    """How pieces become microstates in stored form.

    Attributes:
        kind: What the microstates are.
        notes: What was chosen for the whole of the data, for the record of the import.
    """

    kind: Microstate
    notes: Mapping[str, Any]

    @abstractmethod
    def store(self, piece: Piece, name: str) -> NDArray[Any]:
        """The microstates of a piece, (F, *shape).

        Arguments:
            piece: The piece.
            name: What a message calls it.
        """


class ArrayForm(Form):
    """Vectors, lattices and pictures: the arrays as they are, checked."""

    def __init__(self, kind: Microstate) -> None:
        self.kind, self.notes = kind, {}

    def store(self, piece: Piece, name: str) -> NDArray[Any]:
        return self.kind.check(piece.x, name)


class MoleculeForm(Form):
    """Molecules as vectors of coordinates, centred and rotated onto the first frame of all.

    Arguments:
        reference: The first frame, (N, 3).
    """

    def __init__(self, reference: NDArray[np.float64]) -> None:
        self.kind, self.notes = Vector(size=reference.size), {}
        self.reference = reference - reference.mean(axis=0)

    def store(self, piece: Piece, name: str) -> NDArray[Any]:
        return align(piece.x, self.reference).reshape(len(piece.x), -1)


class ParticleForm(Form):
    """Sets of particles: positions in a box, types from 1, rows of zeros where there are fewer.

    Arguments:
        kind: The kind.
        numbers: The number of each type by its name.
    """

    kind: Particles

    def __init__(self, kind: Particles, numbers: Mapping[Any, int]) -> None:
        self.kind, self.numbers = kind, dict(numbers)
        self.notes = {"types": {str(label): number for label, number in numbers.items()}}

    def store(self, piece: Piece, name: str) -> NDArray[Any]:
        frames, count, dim = piece.x.shape
        positions = np.zeros((frames, self.kind.count, dim))
        types = np.zeros((frames, self.kind.count), np.int64)
        positions[:, :count] = piece.x
        types[:, :count] = 1 if piece.types is None else self._number(piece.types)
        try:
            return self.kind.encode(positions, types, piece.box if self.kind.changes else None)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error

    def _number(self, types: NDArray[Any]) -> NDArray[np.int64]:
        if types.dtype.kind in "iu":
            return types.astype(np.int64)
        found, places = np.unique(types, return_inverse=True)
        return np.array([self.numbers[label] for label in found.tolist()])[places]


def _choose_particles(survey: Survey) -> Form:
    dims = {shape[-1]: name for shape, name in survey.shapes.items() if len(shape) == 2}
    (dim, name), *others = dims.items() or [(0, "")]
    if others or dim not in (2, 3):
        where = others[0] if others else (survey.shape, "")
        raise InputError(
            f"particles have positions of 2 or 3 coordinates, the same everywhere; {name} has "
            f"{dim}" + (f", and {where[1]} {where[0]}" if others else "")
        )
    if not survey.edges:
        raise InputError(
            "`--box` is missing, and the files do not say how large the box of the particles is: "
            "give its edges, such as `--box 32,32`"
        )
    numbers, edges = _number_types(survey), np.concatenate(survey.edges)
    if edges.shape[1] != dim:
        raise InputError(
            f"`--box` has {edges.shape[1]} edges, and positions have {dim} coordinates"
        )
    smallest, largest = edges.min(axis=0), edges.max(axis=0)
    changes = bool((largest - smallest > _SAME_EDGE * largest).any())
    kind = Particles(
        count=max(shape[0] for shape in survey.shapes),
        dim=dim,
        types=max(numbers.values()),
        box=_write_edges(smallest),
        periodic=_find_periodic(survey.reading.closed, dim),
        box_max=_write_edges(largest) if changes else None,
    )
    return ParticleForm(kind, numbers)


def _write_edges(edges: NDArray[np.float64]) -> float | tuple[float, ...]:
    """One number where all edges are the same."""
    values = [float(f"{edge:.7g}") for edge in edges]  # files hold them in 32 bits
    return values[0] if len(set(values)) == 1 else tuple(values)


def _find_periodic(closed: str, dim: int) -> bool | tuple[bool, ...]:
    if wrong := [axis for axis in closed if axis not in "xyz"[:dim]]:
        raise InputError(
            f"`--closed` is {closed!r}, and {wrong[0]!r} is no axis; axes are {'xyz'[:dim]}"
        )
    periodic = tuple(axis not in closed for axis in "xyz"[:dim])
    return periodic[0] if len(set(periodic)) == 1 else periodic


def _number_types(survey: Survey) -> dict[Any, int]:
    """A number from 1 for each type; whole numbers stay, 0 where there is no particle."""
    labels = survey.labels or {1}
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError(
            "some files name the types of particles and others number them: give one sort"
        )
    if any(isinstance(label, str) for label in labels):
        ordered = sorted(labels, key=lambda label: natural_key(str(label)))
        return {label: number for number, label in enumerate(ordered, start=1)}
    wrong = [label for label in labels if label != int(label) or not 0 <= label <= 256]
    if wrong:
        raise InputError(
            f"`--types` holds {wrong[0]}; types are whole numbers from 1, and 0 where there is no "
            "particle"
        )
    return {int(label): int(label) for label in sorted(labels) if label}


def choose_form(survey: Survey) -> Form:
    """The form of the microstates that a survey has seen."""
    reading = survey.reading
    if reading.molecule:
        assert survey.reference is not None
        if len(survey.shape) != 2 or survey.shape[1] != 3:
            raise InputError(
                "`--molecule` needs coordinates (frames, atoms, 3) of a molecular trajectory, and "
                f"frames have shape {survey.shape}"
            )
        return MoleculeForm(survey.reference.x[0].astype(np.float64))
    if survey.particles:
        return _choose_particles(survey)
    kind = reading.kind or _recognise(survey)
    return ArrayForm(_ARRAYS[kind](survey))


def _recognise(survey: Survey) -> str:
    shape, dtype = survey.shape, survey.dtype
    if len(shape) == 1:
        return "vector"
    if len(shape) == 2 and dtype in "biu":
        if survey.lowest >= 0 and survey.highest < LATTICE_STATES:
            return "lattice"
        if survey.lowest >= 0 and survey.highest <= 255:
            return "image"
        raise InputError(
            f"the files hold whole numbers from {survey.lowest} to {survey.highest} on a grid of "
            f"{shape}; number the states of a lattice from 0, or give pictures as bytes"
        )
    raise InputError(
        f"the files hold {'floating-point numbers' if dtype == 'f' else 'numbers'} of shape "
        f"{shape} in every frame: for particles give their `--box`; for pictures give bytes, 255 "
        "times intensities from 0 to 1; for vectors one axis"
    )


def _make_vector(survey: Survey) -> Microstate:
    return Vector(size=_sides(survey, "vector", 1)[0])


def _make_lattice(survey: Survey) -> Microstate:
    height, width = _sides(survey, "lattice", 2)
    if survey.lowest < 0 or survey.highest > 255:
        raise InputError(
            f"the sites of the lattice hold {survey.lowest:g} to {survey.highest:g}; states are "
            "whole numbers from 0 to 255"
        )
    return Lattice(height=height, width=width, states=max(2, int(survey.highest) + 1))


def _make_image(survey: Survey) -> Microstate:
    height, width = _sides(survey, "image", 2)
    return Image(height=height, width=width)


_ARRAYS: Mapping[str, Callable[[Survey], Microstate]] = {
    "vector": _make_vector,
    "lattice": _make_lattice,
    "image": _make_image,
}
"""How a kind is made of a survey."""


def _sides(survey: Survey, kind: str, axes: int) -> tuple[int, ...]:
    if len(survey.shape) != axes:
        raise InputError(
            f"`--kind` is {kind!r}, and frames have shape {survey.shape}; that kind has "
            f"{axes} {'axis' if axes == 1 else 'axes'}"
        )
    return survey.shape
