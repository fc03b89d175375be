"""The published polymer data as a store, the format `polymer-parquet`.

The data set is `MLDS-NUS/polymer-dynamics` of Hugging Face. Each row of its files is a trajectory:
`x` (F, 3 B) with x, y and z of bead 1, of bead 2, ..., relative to the centre of mass, and `t`
(F, 1), evenly spaced. The unit of `t` is the data set's; frames are taken to be the
polymer's `interval` apart. Splits are `train`, `valid`, and `test_fast`, `test_medium` and
`test_slow`, each of which starts from one configuration. Of the test splits the store keeps the
configurations and all extensions, as it does of simulated references.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.manifest import DataPlan, Manifest, Shard
from ...data.parquet import count_rows, find_files, read_rows
from ...data.shards import Arrays, encode_labels, write_shard
from ...data.store import MANIFEST, Store, write_manifest
from ...errors import InputError
from ...files import claimed, is_temporary, remove_unfinished
from ...progress import bar
from ...systems.polymer import Polymer
from ...systems.regimes import NAMES
from ...version import __version__

__all__ = ["import_polymer"]

KERNEL, COLUMNS = "polymer-parquet-1", ("t", "x")

_UNEVEN, _SAME = 1e-3, 1e-4
"""Largest spread of time steps over their mean, and largest distance of equal coordinates."""


def import_polymer(
    folder: Path, out: Path, *, system: Polymer | None = None, progress: bool = True
) -> Store:
    """Makes a store of the published trajectories.

    The manifest is written last, so that only a complete store has one; the same call starts an
    interrupted import again.

    Arguments:
        folder: The folder of the parquet files, which may lie in subfolders.
        out: The folder of the store, which need not exist.
        system: The polymer that the data are of; by default the one of `recipes/polymer.toml`.
        progress: Whether to show a bar on standard error.
    """
    system = system or Polymer()
    tests = [f"test_{name}" for name in NAMES]
    files = {split: find_files(folder, split) for split in ("train", "valid", *tests)}
    rows = {split: count_rows(paths, COLUMNS) for split, paths in files.items()}
    _refuse_other_counts({split: rows[split] for split in tests})
    plan = DataPlan(
        train=rows["train"], valid=rows["valid"], test=len(NAMES), members=rows[tests[0]]
    )
    manifest = Manifest(
        description=system.description,
        seed=plan.seed,
        kernel=KERNEL,
        code_version=__version__,
        splits=plan.splits,
        shards=plan.shards(system.description),
    )
    out.mkdir(parents=True, exist_ok=True)
    with (
        claimed(out),
        bar("importing", len(manifest.shards), visible=progress) as advance,
    ):
        _refuse_other_files(out)
        (out / "shards").mkdir(exist_ok=True)
        for shard, arrays in _read_shards(system, manifest, files):
            write_shard(out / shard.file, arrays, manifest=manifest, shard=shard)
            advance(shard.file)
        write_manifest(out, manifest)
    return Store(out, manifest)


def _refuse_other_counts(rows: dict[str, int]) -> None:
    if len(set(rows.values())) > 1:
        found = ", ".join(f"{split} {count}" for split, count in rows.items())
        raise InputError(
            f"the test splits must have equal numbers of trajectories, and have {found}: download "
            "all of their files"
        )


def _refuse_other_files(out: Path) -> None:
    remove_unfinished(out)
    if any(path.name != "shards" and not is_temporary(path) for path in out.iterdir()):
        what = "a store already" if (out / MANIFEST).exists() else "other files"
        raise InputError(f"`out` is {out}, which holds {what}: choose a new or empty folder")


def _read_shards(
    system: Polymer, manifest: Manifest, files: dict[str, list[Path]]
) -> Iterator[tuple[Shard, Arrays]]:
    for split in ("train", "valid"):
        rows = _read_trajectories(system, files[split])
        for shard in manifest.of_split(split):
            x = np.stack(list(islice(rows, shard.count)))
            labels = encode_labels(["coil"] * shard.count)
            yield shard, {"microstates": x, "macrostates": system.observe(x), "labels": labels}
    references = [_read_references(system, files[f"test_{name}"]) for name in NAMES]
    for shard in manifest.of_split("test"):
        chosen = slice(shard.start, shard.start + shard.count)
        yield (
            shard,
            {
                "initial": np.stack([initial for initial, _ in references[chosen]]),
                "macrostates": np.stack([y for _, y in references[chosen]]),
                "labels": encode_labels(list(NAMES[chosen])),
            },
        )


def _read_references(
    system: Polymer, files: Sequence[Path]
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The configuration that all trajectories of a test split start from, and extensions."""
    initial: NDArray[np.float32] | None = None
    macrostates = []
    for number, x in enumerate(_read_trajectories(system, files)):
        if initial is None:
            initial = x[0]
        apart = np.abs(x[0] - initial).max()
        if apart > _SAME:
            raise InputError(
                f"trajectory {number} of {files[0].parent} starts {apart:.3g} away from the first "
                "of its split; all trajectories of a test split start from one configuration"
            )
        macrostates.append(system.observe(np.concatenate([initial[None], x[1:]])))
    assert initial is not None
    return initial, np.stack(macrostates)


def _read_trajectories(system: Polymer, files: Sequence[Path]) -> Iterator[NDArray[np.float32]]:
    """Coordinates of every row, (F, B, 3)."""
    for name, (t, x) in read_rows(files, COLUMNS):
        shape = (system.frames, 3 * system.beads)
        if x.shape != shape:
            raise InputError(
                f"{name}: `x` has shape {x.shape}; {system.frames} frames of {system.beads} beads "
                f"have {shape}"
            )
        _refuse_uneven_times(t, system.frames, name)
        beads = x.reshape(system.frames, system.beads, 3)
        yield system.description.microstate.check(beads, f"{name}: `x`")


def _refuse_uneven_times(t: NDArray[Any], frames: int, name: str) -> None:
    if t.size != frames:
        raise InputError(f"{name}: `t` has {t.size} times for {frames} frames")
    steps = np.diff(t.ravel())
    if not (steps > 0).all() or np.ptp(steps) > _UNEVEN * steps.mean():
        raise InputError(f"{name}: `t` is not evenly spaced, as frames of a store are")
