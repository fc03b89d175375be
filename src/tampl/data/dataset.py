"""Data sets in memory: trajectories of microstates and macrostates, and what they are of.

    data = Dataset(x, y, interval=0.5, observables=["S", "I", "R"])
    train, valid, test = data.split(0.8, 0.1, 0.1, seed=0)

x has shape (n, F, *shape) and y has shape (n, F, m), for n trajectories of F frames. Statistics
are those of the training set: y = mean + std * (standardised y), feature by feature, with the mean
and the (population) standard deviation over all trajectories and times.

Trajectories may have different lengths, and frames may be missing. `present` (n, F) then says
which frames exist; it is None where all do. A missing frame has zeros in x and NaN in y, and it
enters nothing: neither statistics nor training nor scores. The first frame of a trajectory exists.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..description import Description, Observable
from ..errors import InputError
from ..microstates import AnyMicrostate, Image, Lattice, Microstate, Particles, Vector
from ..progress import say
from ..seeding import numpy_generator

__all__ = [
    "LATTICE_STATES",
    "OWN_DATA",
    "Dataset",
    "Normalization",
    "Reader",
    "References",
    "Statistics",
    "average_present",
]

LATTICE_STATES = 16
"""Integers on a grid with more distinct values than this are not taken for states of sites."""

_NUMBERS_AT_ONCE = 2**22
"""Numbers that are in memory while statistics are taken of an array on disk."""

OWN_DATA = "own data"
"""The name of the system that arrays without a simulator are of."""


@dataclass(frozen=True, eq=False)
class Normalization:
    """Mean and standard deviation of each feature, both of shape (m,)."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.mean.ndim != 1 or self.mean.shape != self.std.shape:
            raise InputError(
                f"`mean` and `std` have shapes {self.mean.shape} and {self.std.shape}; "
                "both must be (m,), one number per feature"
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.std).all()):
            raise InputError(f"`mean` {self.mean} and `std` {self.std} must be finite")
        if not (self.std > 0).all():
            raise InputError(f"`std` is {self.std}; every feature needs a nonzero std")

    @classmethod
    def fit(
        cls, macrostates: NDArray[Any], *, names: Sequence[str] | None = None
    ) -> "Normalization":
        """Takes the statistics of the macrostates of a training set.

        Arguments:
            macrostates: Macrostates (..., m).
            names: What an error calls the features; their numbers by default.

        Example:
            >>> Normalization.fit(np.array([[0.0, 1.0], [2.0, 5.0]])).std
            array([1., 2.])
        """
        y = np.asarray(macrostates, dtype=np.float64)
        y = y.reshape(-1, y.shape[-1])
        if not len(y):
            raise InputError("`macrostates` is empty: give the macrostates of the training set")
        _refuse_unusable(y, names or [str(feature) for feature in range(y.shape[1])])
        return cls(y.mean(axis=0), y.std(axis=0))

    @classmethod
    def fit_inputs(cls, x: NDArray[Any]) -> "Normalization":
        """Takes the statistics of vectors (..., size); a constant component has a std of 1.

        Example:
            >>> Normalization.fit_inputs(np.array([[0.0, 7.0], [2.0, 7.0]])).std
            array([1., 1.])
        """
        vectors = x.reshape(-1, x.shape[-1])
        # Compared by range, because rounding gives a constant a std that is not exactly zero.
        constant = vectors.min(axis=0) == vectors.max(axis=0)
        return cls(vectors.mean(axis=0), np.where(constant, 1.0, vectors.std(axis=0)))

    @classmethod
    def fit_read_inputs(cls, x: "Reader", known: NDArray[np.bool_] | None) -> "Normalization":
        """The statistics of `fit_inputs` for vectors that are read a part at a time.

        The sums are the same, in the same order; those of a single component may be rounded
        differently.

        Arguments:
            x: The vectors, (n, F, size).
            known: Which of them exist, (n, F); None where all do.
        """
        n, frames = x.shape[:2]
        index = np.arange(n * frames) if known is None else np.flatnonzero(known)
        parts = np.array_split(index, -(-len(index) * x.shape[-1] // _NUMBERS_AT_ONCE))
        low, high = np.full(x.shape[-1], np.inf), np.full(x.shape[-1], -np.inf)
        total, squares = np.zeros(x.shape[-1]), np.zeros(x.shape[-1])
        for part in parts:
            vectors = x.read(part)
            low, high = np.minimum(low, vectors.min(axis=0)), np.maximum(high, vectors.max(axis=0))
            # NumPy adds rows one after another, and so it goes on where the last part ended.
            total = np.concatenate([total[None], vectors]).sum(axis=0)
        mean = total / len(index)
        for part in parts:
            squares = np.concatenate([squares[None], (x.read(part) - mean) ** 2]).sum(axis=0)
        return cls(mean, np.where(low == high, 1.0, np.sqrt(squares / len(index))))

    def standardize(self, y: ArrayLike) -> NDArray[np.float64]:
        """Features (..., m) to mean 0 and variance 1."""
        return (np.asarray(y) - self.mean) / self.std


def _refuse_unusable(y: NDArray[np.float64], names: Sequence[str]) -> None:
    for name, feature in zip(names, y.T, strict=True):
        if not np.isfinite(feature).all():
            raise InputError(
                f"feature `{name}` of the macrostates holds NaN or infinity: leave out the "
                "trajectories that have them"
            )
        if feature.min() == feature.max():
            raise InputError(
                f"feature `{name}` of the macrostates is {feature[0]:g} everywhere, and "
                "standardizing needs a nonzero std: leave it out, or use data in which it varies"
            )


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a model keeps of the data set it was trained on.

    Attributes:
        y: Mean and standard deviation of the macrostates.
        x: The same of the microstates, where their kind is standardised; None elsewhere.
        mean_trajectory: The mean over trajectories, (F, m): the forecast that ignores the
            microstate. None where it is not known.
    """

    y: Normalization
    x: Normalization | None = None
    mean_trajectory: NDArray[np.float64] | None = None

    def thin(self, every: int) -> "Statistics":
        """The same with every `every`-th time of the mean trajectory."""
        if self.mean_trajectory is None or every == 1:
            return self
        return replace(self, mean_trajectory=self.mean_trajectory[::every])


@dataclass(frozen=True, eq=False)
class References:
    """Initial microstates and the macrostates of N trajectories from each of them.

    Attributes:
        x: Initial microstates in stored form, (G, *shape).
        y: Macrostates, (G, N, F, m); NaN in frames that are missing.
        labels: The family of each initial microstate, (G,).
        description: What the data are of.
    """

    x: NDArray[Any]
    y: NDArray[np.float64]
    labels: NDArray[np.str_]
    description: Description

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        states, members, frames = self.y.shape[:3]
        return f"References({states} initial states x {members} trajectories of {frames} frames)"

    def thin(self, every: int) -> "References":
        """The same with every `every`-th frame."""
        if every == 1:
            return self
        return replace(self, y=self.y[:, :, ::every], description=self.description.thin(every))


class Reader(Protocol):
    """What stands for an array of microstates (n, F, *shape) that is not in memory.

    A selection of trajectories, or of every k-th frame, is of the same kind; of whatever else is
    selected it gives an array.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, F, *shape)."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored form."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any) -> Any: ...  # noqa: ANN401

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[Any]: ...

    def read(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """The frames at some places, counted through all trajectories."""
        ...


class Dataset:
    """Trajectories of microstates with their macrostates.

    Arguments:
        x: Microstates, (n, F, *shape), or a list with an array (F_i, *shape) for each trajectory.
        y: Macrostates, (n, F, m), or (n, F) for a single observable, or a list likewise.
        interval: Time between two frames.
        observables: Names of the m observables, or `Observable` records with symbols and units.
        microstate: The kind of microstate, such as `tampl.Particles(...)`. By default it is
            recognised: integers (or booleans) on a grid with at most 16 distinct values are a
            lattice, other bytes on a grid are pictures, numbers along one axis are vectors.
        labels: The family that each trajectory belongs to, (n,); only tables and figures use it.
        present: Which frames exist, (n, F) or a list likewise; all by default. What `x` and `y`
            hold in the others does not matter. The first frame of a trajectory must exist.

    Attributes:
        x: The microstates in stored form, in memory or on disk (`Store.dataset`).
        y: The macrostates, float64.
        labels: The families, empty strings by default.
        description: Kind of microstate, observables and times.
        present: Which frames exist, (n, F); None where all do.

    Example:
        >>> walk = np.random.default_rng(0).normal(size=(10, 6, 3)).cumsum(axis=1)
        >>> data = Dataset(walk, walk[..., 0], interval=0.5, microstate=Vector(size=3))
        >>> len(data), data.y.shape
        (10, (10, 6, 1))
    """

    x: NDArray[Any] | Reader
    y: NDArray[np.float64]
    labels: NDArray[np.str_]
    description: Description
    present: NDArray[np.bool_] | None

    def __init__(
        self,
        x: ArrayLike | Sequence[ArrayLike],
        y: ArrayLike | Sequence[ArrayLike],
        *,
        interval: float = 1.0,
        observables: Sequence[str | Observable] | None = None,
        microstate: AnyMicrostate | None = None,
        labels: Sequence[str] | None = None,
        present: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> None:
        rows = microstate.shape[0] if isinstance(microstate, Particles) else None
        states, macrostates, present = _stack_all(x, y, present, rows=rows)
        macrostates = _check_macrostates(macrostates, present)
        if states.ndim < 3 or states.shape[:2] != macrostates.shape[:2]:
            raise InputError(
                f"`x` has shape {states.shape} and `y` has shape {macrostates.shape}; needed are "
                "(trajectories, frames, ...) and (trajectories, frames, observables) that agree "
                "in their first two axes"
            )
        if microstate is None:
            microstate = _recognise(states if present is None else states[None, present])
            say(f"microstates are taken for {microstate.in_words}; give `microstate` for others")
        if not isinstance(microstate, Microstate):
            raise InputError(
                f"`microstate` is {microstate!r}; give a kind with its size, such as "
                f"tampl.Vector(size={states.shape[-1]}), or leave it out"
            )
        if not isinstance(interval, int | float | np.number) or not 0 < interval < np.inf:
            raise InputError(f"`interval` is {interval}; it must be a positive number")
        self.x = _check_microstates(microstate, states, present)
        if self.x.shape[2:] != microstate.shape:
            raise InputError(
                f"`x` has shape {states.shape}; frames of {microstate.in_words} have shape "
                f"{microstate.shape}, after the axes of trajectories and frames"
            )
        self.y = macrostates
        self.present = present
        self.labels = _check_labels(labels, len(states))
        self.description = Description(
            system=OWN_DATA,
            parameters={},
            microstate=microstate,
            observables=_name_observables(observables, macrostates.shape[2]),
            interval=float(interval),
            frames=macrostates.shape[1],
        )

    @classmethod
    def described(
        cls,
        description: Description,
        x: NDArray[Any] | Reader,
        y: NDArray[np.float64],
        labels: NDArray[np.str_],
        present: NDArray[np.bool_] | None = None,
    ) -> "Dataset":
        """A data set of arrays that are in stored form and were checked before."""
        made = cls.__new__(cls)
        made.x, made.y, made.labels, made.description = x, y, labels, description
        made.present = None if present is None or present.all() else present
        return made

    def __len__(self) -> int:
        """The number of trajectories."""
        return len(self.y)

    def __repr__(self) -> str:
        symbols = ", ".join(o.symbol for o in self.description.observables)
        return (
            f"Dataset(trajectories: {len(self)} of {'up to ' * (self.present is not None)}"
            f"{self.y.shape[1]} frames, microstates: "
            f"{self.description.microstate.in_words}; observables: {symbols})"
        )

    def select(self, index: NDArray[Any] | slice) -> "Dataset":
        """The trajectories at some places, in that order."""
        present = None if self.present is None else self.present[index]
        arrays = (self.x[index], self.y[index], self.labels[index], present)
        return Dataset.described(self.description, *arrays)

    def thin(self, every: int) -> "Dataset":
        """Keeps every `every`-th frame of each trajectory, the first one included.

        Example:
            >>> data = Dataset(np.eye(9)[None], np.arange(9.0)[None], interval=0.5)
            >>> data.thin(4).y[0, :, 0], data.thin(4).description.interval
            (array([0., 4., 8.]), 2.0)
        """
        frames = self.y.shape[1]
        if not isinstance(every, int | np.integer) or not 1 <= every < frames:
            raise InputError(
                f"`every` is {every!r}; it must be an integer from 1 to {frames - 1}, such that "
                f"two of {frames} frames remain at least"
            )
        if every == 1:
            return self
        present = None if self.present is None else self.present[:, ::every]
        arrays = (self.x[:, ::every], self.y[:, ::every], self.labels, present)
        return Dataset.described(self.description.thin(int(every)), *arrays)

    def split(self, *fractions: float, seed: int = 0) -> tuple["Dataset", ...]:
        """Cuts the data set at random into parts, such as training, validation and test sets.

        Trajectories that share their initial microstate stay together, so that no initial
        microstate is in two parts.

        Arguments:
            fractions: The size of each part as a fraction of the initial microstates; their sum
                is at most one.
            seed: Governs the random order.

        Example:
            >>> data = Dataset(np.eye(10)[:, None].repeat(2, axis=1), np.arange(20).reshape(10, 2))
            >>> [len(part) for part in data.split(0.8, 0.2, seed=1)]
            [8, 2]
        """
        plain = all(isinstance(fraction, int | float) for fraction in fractions)
        if not fractions or not plain or min(fractions) <= 0 or sum(fractions) > 1 + 1e-9:
            raise InputError(
                f"`fractions` is {fractions}; give positive numbers whose sum is at most 1, as in "
                "split(0.8, 0.1, 0.1)"
            )
        groups = self._groups()
        order = numpy_generator(seed, "split").permutation(len(groups))
        cuts = np.rint(len(groups) * np.cumsum([0.0, *fractions])).astype(int)
        parts = [order[first:last] for first, last in pairwise(cuts)]
        for fraction, part in zip(fractions, parts, strict=True):
            if not len(part):
                raise InputError(
                    f"a fraction of {fraction:g} of {len(groups)} initial microstates is less "
                    "than one; give a larger fraction or more trajectories"
                )
        return tuple(
            self.select(np.concatenate([groups[place] for place in sorted(part)]))
            for part in parts
        )

    @property
    def references(self) -> References:
        """Initial microstates with the macrostates of all trajectories from each.

        Where every initial microstate has two trajectories or more, there are as many for each as
        the one with the fewest has. Otherwise each trajectory stands for itself.
        """
        groups = self._groups()
        members = min(len(group) for group in groups)
        left_out = len(self) - members * len(groups)
        if members > 1 and left_out:
            say(f"{left_out} trajectories are left out, so that every initial state has {members}")
        if members == 1:
            groups = [np.array([place]) for place in range(len(self))]
        first = np.array([group[0] for group in groups])
        y = np.stack([self.y[group[:members]] for group in groups])
        return References(self.x[first, 0], y, self.labels[first], self.description)

    @property
    def statistics(self) -> Statistics:
        """What a model keeps of its training set; refuses an observable that never varies."""
        names = [observable.name for observable in self.description.observables]
        standardised = self.description.microstate.standardised
        known = ... if self.present is None else self.present
        inputs = None
        if standardised:
            inputs = (
                Normalization.fit_inputs(self.x[known])
                if isinstance(self.x, np.ndarray)
                else Normalization.fit_read_inputs(self.x, self.present)
            )
        return Statistics(
            y=Normalization.fit(self.y[known], names=names),
            x=inputs,
            mean_trajectory=_fill_gaps(average_present(self.y, axis=0)),
        )

    def find_conserved(self) -> Description:
        """The description, with those observables marked that never vary along a trajectory."""
        constant = (np.nanmax(self.y, axis=1) == np.nanmin(self.y, axis=1)).all(axis=0)
        observables = tuple(
            o.model_copy(update={"conserved": True}) if same else o
            for o, same in zip(self.description.observables, constant, strict=True)
        )
        return self.description.model_copy(update={"observables": observables})

    def count_pairs(self, lag: int = 1) -> int:
        """How many pairs of frames there are that are `lag` frames apart."""
        if self.present is None:
            return len(self) * max(0, self.y.shape[1] - lag)
        return int((self.present[:, :-lag] & self.present[:, lag:]).sum())

    def count_initial_states(self) -> int:
        """How many initial microstates the trajectories start from."""
        return len(self._groups())

    def _groups(self) -> list[NDArray[np.int64]]:
        """Indices of the trajectories that share an initial microstate, a group for each."""
        places: dict[bytes, list[int]] = {}
        for place, initial in enumerate(self.x[:, 0]):
            digest = hashlib.sha256(np.ascontiguousarray(initial).tobytes()).digest()
            places.setdefault(digest, []).append(place)
        return [np.array(group) for group in places.values()]


def average_present(y: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The mean over an axis of macrostates (..., m), leaving out those that are missing (NaN).

    Where all are missing, the mean is NaN.

    Example:
        >>> average_present(np.array([[1.0, np.nan], [3.0, np.nan]]), axis=0)
        array([ 2., nan])
    """
    known = ~np.isnan(y)
    if known.all():
        return y.mean(axis=axis)
    with np.errstate(invalid="ignore"):
        return np.nansum(y, axis=axis) / known.sum(axis=axis)


def _fill_gaps(trajectory: NDArray[np.float64]) -> NDArray[np.float64]:
    """A trajectory (F, m) up to its last known frame, with times between linearly interpolated."""
    known = np.flatnonzero(~np.isnan(trajectory[:, 0]))
    if len(known) == len(trajectory):
        return trajectory
    times = np.arange(known[-1] + 1)
    return np.stack([np.interp(times, known, y[known]) for y in trajectory.T], axis=-1)


def _stack_all(
    x: ArrayLike | Sequence[ArrayLike],
    y: ArrayLike | Sequence[ArrayLike],
    present: ArrayLike | Sequence[ArrayLike] | None,
    *,
    rows: int | None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_] | None]:
    """Microstates, macrostates and which frames exist, as arrays of whole trajectories."""
    states, lengths = _stack("`x`", x, rows)
    macrostates, others = _stack("`y`", y)
    if lengths != others and max(len(set(lengths)), len(set(others))) > 1:
        place = next(i for i, (a, b) in enumerate(zip_longest(lengths, others)) if a != b)
        raise InputError(
            f"`x` has {_name_length(lengths, place)} and `y` has {_name_length(others, place)}; "
            "give as many frames of both for every trajectory"
        )
    ends = np.arange(max(lengths, default=0)) < np.array(lengths)[:, None]
    if present is None:
        return states, macrostates, None if ends.all() else ends
    known, _ = _stack("`present`", present)
    if known.dtype != np.bool_ or known.shape != ends.shape:
        raise InputError(
            f"`present` is {known.dtype} of shape {known.shape}; it must be bool of shape "
            f"{ends.shape}, whether each frame exists"
        )
    known = known & ends
    if not known[:, 0].all():
        raise InputError(
            f"`present` says that frame 0 of trajectory {np.argmin(known[:, 0])} is missing; "
            "forecasts start from the first frame: leave out what is before the first one that "
            "exists"
        )
    return states, macrostates, None if known.all() else known


def _stack(
    name: str, trajectories: ArrayLike | Sequence[ArrayLike], rows: int | None = None
) -> tuple[NDArray[Any], list[int]]:
    """One array of all trajectories, with zeros behind the shorter ones, and their lengths.

    Arguments:
        name: What a message calls them.
        trajectories: An array, or one array for each trajectory.
        rows: How many particles a frame has; frames with fewer are filled up.
    """
    parts: Any = trajectories
    if isinstance(trajectories, list | tuple):
        parts = [np.asarray(part) for part in trajectories]
        shapes = {part.shape for part in parts}
        inner = {shape[1:] for shape in shapes}
        if len(inner) > 1 and (rows is None or not _differ_in_rows(inner, rows)):
            raise InputError(
                f"{name} has trajectories of shapes {', '.join(map(str, sorted(shapes)))}; they "
                "may differ in the number of frames alone"
            )
        if len(shapes) > 1:
            frames, *sizes = (max(lengths) for lengths in zip(*shapes, strict=True))
            sizes = sizes if rows is None or len(inner) == 1 else [rows, *sizes[1:]]
            whole = np.zeros((len(parts), frames, *sizes), np.result_type(*parts))
            for place, part in zip(whole, parts, strict=True):
                place[tuple(slice(size) for size in part.shape)] = part
            return whole, [len(part) for part in parts]
    array = np.asarray(parts)
    return array, [array.shape[1]] * len(array) if array.ndim > 1 else []


def _differ_in_rows(shapes: set[tuple[int, ...]], rows: int) -> bool:
    """Whether frames are sets of particles that differ in nothing but their number."""
    sets = all(len(shape) == 2 and shape[0] <= rows for shape in shapes)
    return sets and len({shape[1:] for shape in shapes}) == 1


def _name_length(lengths: Sequence[int], place: int) -> str:
    if place < len(lengths):
        return f"{lengths[place]} frames in trajectory {place}"
    return f"{len(lengths)} trajectories"


def _check_microstates(
    kind: Microstate, states: NDArray[Any], present: NDArray[np.bool_] | None
) -> NDArray[Any]:
    """Microstates in stored form, with zeros where a frame is missing."""
    if present is None:
        return kind.check(states, "`x`")
    known = kind.check(states[present], "`x`")
    whole = np.zeros((*present.shape, *known.shape[1:]), known.dtype)
    whole[present] = known
    return whole


def _check_macrostates(y: NDArray[Any], present: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    if y.dtype.kind not in "biuf":
        raise InputError(f"`y` holds {y.dtype}; it must hold real numbers")
    y = y[..., None] if y.ndim == 2 else y
    if y.ndim != 3 or 0 in y.shape or y.shape[1] < 2:
        raise InputError(
            f"`y` has shape {y.shape}; it must be (trajectories, frames, observables) with one "
            "trajectory and two frames at least"
        )
    y = y.astype(np.float64)
    wrong = ~np.isfinite(y)
    if present is not None:
        wrong &= present[..., None]
        y[~present] = np.nan
    if wrong.any():
        run, frame, feature = np.argwhere(wrong)[0]
        raise InputError(
            f"`y` holds {y[run, frame, feature]} in trajectory {run}, frame {frame}, observable "
            f"{feature}; leave such trajectories out, or say by `present` which frames exist"
        )
    return y


def _check_labels(labels: Sequence[str] | None, count: int) -> NDArray[np.str_]:
    if labels is None:
        return np.full(count, "", dtype=np.str_)
    if len(labels) != count:
        raise InputError(f"`labels` has {len(labels)} entries for {count} trajectories")
    return np.array([str(label) for label in labels], dtype=np.str_)


def _name_observables(
    observables: Sequence[str | Observable] | None, count: int
) -> tuple[Observable, ...]:
    given = [f"y{j + 1}" for j in range(count)] if observables is None else list(observables)
    if len(given) != count:
        raise InputError(f"`observables` has {len(given)} entries; `y` has {count} observables")
    named = [Observable(name=o, symbol=o) if isinstance(o, str) else o for o in given]
    symbols = [observable.symbol for observable in named]
    if len(set(symbols)) < count:
        raise InputError(f"`observables` is {symbols}; give each a symbol that no other has")
    return tuple(named)


def _recognise(x: NDArray[Any]) -> AnyMicrostate:
    """The kind of microstate that an array (n, F, *shape) holds."""
    shape, kind = x.shape[2:], x.dtype.kind
    if len(shape) == 1 and kind in "biuf":
        return Vector(size=shape[0])
    if len(shape) == 2 and kind in "biu":
        height, width = shape
        values = np.unique(x)
        if values[0] >= 0 and values[-1] < LATTICE_STATES:
            return Lattice(height=height, width=width, states=max(2, int(values[-1]) + 1))
        if x.dtype == np.uint8:
            return Image(height=height, width=width)
        if len(values) <= LATTICE_STATES:
            raise InputError(
                f"`x` holds the states {values.tolist()}; number the states of a lattice from 0: "
                "np.unique(x, return_inverse=True)[1].reshape(x.shape)"
            )
    if len(shape) == 2 and kind == "f":
        raise InputError(
            f"`x` holds {x.dtype} of shape {shape} in every frame: for pictures give bytes, "
            "(255 * x).round().astype(np.uint8) of intensities from 0 to 1; for lattices "
            "integers; for vectors x.reshape(*x.shape[:2], -1)"
        )
    raise InputError(
        f"`x` holds {x.dtype} of shape {shape} in every frame, which no kind of microstate is "
        "recognised from: flatten it into vectors by x.reshape(*x.shape[:2], -1), or give "
        "`microstate`"
    )
