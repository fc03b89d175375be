"""A few test microstates with their simulated and predicted futures: what the figures need.

Kept are ensemble means and standard deviations over members, not the ensembles. On disk a `Cases`
is one npz file of plain arrays (no pickle), format 1:

    format, times (F,), time_unit, symbols (m,), units (m,), twins (2,), index (C,), label (C,),
    and for case c
    c/microstate, c/reference/mean|std, c/names (P,), c/predictions/p/mean|std,

with `std` absent where a prediction is deterministic or there is a single trajectory. Files from
before there were units lack `units` and `time_unit`; where there is no pair, `twins` is empty.

The *twins* are two microstates that look the same macroscopically at t = 0 and part afterwards:
y_0 alone cannot tell them apart, whatever the model.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from ..data.dataset import Normalization, average_present
from ..errors import InputError
from ..files import read_arrays, replacing
from .metrics import standardized_future

__all__ = ["Case", "Cases", "Curve", "choose_cases", "curve"]

_FORMAT = 1


_COINCIDE = 1e-6
_PAIRED = 2000

_ALONE = 3
"""Microstates to show where all are of one family."""


Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Curve:
    """A macroscopic trajectory (F, m) with its spread over members; None if deterministic."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64] | None


@dataclass(frozen=True)
class Case:
    """One test microstate: which one, its family, its stored form, and its futures."""

    index: int
    label: str
    microstate: NDArray[Any]
    reference: Curve
    predictions: dict[str, Curve]


@dataclass(frozen=True)
class Cases:
    """The chosen cases.

    Attributes:
        times: Times of the frames, (F,).
        symbols: Symbols of the m observables.
        cases: The cases.
        twins: The `index` of two of them; empty where there is no pair.
        units: Units of the observables, an empty text for a pure number; empty if unknown.
        time_unit: Unit of the times; empty if there is none.
    """

    times: NDArray[np.float64]
    symbols: tuple[str, ...]
    cases: tuple[Case, ...]
    twins: tuple[int, ...]
    units: tuple[str, ...] = ()
    time_unit: str = ""

    def __post_init__(self) -> None:
        if len(self.units) not in (0, len(self.symbols)):
            raise InputError(f"`units` is {self.units}; there are {len(self.symbols)} observables")
        if len(self.twins) not in (0, 2):
            raise InputError(f"`twins` is {self.twins}; give two test microstates, or none")
        shape = (len(self.times), len(self.symbols))
        for case in self.cases:
            for name, kept in {"reference": case.reference, **case.predictions}.items():
                if kept.mean.shape != shape or (kept.std is not None and kept.std.shape != shape):
                    raise InputError(
                        f"`cases`: {name} of case {case.index} has shape {kept.mean.shape}; "
                        f"{shape[0]} times and {shape[1]} symbols need {shape}"
                    )
        missing = set(self.twins) - {case.index for case in self.cases}
        if missing:
            raise InputError(f"`twins` names {sorted(missing)}; add these test microstates")

    @property
    def axis_labels(self) -> tuple[str, ...]:
        """Symbols with their units, as axes are labelled: "X / nm"."""
        units = self.units or ("",) * len(self.symbols)
        return tuple(f"{s} / {u}" if u else s for s, u in zip(self.symbols, units, strict=True))

    @property
    def time_label(self) -> str:
        """The label of a time axis."""
        return f"time / {self.time_unit}" if self.time_unit else "time"

    def case(self, index: int) -> Case:
        """The case of test microstate `index`."""
        for case in self.cases:
            if case.index == index:
                return case
        kept = [case.index for case in self.cases]
        raise InputError(f"`index` is {index}; the cases kept are {kept}")

    def save(self, path: str | Path) -> None:
        """Writes one npz file; it appears complete or not at all."""
        arrays: dict[str, Any] = {
            "format": np.array(_FORMAT),
            "times": self.times,
            "time_unit": np.array(self.time_unit, dtype=np.str_),
            "symbols": np.array(self.symbols, dtype=np.str_),
            "units": np.array(self.units, dtype=np.str_),
            "twins": np.array(self.twins, dtype=np.int64),
            "index": np.array([case.index for case in self.cases], dtype=np.int64),
            "label": np.array([case.label for case in self.cases], dtype=np.str_),
        }
        for place, case in enumerate(self.cases):
            arrays.update({f"{place}/{key}": value for key, value in _pack(case).items()})
        # NumPy before 2.2 cannot be told not to pickle, and would write the option as an array.
        if pickled := [name for name, array in arrays.items() if array.dtype.hasobject]:
            raise ValueError(f"{', '.join(pickled)}: arrays of objects cannot be kept")
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Cases":
        """Reads what `save` wrote."""
        arrays = read_arrays(Path(path), "evaluate the run again")
        if not np.array_equal(arrays.get("format", 0), _FORMAT):
            raise InputError(f"{path} is not of format {_FORMAT}; evaluate the run again")
        try:
            labels = zip(arrays["index"].tolist(), arrays["label"].tolist(), strict=True)
            return cls(
                times=arrays["times"].astype(np.float64),
                symbols=tuple(arrays["symbols"].tolist()),
                cases=tuple(_unpack(arrays, n, *known) for n, known in enumerate(labels)),
                twins=tuple(arrays["twins"].tolist()),
                units=tuple(arrays["units"].tolist()) if "units" in arrays else (),
                time_unit=str(arrays["time_unit"]) if "time_unit" in arrays else "",
            )
        except KeyError as error:
            raise InputError(f"{path} lacks {error}; evaluate the run again") from error
        # Arrays of other shapes and types than those that are saved.
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(f"{path} is damaged ({error}); evaluate the run again") from error


