"""Is a store what it says it is? Format first, then physics.

Every shard is read once, with its checksum. Where the system is known, the stored macrostates must
be free of physical faults and equal to g(x), the prescribed map applied to the stored microstates.
An initial microstate in two splits is a leak from training into the test.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..description import first_difference, without_knowledge
from ..errors import InputError
from ..progress import bar
from ..system import System
from .manifest import Shard
from .shards import Arrays, read_shard
from .store import Store

__all__ = ["CheckReport", "check_store"]

# Kernels may sum in another order than `observe`; an error of substance is far larger.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class CheckReport:
    """What was read and what is wrong with it.

    Arguments:
        path: The store.
        shards: How many shards were read.
        trajectories: How many stored trajectories they held.
        references: How many initial microstates with reference runs they held.
        bytes: The size of the shards on disk.
        problems: What is wrong, one line each; none for a good store.
        notes: What is worth knowing and not wrong.
    """

    path: Path
    shards: int
    trajectories: int
    references: int
    bytes: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def refuse_problems(self) -> None:
        """Raises `InputError` with the first problem, if there is any."""
        if self.problems:
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            raise InputError(f"{self.path}: {self.problems[0]}{more}")


def check_store(
    path: str | Path, system: System | None = None, *, progress: bool = True
) -> CheckReport:
    """Reads a whole store, one shard at a time, and reports what is wrong with it.

    Arguments:
        path: The folder of the store; `InputError` where it has no readable manifest.
        system: The system that made it; None skips the physical checks.
        progress: Whether to show a bar on standard error.
    """
    store = Store.open(path)
    tally = _Tally()
    tally.notes += [f"{name} is not in the manifest" for name in _find_unlisted(store)]
    system = _match_system(system, store, tally)
    with bar("checking", len(store.manifest.shards), visible=progress) as advance:
        for shard in store.manifest.shards:
            _check_shard(store, shard, system, tally)
            advance(shard.file)
    _check_duplicates(tally)
    return CheckReport(
        store.path,
        tally.shards,
        tally.trajectories,
        tally.references,
        tally.size,
        tuple(tally.problems),
        tuple(tally.notes),
    )


@dataclass
class _Tally:
    """What the pass over the shards collects."""

    shards: int = 0
    trajectories: int = 0
    references: int = 0
    size: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: defaultdict[bytes, list[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def _find_unlisted(store: Store) -> list[str]:
    listed = {shard.file for shard in store.manifest.shards}
    present = {f"shards/{path.name}" for path in (store.path / "shards").glob("*")}
    return sorted(present - listed)


def _match_system(system: System | None, store: Store, tally: _Tally) -> System | None:
    if system is None:
        tally.notes.append("the system is not known: its physics is not checked")
        return None
    there, here = (
        without_knowledge(each.description.model_dump(mode="json")) for each in (store, system)
    )
    difference = first_difference(there, here)
    if difference:
        key, stored, given = difference
        tally.problems.append(
            f"`{key}` is {stored} in the store and {given} in the system given: "
            "its physics is not checked"
        )
        return None
    if system.kernel != store.manifest.kernel:
        tally.notes.append(f"made by kernel {store.manifest.kernel}; {system.kernel} is here now")
    return system


def _check_shard(store: Store, shard: Shard, system: System | None, tally: _Tally) -> None:
    path = store.path / shard.file
    try:
        arrays = read_shard(path, manifest=store.manifest, shard=shard)
    except InputError as error:
        tally.problems.append(str(error))
        return
    tally.shards += 1
    tally.size += path.stat().st_size
    split = store.manifest.splits[shard.split]
    if split.members:
        tally.references += shard.count
    else:
        tally.trajectories += shard.count * split.runs
    tally.problems += [f"{path}: {fault}" for fault in _find_faults(store, arrays, system)]
    initial = _initial(arrays).reshape(
        shard.count, split.runs, *store.description.microstate.shape
    )
    if not (initial == initial[:, :1]).all():
        tally.problems.append(f"{path}: runs of one initial microstate start from different ones")
    for index, microstate in enumerate(initial[:, 0], start=shard.start):
        digest = hashlib.sha256(microstate.tobytes()).digest()
        tally.seen[digest].append((shard.split, index))


def _microstates(arrays: Arrays) -> NDArray[Any]:
    return arrays["initial"] if "initial" in arrays else arrays["microstates"]


def _initial(arrays: Arrays) -> NDArray[Any]:
    return arrays["initial"] if "initial" in arrays else arrays["microstates"][:, 0]


def _find_faults(store: Store, arrays: Arrays, system: System | None) -> Iterator[str]:
    arrays = _fill_holes(arrays)
    try:
        store.description.microstate.check(_microstates(arrays), "a microstate")
        np.char.decode(arrays["labels"], "utf-8")
    except ValueError as error:
        yield str(error)
        return
    if not np.isfinite(arrays["macrostates"]).all():
        yield "macrostates hold NaN or infinity"
        return
    if system is not None:
        yield from _find_physical_faults(arrays, system)


def _fill_holes(arrays: Arrays) -> Arrays:
    """The arrays with the first frame of a trajectory in the place of its missing ones."""
    if "present" not in arrays:
        return arrays
    missing, filled = arrays["present"] == 0, dict(arrays)
    for name in {"microstates", "macrostates"} & arrays.keys():
        inner = (1,) * (arrays[name].ndim - missing.ndim)
        first = np.take(arrays[name], [0], axis=missing.ndim - 1)
        filled[name] = np.where(missing.reshape(*missing.shape, *inner), first, arrays[name])
    return filled


def _find_physical_faults(arrays: Arrays, system: System) -> Iterator[str]:
    macrostates = arrays["macrostates"]
    fault = system.faults(macrostates)
    if fault:
        yield fault
    stored, observed = macrostates, system.observe(_microstates(arrays))
    if "initial" in arrays:
        stored, observed = macrostates[:, :, 0], observed[:, None]
    error = _largest(stored - observed)
    for feature in np.flatnonzero(error > _TOLERANCE * _largest(observed)):
        name = system.description.observables[feature].name
        yield (
            f"macrostates differ from the observed microstates in `{name}` by up to "
            f"{error[feature]:.3g}"
        )


def _largest(y: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.abs(y).max(axis=tuple(range(y.ndim - 1)))


def _check_duplicates(tally: _Tally) -> None:
    shared: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for (first, i), *others in tally.seen.values():
        for second, j in others:
            shared[first, second].append((i, j))
    for (first, second), pairs in shared.items():
        text = (
            f"{len(pairs)} initial microstates of `{second}` repeat one of `{first}`, such as "
            f"`{second}` {pairs[0][1]} and `{first}` {pairs[0][0]}"
        )
        (tally.notes if first == second else tally.problems).append(text)
