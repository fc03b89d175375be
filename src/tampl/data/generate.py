"""From a system and a plan to a store, in parallel and again from where it stopped.

Streams are addressed by the system's name, the split and the index of the initial microstate, so
that the bytes depend neither on the number of workers nor on how the splits are cut into shards:

    initial microstate i   (seed, system, split, i, "initial"), see `initial.py`
    its trajectory         (seed, system, split, i, "run")
    its reference run k    (seed, system, split, i, "member", k)
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..atomic import claimed, is_temporary, sweep
from ..errors import InputError
from ..progress import bar
from ..seeding import kernel_words
from ..systems.base import InitialState, System
from ..version import __version__
from .initial import draw_initial_states
from .metadata import DataPlan, Manifest, Shard, first_difference
from .shards import Arrays, check_header, encode_labels, write_shard
from .store import MANIFEST, Store, write_manifest

__all__ = ["available_cores", "generate"]


def generate(
    system: System,
    plan: DataPlan,
    out: str | Path,
    *,
    workers: int | None = None,
    progress: bool = True,
) -> Store:
    """Makes a store, or what is missing of it.

    Shards that exist and belong are kept. A folder with other data, or with a damaged shard, is
    refused and left as it is.

    Arguments:
        system: The system to simulate.
        plan: How much of it.
        out: The folder of the store; it is made where it does not exist.
        workers: How many shards to make at a time; by default one per available core.
        progress: Whether to show a bar on standard error.
    """
    if workers is not None and workers < 1:
        raise InputError(f"`workers` is {workers}; it must be at least 1")
    folder = Path(out)
    _make_folder(folder)
    manifest = _manifest_of(system, plan)
    with claimed(folder):
        store = _begin(folder, manifest)
        _make_missing(system, store, workers=workers or available_cores(), progress=progress)
    return store


def _manifest_of(system: System, plan: DataPlan) -> Manifest:
    return Manifest(
        description=system.description,
        seed=plan.seed,
        kernel=system.kernel,
        code_version=__version__,
        splits=plan.splits,
        shards=plan.shards(system.description),
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
        _refuse_damaged(store)
    else:
        _refuse_other_files(folder)
        write_manifest(folder, manifest)
        store = Store(folder, manifest)
    (folder / "shards").mkdir(exist_ok=True)
    sweep(folder)
    sweep(folder / "shards")
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


def _refuse_damaged(store: Store) -> None:
    missing = set(store.missing())
    for shard in store.manifest.shards:
        if shard not in missing:
            check_header(store.path / shard.file, manifest=store.manifest, shard=shard)


def _make_missing(system: System, store: Store, *, workers: int, progress: bool) -> None:
    missing = store.missing()
    if not missing:
        return
    states = draw_initial_states(system, store.manifest)
    with (
        bar("simulating", len(missing), visible=progress) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        futures = {
            pool.submit(_make_shard, system, store, shard, states[shard.split]): shard
            for shard in missing
        }
        try:
            for future in as_completed(futures):
                future.result()
                advance(futures[future].file)
        except BaseException:
            # A compiled kernel cannot be stopped: the shards under way are finished and kept.
            pool.shutdown(cancel_futures=True)
            raise


def _make_shard(
    system: System, store: Store, shard: Shard, split_states: Sequence[InitialState]
) -> None:
    manifest = store.manifest
    indices = range(shard.start, shard.start + shard.count)
    address = (manifest.seed, manifest.description.system, shard.split)
    states = split_states[shard.start : shard.start + shard.count]
    members = manifest.splits[shard.split].members
    arrays = (
        _run_references(system, states, _member_words(address, indices, members))
        if members
        else _run_trajectories(system, states, _run_words(address, indices))
    )
    write_shard(store.path / shard.file, arrays, manifest=manifest, shard=shard)


def _run_trajectories(
    system: System, states: Sequence[InitialState], words: NDArray[np.uint64]
) -> Arrays:
    runs = system.simulate(np.stack([state.microstate for state in states]), words)
    return {
        "microstates": runs.microstates,
        "macrostates": runs.macrostates,
        "labels": encode_labels([state.label for state in states]),
    }


def _run_references(
    system: System, states: Sequence[InitialState], words: NDArray[np.uint64]
) -> Arrays:
    initial = np.stack([state.microstate for state in states])
    return {
        "initial": initial,
        "macrostates": system.ensemble(initial, words),
        "labels": encode_labels([state.label for state in states]),
    }


def _run_words(address: tuple[int, str, str], indices: range) -> NDArray[np.uint64]:
    return np.stack([kernel_words(*address, i, "run") for i in indices])


def _member_words(
    address: tuple[int, str, str], indices: range, members: int
) -> NDArray[np.uint64]:
    return np.stack(
        [[kernel_words(*address, i, "member", k) for k in range(members)] for i in indices]
    )


def available_cores() -> int:
    """The cores this process may use, in a container or a batch job not all of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