def curve(macrostates: NDArray[Any], *, holes: bool = False) -> Curve:
    """Mean and standard deviation of an ensemble (N, F, m).

    A trajectory (F, m), or an ensemble of one, has no spread.

    Arguments:
        macrostates: The ensemble.
        holes: Whether NaN stands for frames that are missing, which are left out.
    """
    y = np.asarray(macrostates, dtype=np.float64)
    if y.ndim == 2:
        return Curve(y, None)
    if len(y) == 1 or not (holes and np.isnan(y).any()):
        return Curve(y.mean(axis=0), y.std(axis=0, ddof=1) if len(y) > 1 else None)
    mean, members = average_present(y, axis=0), (~np.isnan(y)).sum(axis=0)
    with np.errstate(invalid="ignore"):  # of a single member there is no spread
        return Curve(mean, np.sqrt(np.nansum((y - mean) ** 2, axis=0) / (members - 1)))


def choose_cases(
    labels: Sequence[str], references: NDArray[Any], normalization: Normalization
) -> tuple[list[int], tuple[int, ...]]:
    """Chooses what to show: the first test microstate of each label, and the twins.

    Where all have the same label, the first few are shown.

    Arguments:
        labels: Family of each test microstate, G of them.
        references: Simulated ensembles (G, N, F, m) in physical units, frame t = 0 included.
        normalization: The training data's statistics.

    Returns:
        The first microstate of each label, labels in natural order (K=2 before K=16), and the
        twins: of the pairs whose initial macrostates coincide (or else are nearest), the one
        whose mean futures differ most. The twins need not be among the first. A single microstate
        has no twin.
    """
    references = np.asarray(references)
    if references.ndim != 4 or len(references) != len(labels) or not labels:
        raise InputError(
            f"`references` has shape {references.shape} and there are {len(labels)} `labels`; "
            "needed are an ensemble (G, N, F, m) and one label for each microstate"
        )
    # Among the first ones only: all pairs of many thousands would not fit into memory.
    twins = _find_twins(references[:_PAIRED], normalization) if len(labels) > 1 else ()
    if len(set(labels)) == 1:
        return list(range(min(_ALONE, len(labels)))), twins
    first: dict[str, int] = {}
    for index, label in enumerate(labels):
        first.setdefault(label, index)
    order = sorted(first, key=_split_numbers)
    return [first[label] for label in order], twins


def _find_twins(references: NDArray[Any], normalization: Normalization) -> tuple[int, int]:
    mean = average_present(np.asarray(references, dtype=np.float64), axis=1)
    start = np.asarray(normalization.standardize(mean[:, 0]), dtype=np.float64)
    future = standardized_future(mean, normalization).reshape(len(mean), -1)
    future = np.where(np.isnan(future), 0.0, future)  # where a frame is missing, none differs
    apart = pdist(start, "chebyshev")
    # Without a pair that coincides this leaves the nearest pair alone.
    candidates = apart <= max(_COINCIDE, apart.min())
    best = int(np.argmax(np.where(candidates, pdist(future), -1.0)))
    first, second = np.triu_indices(len(mean), k=1)
    return int(first[best]), int(second[best])


def _split_numbers(label: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", label)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _pack(case: Case) -> Arrays:
    arrays = {"microstate": case.microstate, "names": np.array([*case.predictions], dtype=np.str_)}
    curves = {f"predictions/{n}": kept for n, kept in enumerate(case.predictions.values())}
    for key, kept in {"reference": case.reference, **curves}.items():
        arrays[f"{key}/mean"] = kept.mean
        if kept.std is not None:
            arrays[f"{key}/std"] = kept.std
    return arrays


def _unpack(arrays: Mapping[str, NDArray[Any]], place: int, index: int, label: str) -> Case:
    def kept(key: str) -> Curve:
        std = arrays.get(f"{place}/{key}/std")
        return Curve(
            arrays[f"{place}/{key}/mean"].astype(np.float64),
            None if std is None else std.astype(np.float64),
        )

    names = arrays[f"{place}/names"].tolist()
    return Case(
        index=index,
        label=label,
        microstate=arrays[f"{place}/microstate"],
        reference=kept("reference"),
        predictions={name: kept(f"predictions/{n}") for n, name in enumerate(names)},
    )
