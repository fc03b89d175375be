"""A store: a folder with `manifest.json` and the shards it names.

    store = Store.open("runs/sirs")
    train = store.dataset("train")       # trajectories of microstates and macrostates
    test = store.references("test")      # initial microstates, macrostates of N trajectories each

Splits are by trajectory. Opening reads the manifest only; reading fills one array, shard by
shard, and compares each with its checksum.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..description import Description
from ..errors import InputError
from ..files import read_json, replacing
from ..version import __version__
from .dataset import Dataset, References
from .lazy import LazyMicrostates, Place
from .manifest import FORMAT, FORMAT_VERSION, Manifest, Shard
from .shards import Arrays, count_bytes, empty_arrays, locate_microstates, read_shard

__all__ = [
    "MANIFEST",
    "Store",
    "read_manifest",
    "read_shard",
    "write_manifest",
]

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Store:
    """An existing store; `Store.open` is the way to one."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: str | Path) -> "Store":
        """Opens the store in folder `path`, or raises `InputError` where there is none."""
        return cls(Path(path), read_manifest(Path(path)))

    @property
    def description(self) -> Description:
        """The system and how it was observed."""
        return self.manifest.description

    def missing(self) -> tuple[Shard, ...]:
        """The shards that are not there (yet)."""
        return tuple(s for s in self.manifest.shards if not (self.path / s.file).exists())

    def dataset(
        self,
        split: str,
        *,
        verify: bool = True,
        memory: float | None = None,
        part: float = 0,
    ) -> Dataset:
        """Reads a split of trajectories, such as "train", into memory.

        Arguments:
            split: The name of the split.
            verify: Whether to compare every shard with its checksum; without, a damaged shard may
                be read.
            memory: Bytes that the split may take. The microstates of a larger one stay on disk
                and are read when they are needed (`tampl.data.lazy`). By default everything is
                read.
            part: Bytes that a selection of the trajectories of a larger split may take; such a
                selection is read into memory as soon as it is made.
        """
        self._refuse_other(split, references=False)
        size = count_bytes(self.manifest, split, self.manifest.splits[split].count)
        if memory is not None and size > memory:
            return self._open_lazily(split, verify=verify, part=part)
        arrays = self._read(split, references=False, verify=verify)
        return Dataset.described(
            self.description,
            arrays["microstates"],
            arrays["macrostates"],
            _decode(arrays),
            arrays["present"].astype(np.bool_) if "present" in arrays else None,
        )

    def references(self, split: str = "test", *, verify: bool = True) -> References:
        """Reads a split of references: initial microstates and the macrostates of their runs."""
        arrays = self._read(split, references=True, verify=verify)
        return References(
            arrays["initial"], arrays["macrostates"], _decode(arrays), self.description
        )

    def _read(self, split: str, *, references: bool, verify: bool) -> Arrays:
        self._refuse_other(split, references=references)
        arrays = empty_arrays(self.manifest, split, self.manifest.splits[split].count)
        runs = self.manifest.splits[split].runs
        for shard in self.manifest.of_split(split):
            block = slice(shard.start * runs, (shard.start + shard.count) * runs)
            read_shard(
                self.path / shard.file,
                manifest=self.manifest,
                shard=shard,
                into={name: array[block] for name, array in arrays.items()},
                verify=verify,
            )
        return arrays

    def _open_lazily(self, split: str, *, verify: bool, part: float) -> Dataset:
        """The data set whose microstates stay on disk."""
        places, kept = [], []
        for shard in self.manifest.of_split(split):
            # One shard at a time is in memory, for its checksum and all but its microstates.
            path, runs = self.path / shard.file, self.manifest.splits[split].runs
            wanted = empty_arrays(self.manifest, split, shard.count)
            if not verify:  # no checksum is to be had of the microstates, which nothing else needs
                del wanted["microstates"]
            arrays = read_shard(
                path, manifest=self.manifest, shard=shard, into=wanted, verify=verify
            )
            kept.append({name: arrays[name] for name in arrays if name != "microstates"})
            places.append(Place(path, locate_microstates(path), shard.count * runs))
        whole = {name: np.concatenate([arrays[name] for arrays in kept]) for name in kept[0]}
        kind = self.description.microstate
        x = LazyMicrostates.open(
            places,
            frames=self.description.frames,
            shape=kind.shape,
            dtype=kind.dtype,
            part=part,
        )
        present = whole["present"].astype(np.bool_) if "present" in whole else None
        return Dataset.described(
            self.description, x, whole["macrostates"], _decode(whole), present
        )

    def _refuse_other(self, split: str, *, references: bool) -> None:
        splits = self.manifest.splits
        kind = "references" if references else "trajectories"
        fitting = [name for name, entry in splits.items() if bool(entry.members) == references]
        if split not in fitting:
            raise InputError(
                f"`split` is {split!r}; the splits of {self.path} that hold {kind} are {fitting}"
            )


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of a store, or raises `InputError`."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} does not exist or is no folder: give the folder of a store, or make one "
            "with `tampl simulate`"
        )
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(
            f"{folder} has no {MANIFEST}: give the folder of a store, or make one with "
            "`tampl simulate`"
        )
    return _parse_manifest(read_json(path, "restore it, or make the store again elsewhere"), path)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest of a store, whole or not at all."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False)
    with replacing(folder / MANIFEST) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _parse_manifest(tree: Any, path: Path) -> Manifest:  # noqa: ANN401
    keys = tree if isinstance(tree, dict) else {}
    if keys.get("format") != FORMAT:
        raise InputError(f"{path} has `format` {keys.get('format')!r}; a store has {FORMAT!r}")
    version = keys.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise InputError(
            f"{path} has `format_version` {version}; this tampl ({__version__}) reads up to "
            f"{FORMAT_VERSION}: install a newer tampl, or make the store again"
        )
    try:
        return Manifest.model_validate(tree)
    except InputError as error:
        raise InputError(
            f"{path} is malformed ({error}): restore it, or make the store again elsewhere"
        ) from error


def _decode(arrays: Arrays) -> NDArray[np.str_]:
    # Like any damaged byte, one in a label is found by the checksum and does not stop the reading.
    return np.char.decode(arrays["labels"], "utf-8", "replace")
