"""From a system and a plan to a store, in parallel and again from where it stopped.

Streams are addressed by the system's name, the split and the index of the initial microstate, so
that the bytes depend neither on the number of workers nor on how the splits are cut into shards:

    initial microstate i       (seed, system, split, i, "initial"), then (..., "initial", 1), ...
    its trajectory             (seed, system, split, i, "run"), of further ones (..., "run", k)
    its reference trajectory k (seed, system, split, i, "member", k)

No two initial microstates of a store are alike. A family of initial patterns may be small (a disk
has only so many places on a lattice), and the same microstate in two splits would be a leak, so a
draw that repeats an earlier one is made again, in the order of splits and indices.

One shard per worker is in memory, 32 MB unless the plan says otherwise. A device that wants many
trajectories at once (`System.batch`) gets as many shards in one call as come near to that, and
three such calls are in memory: one on the device, one being observed, one being written.

The calls are independent jobs. They run in threads of this process, or in the processes of an
executor, such as a Dask client's, on machines that see the folder of the store. The initial
microstates are always drawn here, because each has to differ from all others. Every worker writes
its own shards; one that dies leaves an unfinished file, and whoever makes the shard again writes
the same bytes.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import groupby
from math import prod
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..description import first_difference
from ..errors import InputError
from ..files import claimed, is_temporary, remove_unfinished
from ..progress import bar
from ..seeding import kernel_words, numpy_generator
from ..system import InitialState, System
from ..threads import available_cores
from ..version import __version__
from .manifest import DataPlan, Manifest, Shard
from .shards import (
    Arrays,
    count_bytes,
    encode_labels,
    read_shard,
    refuse_oversized,
    write_shard,
)
from .store import MANIFEST, Store, write_manifest

__all__ = ["draw_initial_states", "generate", "resumed", "write_miniature"]

_ATTEMPTS = 1000


# Enough for every core of a large machine to have several, few enough for a bar to move.
_DRAWN_AT_ONCE = 64


Address = tuple[int, str, str]
"""The seed, the name of the system and the split: where the streams of a split begin."""


def draw_initial_states(
    system: System, manifest: Manifest, *, progress: bool = False
) -> dict[str, list[InitialState]]:
    """Draws the initial microstates of every split, the same whoever asks for them."""
    seen: set[bytes] = set()
    total = sum(plan.count for plan in manifest.splits.values())
    with bar("initial microstates", total, visible=progress) as advance:
        states: dict[str, list[InitialState]] = {split: [] for split in manifest.splits}
        for split, plan in manifest.splits.items():
            address = (manifest.seed, manifest.description.system, split)
            for state in _draw_split(system, address, plan.count, seen):
                states[split].append(state)
                advance(split)
    return states


def _draw_split(
    system: System, address: Address, count: int, seen: set[bytes]
) -> Iterator[InitialState]:
    for start in range(0, count, _DRAWN_AT_ONCE):
        indices = range(start, min(start + _DRAWN_AT_ONCE, count))
        generators = [numpy_generator(*address, i, "initial") for i in indices]
        drawn = system.initial_states(address[-1], generators, start=start)
        for index, state in zip(indices, drawn, strict=True):
            yield _draw_new(system, address, index, state, seen)


def _draw_new(
    system: System, address: Address, index: int, state: InitialState, seen: set[bytes]
) -> InitialState:
    """The state itself, or the first of further draws that is not in `seen`."""
    for attempt in range(1, _ATTEMPTS + 1):
        digest = hashlib.sha256(state.microstate.tobytes()).digest()
        if digest not in seen:
            seen.add(digest)
            return state
        generator = numpy_generator(*address, index, "initial", attempt)
        [state] = system.initial_states(address[-1], [generator], start=index)
    raise InputError(
        f"{_ATTEMPTS} draws gave no new initial microstate after {len(seen)} distinct ones; ask "
        "for fewer, or for a larger system"
    )


_CALLS_IN_MEMORY = 3


# The shard itself and its file, as it is made.
_COPIES = 2


# What Python takes for an initial microstate beside its numbers, measured.
_STATE_BYTES = 500


# Enough for the largest cluster to be busy; the initial states of so many calls are under way.
_CALLS_SUBMITTED = 1024


States = Sequence[Sequence[InitialState]]
"""The initial states of every shard of a call."""


def generate(
    system: System,
    plan: DataPlan,
    out: str | Path,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = True,
) -> Store:
    """Makes a store, or what is missing of it.

    Shards that exist and belong are kept, once their checksums are verified. A folder with other
    data, or with a damaged shard, is refused and left as it is. So is a plan whose initial
    microstates and shards do not fit into the memory of the machine.

    Arguments:
        system: The system to simulate.
        plan: How much of it.
        out: The folder of the store; it is made where it does not exist.
        workers: How many calls of the simulator to make at a time; by default one per available
            core.
        executor: Where to make the calls, such as the executor of a Dask client; its processes
            have this version of the package and see `out` under the same path. By default they
            are made in threads.
        progress: Whether to show a bar on standard error.
    """
    if workers is not None and workers < 1:
        raise InputError(f"`workers` is {workers}; it must be at least 1")
    workers = workers or available_cores()
    manifest = _manifest_of(system, plan)
    _refuse_oversized(manifest, workers if executor is None else 0)
    with resumed(Path(out), manifest, workers=workers, progress=progress) as store:
        _make_missing(system, store, workers=workers, executor=executor, progress=progress)
        remove_unfinished(store.path / "shards")
    return store


@contextmanager
def resumed(
    folder: Path, manifest: Manifest, *, workers: int = 1, progress: bool = True
) -> Iterator[Store]:
    """Holds the folder of a store whose missing shards are then made.

    A folder with other data, with other files or with a damaged shard is refused.

    Arguments:
        folder: The folder; it is made where it does not exist.
        manifest: The manifest of the store.
        workers: How many shards that exist to verify at a time.
        progress: Whether to show a bar on standard error.
    """
    _make_folder(folder)
    with claimed(folder):
        store = _begin(folder, manifest)
        _refuse_damaged(store, workers=workers, progress=progress)
        yield store


def _manifest_of(system: System, plan: DataPlan) -> Manifest:
    return Manifest(
        description=system.description,
        seed=plan.seed,
        kernel=system.kernel,
        code_version=__version__,
        splits=plan.splits,
        shards=plan.shards(system.description),
    )


def _refuse_oversized(manifest: Manifest, workers: int) -> None:
    kind = manifest.description.microstate
    each = prod(kind.shape) * kind.dtype.itemsize + _STATE_BYTES
    states = sum(split.count for split in manifest.splits.values())
    workers = min(workers, len(manifest.shards))
    shard = max(count_bytes(manifest, shard.split, shard.count) for shard in manifest.shards)
    refuse_oversized(
        each * states + _COPIES * workers * shard,
        f"the plan, with {states} initial microstates and shards of up to {shard} bytes,",
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"`out` is {folder}, which cannot be made a folder ({error.strerror}): choose another"
        ) from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"`out` is {folder}, in which you may not write: choose another folder")


def _begin(folder: Path, manifest: Manifest) -> Store:
    if (folder / MANIFEST).exists():
        # The manifest that is there stays, with the version of the code that began the store.
        store = Store.open(folder)
        _refuse_other_data(store, manifest)
    else:
        _refuse_other_files(folder)
        write_manifest(folder, manifest)
        store = Store(folder, manifest)
    (folder / "shards").mkdir(exist_ok=True)
    remove_unfinished(folder)
    remove_unfinished(folder / "shards")
    return store


def _refuse_other_files(folder: Path) -> None:
    if not all(is_temporary(path) for path in folder.iterdir()):
        raise InputError(
            f"`out` is {folder}, which holds files but no {MANIFEST}: choose a new or empty one"
        )


def _refuse_other_data(store: Store, wanted: Manifest) -> None:
    difference = first_difference(store.manifest.identifying(), wanted.identifying())
    if difference:
        key, there, here = difference
        raise InputError(
            f"`out` is {store.path}, which holds other data: `{key}` is {there} there and {here} "
            "here; choose another folder, or delete that one"
        )


def _refuse_damaged(store: Store, *, workers: int, progress: bool) -> None:
    missing = set(store.missing())
    kept = [shard for shard in store.manifest.shards if shard not in missing]
    if not kept:
        return

    def verify(shard: Shard) -> Shard:
        read_shard(store.path / shard.file, manifest=store.manifest, shard=shard)
        return shard

    with (
        bar("verifying", len(kept), visible=progress) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        try:
            for shard in pool.map(verify, kept):
                advance(shard.file)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _make_missing(
    system: System, store: Store, *, workers: int, executor: Executor | None, progress: bool
) -> None:
    missing, make = store.missing(), partial(_make_shards, system, store)
    if not missing:
        return
    drawn = draw_initial_states(system, store.manifest, progress=progress)
    calls = (
        (shards, [drawn[s.split][s.start : s.start + s.count] for s in shards])
        for shards in _join_shards(missing, store.manifest, system.batch)
    )
    if system.batch > 1:
        workers = min(workers, _CALLS_IN_MEMORY)
    with bar("simulating", len(missing), visible=progress) as advance:
        if executor is not None:
            address = (store.path.resolve(), store.manifest.identity, __version__)
            for shard in _carry_out(partial(_make_elsewhere, system, *address), calls, executor):
                advance(shard.file)
            return
        with ThreadPoolExecutor(workers) as pool:
            try:
                for shard in _carry_out(make, calls, pool):
                    advance(shard.file)
            except BaseException:
                # A compiled kernel cannot be stopped: the shards under way are finished and kept.
                pool.shutdown(cancel_futures=True)
                raise


def _carry_out(
    make: Callable[[Sequence[Shard], States], None],
    calls: Iterable[tuple[Sequence[Shard], States]],
    executor: Executor,
) -> Iterator[Shard]:
    """Makes all calls; yields the shards as they are made."""
    pending: dict[Future[None], Sequence[Shard]] = {}

    def collect() -> Iterator[Shard]:
        done, _ = wait(pending, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
            yield from pending.pop(future)

    try:
        for shards, states in calls:
            pending[executor.submit(make, shards, states)] = shards
            if len(pending) >= _CALLS_SUBMITTED:
                yield from collect()
        while pending:
            yield from collect()
    except BaseException:
        for future in pending:
            future.cancel()
        raise


def _join_shards(
    shards: Iterable[Shard], manifest: Manifest, batch: int
) -> list[tuple[Shard, ...]]:
    """Joins shards as long as they have no more than `batch` trajectories.

    Splits that store trajectories share a call; references have calls of their own.
    """
    joined: list[tuple[Shard, ...]] = []
    room = 0
    for shard in shards:
        split = manifest.splits[shard.split]
        trajectories = shard.count * (split.members or split.runs)
        alike = joined and manifest.splits[joined[-1][0].split].members == split.members
        if alike and trajectories <= room:
            joined[-1] = (*joined[-1], shard)
            room -= trajectories
        else:
            joined.append((shard,))
            room = batch - trajectories
    return joined


def _make_elsewhere(
    system: System,
    folder: Path,
    identity: str,
    version: str,
    shards: Sequence[Shard],
    states: States,
) -> None:
    """Makes shards in another process, perhaps on another machine."""
    if version != __version__:
        raise InputError(
            f"a worker on {gethostname()} has tampl {__version__}, and the store is made by tampl "
            f"{version}: install the same version everywhere"
        )
    _make_shards(system, _open_elsewhere(folder, identity), shards, states)


# Reading a manifest of many shards takes longer than a short call.
@lru_cache(maxsize=4)
def _open_elsewhere(folder: Path, identity: str) -> Store:
    try:
        store = Store.open(folder)
    except InputError as error:
        raise InputError(
            f"a worker on {gethostname()} does not see the store in {folder}: choose a folder on "
            "a file system that all workers share"
        ) from error
    if store.manifest.identity != identity:
        raise InputError(
            f"a worker on {gethostname()} sees another store in {folder}: choose a folder on a "
            "file system that all workers share"
        )
    return store


def _make_shards(system: System, store: Store, shards: Sequence[Shard], states: States) -> None:
    """Makes shards, of trajectories or of references, in one call of the simulator."""
    manifest = store.manifest
    run = _run_references if manifest.splits[shards[0].split].members else _run_trajectories
    try:
        made = run(system, manifest, shards, states)
    except InputError as error:
        raise InputError(f"{_describe_call(manifest, shards)}: {error}") from error
    for shard, arrays in zip(shards, made, strict=True):
        write_shard(store.path / shard.file, arrays, manifest=manifest, shard=shard)


def _describe_call(manifest: Manifest, shards: Sequence[Shard]) -> str:
    """Says which runs a call is of, in its order."""
    parts = []
    for name, group in groupby(shards, key=lambda shard: shard.split):
        own, split = list(group), manifest.splits[name]
        parts.append(
            f"split `{name}`, initial microstates {own[0].start} to "
            f"{own[-1].start + own[-1].count - 1} with {split.members or split.runs} runs each"
        )
    return "; ".join(parts)


def _run_trajectories(
    system: System, manifest: Manifest, shards: Sequence[Shard], states: States
) -> list[Arrays]:
    """Runs the states of every shard, each with all of its words."""
    initial: list[NDArray[Any]] = []
    words: list[NDArray[np.uint64]] = []
    labels: list[NDArray[np.bytes_]] = []
    for shard, own in zip(shards, states, strict=True):
        runs = manifest.splits[shard.split].runs
        initial.append(np.repeat(np.stack([state.microstate for state in own]), runs, axis=0))
        words.append(_run_words(manifest, shard, runs).reshape(-1, 4))
        labels.append(encode_labels([state.label for state in own for _ in range(runs)]))
    done = system.simulate(np.concatenate(initial), np.concatenate(words))
    cuts = np.cumsum([len(own) for own in labels])[:-1]
    return [
        {"microstates": x, "macrostates": y, "labels": own}
        for x, y, own in zip(
            np.split(done.microstates, cuts), np.split(done.macrostates, cuts), labels, strict=True
        )
    ]


def _run_references(
    system: System, manifest: Manifest, shards: Sequence[Shard], states: States
) -> list[Arrays]:
    """Runs the ensembles of every shard."""
    initial = [np.stack([state.microstate for state in group]) for group in states]
    words = [_member_words(manifest, shard) for shard in shards]
    macrostates = system.ensemble(np.concatenate(initial), np.concatenate(words))
    cuts = np.cumsum([len(group) for group in states])[:-1]
    return [
        {"initial": x, "macrostates": y, "labels": encode_labels([s.label for s in group])}
        for x, y, group in zip(initial, np.split(macrostates, cuts), states, strict=True)
    ]


def _run_words(manifest: Manifest, shard: Shard, runs: int) -> NDArray[np.uint64]:
    """Words of the runs from the shard's states, (count, runs, 4)."""
    # The first run has the address it would have alone, so that more runs keep the first.
    names = [("run", k) if k else ("run",) for k in range(runs)]
    return _words(manifest, shard, names)


def _member_words(manifest: Manifest, shard: Shard) -> NDArray[np.uint64]:
    """Words of the references from the shard's states, (count, members, 4)."""
    members = manifest.splits[shard.split].members
    return _words(manifest, shard, [("member", k) for k in range(members)])


def _words(
    manifest: Manifest, shard: Shard, names: Sequence[tuple[int | str, ...]]
) -> NDArray[np.uint64]:
    address = (manifest.seed, manifest.description.system, shard.split)
    indices = range(shard.start, shard.start + shard.count)
    return np.stack([[kernel_words(*address, i, *name) for name in names] for i in indices])


def write_miniature(system: System, out: str | Path) -> Store:
    """Writes a store of a few trajectories, in several shards; give it a small system."""
    plan = DataPlan(seed=0, train=4, valid=2, test=2, members=3, shard_size=2)
    return generate(system, plan, out, workers=1, progress=False)
