"""One shard: an HDF5 file with a block of one split, written whole or not at all.

    trajectories   microstates (n r, F, *shape)   macrostates (n r, F, m)    labels (n r,)
    references     initial     (n, *shape)        macrostates (n, N, F, m)   labels (n,)

for n initial microstates with r runs each, the runs of one microstate one after another. In a
split with holes both have `present` too, in the shape of the macrostates without their last axis:
1 where a frame exists and 0 where it is missing. Macrostates are NaN in missing frames.

Attributes say what it belongs to (identity, split, start, count), how it was made (seed, kernel,
code_version) and its checksum, a SHA-256 over names, types, shapes and bytes of the datasets.

HDF5 reports no error of a disk that is full when it closes a file, and may crash. A shard is
therefore made in memory, written by Python and read back with its checksum before it gets its
name. What a shard refers to outside of itself (links, external storage, virtual datasets) is
refused.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..files import flush, replacing
from ..version import __version__
from .manifest import Manifest, Shard

__all__ = [
    "Arrays",
    "count_bytes",
    "empty_arrays",
    "encode_labels",
    "locate_microstates",
    "read_shard",
    "refuse_oversized",
    "write_shard",
]

Arrays = dict[str, NDArray[Any]]
"""The datasets of a shard, or of a whole split, by name."""

_LABEL_BYTES = 64
# What `h5py.string_dtype("utf-8", 64)` gives: NumPy has no mark of its own for UTF-8.
_LABEL: np.dtype[np.bytes_] = np.dtype(f"S{_LABEL_BYTES}", metadata={"h5py_encoding": "utf-8"})
_REMEDY = "delete it and run `tampl simulate` again"

# Signature, version and padding at the head of a collection of texts.
_TEXTS = b"GCOL\x01\x00\x00\x00"

# Where the system does not say how much memory it has.
_UNKNOWN_MEMORY = 2**36


Layout = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""Shape and type of each dataset."""


def _lay_out(manifest: Manifest, split: str, count: int) -> Layout:
    """The datasets that belong to `count` initial microstates of `split`."""
    description, members = manifest.description, manifest.splits[split].members
    shape, dtype = description.microstate.shape, description.microstate.dtype
    series = (description.frames, len(description.observables))
    real = np.dtype(np.float64)
    if members:
        layout = {
            "initial": ((count, *shape), dtype),
            "macrostates": ((count, members, *series), real),
            "labels": ((count,), _LABEL),
        }
    else:
        rows = count * manifest.splits[split].runs
        layout = {
            "microstates": ((rows, description.frames, *shape), dtype),
            "macrostates": ((rows, *series), real),
            "labels": ((rows,), _LABEL),
        }
    if manifest.splits[split].holes:
        layout["present"] = (layout["macrostates"][0][:-1], np.dtype(np.uint8))
    return layout


def count_bytes(manifest: Manifest, split: str, count: int) -> int:
    """Bytes of the datasets that belong to `count` initial microstates of `split`."""
    layout = _lay_out(manifest, split, count)
    return sum(prod(shape) * dtype.itemsize for shape, dtype in layout.values())


def refuse_oversized(needed: int, what: str) -> None:
    """Refuses what needs more memory than the machine has, before any of it is taken.

    Arguments:
        needed: Bytes.
        what: What needs them, the beginning of the message.
    """
    most = _find_memory()
    if needed > most:
        amount = f"{needed / 2**30:,.1f} GiB" if needed < 2**80 else "more than 2^50 GiB"
        raise InputError(
            f"{what} would need {amount} of memory; this machine has {most / 2**30:,.1f} GiB: ask "
            "for less, or use a larger machine"
        )


def _find_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return _UNKNOWN_MEMORY


def empty_arrays(manifest: Manifest, split: str, count: int) -> Arrays:
    """Allocates the datasets that belong to `count` initial microstates of `split`."""
    refuse_oversized(count_bytes(manifest, split, count), f"split `{split}`")
    layout = _lay_out(manifest, split, count)
    return {name: np.empty(shape, dtype) for name, (shape, dtype) in layout.items()}


def encode_labels(labels: list[str]) -> NDArray[np.bytes_]:
    """Labels as they are stored: UTF-8 in 64 bytes each."""
    encoded = [label.encode() for label in labels]
    for label, code in zip(labels, encoded, strict=True):
        if len(code) > _LABEL_BYTES:
            raise InputError(
                f"the label `{label}` is longer than {_LABEL_BYTES} bytes: shorten it"
            )
    return np.array(encoded, _LABEL)


def write_shard(path: Path, arrays: Arrays, *, manifest: Manifest, shard: Shard) -> None:
    """Writes a shard; it gets its name when it is complete, on the disk and read back."""
    layout = _lay_out(manifest, shard.split, shard.count)
    fault = _find_mismatch(_describe(arrays), layout) or _find_bad_holes(arrays)
    if fault:
        raise InputError(f"`{manifest.description.system}` made {fault}: correct the system")
    with replacing(path) as temporary:
        temporary.write_bytes(_make_image(temporary.name, arrays, manifest, shard))
        flush(temporary)
        try:
            read_shard(temporary, manifest=manifest, shard=shard)
        except InputError as error:
            raise OSError(
                f"{path} could not be written: what the disk holds differs from what was written"
            ) from error


def _make_image(name: str, arrays: Arrays, manifest: Manifest, shard: Shard) -> bytes:
    """The bytes of a shard's file; no other thread makes one of the same name."""
    import h5py

    with h5py.File(name, "w", driver="core", backing_store=False) as file:
        for key, array in arrays.items():
            file.create_dataset(key, data=array.astype(_LABEL) if key == "labels" else array)
        file.attrs.update(_identify(manifest, shard))
        file.attrs.update(seed=manifest.seed, kernel=manifest.kernel, code_version=__version__)
        file.attrs["checksum"] = _checksum(arrays)
        file.flush()
        return file.id.get_file_image()


def read_shard(
    path: Path,
    *,
    manifest: Manifest,
    shard: Shard,
    into: Arrays | None = None,
    verify: bool = True,
) -> Arrays:
    """Reads a shard, or refuses it with an `InputError` that names the file and the remedy.

    Arguments:
        path: The file.
        manifest: The manifest of the store it should belong to.
        shard: The entry of the manifest that it should be.
        into: Arrays to fill, such as slices of a whole split; new ones by default.
        verify: Whether to compare the checksum, which costs a pass over the bytes.
    """
    layout = _lay_out(manifest, shard.split, shard.count)
    arrays = into if into is not None else empty_arrays(manifest, shard.split, shard.count)
    with _opened(path) as file:
        _refuse_foreign(file, path, manifest=manifest, shard=shard)
        _refuse_references(file, path)
        fault = _find_mismatch(_describe(file), layout)
        if fault:
            raise InputError(f"{path} has {fault}: {_REMEDY}")
        for name, array in arrays.items():
            file[name].read_direct(array)
        if verify and not np.array_equal(file.attrs["checksum"], _checksum(arrays)):
            raise InputError(
                f"{path} is damaged: its content differs from its checksum: {_REMEDY}"
            )
    fault = _find_bad_holes(arrays)
    if fault:
        raise InputError(f"{path} has {fault}: {_REMEDY}")
    return arrays


def locate_microstates(path: Path) -> int:
    """Where the microstates of a shard that was read begin in its file."""
    with _opened(path) as file:
        offset = file["microstates"].id.get_offset()
    if offset is None:
        raise InputError(
            f"{path} has microstates that are chunked or compressed, which can only be read "
            "into memory: write them contiguously, or allow more `memory`"
        )
    return offset


def _find_bad_holes(arrays: Arrays) -> str | None:
    if "present" not in arrays:
        return None
    present, missing = arrays["present"], np.isnan(arrays["macrostates"]).all(axis=-1)
    if not present[..., 0].all():
        return "a trajectory whose first frame is missing"
    if present.max() > 1 or not np.array_equal(present == 0, missing):
        return "`present` that is not 1 where macrostates are numbers and 0 where they are NaN"
    return None


def _identify(manifest: Manifest, shard: Shard) -> dict[str, str | int]:
    """The attributes by which a file says what shard of what data it is."""
    return {
        "identity": manifest.identity,
        "split": shard.split,
        "start": shard.start,
        "count": shard.count,
    }


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {list(array.shape)}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import h5py

    if not path.exists():
        raise InputError(
            f"{path} is missing: run `tampl simulate` again, it makes only what is missing"
        )
    if not path.is_file():  # a pipe would be waited for
        raise InputError(f"{path} is no regular file and not a shard: {_REMEDY}")
    if not _has_sound_texts(path):
        raise InputError(f"{path} is truncated or not a shard (damaged texts): {_REMEDY}")
    try:
        # A shard never changes once it is there, so that it needs no lock: read-only and network
        # file systems often have none.
        with h5py.File(path, "r", locking=False) as file:
            yield file
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"{path} cannot be read: give yourself the right to read it") from error
    # What h5py raises for damage depends on the byte: a name that is no UTF-8 is a ValueError, an
    # unknown type a TypeError, a size beyond all bounds a MemoryError or an OverflowError.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is truncated or not a shard ({reason}): {_REMEDY}") from error


def _has_sound_texts(path: Path) -> bool:
    """Whether the collections in which HDF5 keeps the texts of attributes can be walked through.

    HDF5 1.14 walks through them without end if a size in them is damaged. A collection has a head
    of 16 bytes, then objects: number (2 bytes), 6 others, size (8 bytes), and their content in
    multiples of 8 bytes. Number 0 is what is free at the end, whose size includes its head.
    """
    if not path.stat().st_size:
        return True
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        start = content.find(_TEXTS)
        while start >= 0:
            end = start + int.from_bytes(content[start + 8 : start + 16], "little")
            place = start + 16
            while place + 16 <= end <= len(content):
                number = int.from_bytes(content[place : place + 2], "little")
                size = int.from_bytes(content[place + 8 : place + 16], "little")
                step = 16 + -(-size // 8) * 8 if number else size
                if step < 16 or place + step > end:
                    return False
                place += step
            start = content.find(_TEXTS, start + 1)
    return True


def _refuse_foreign(file: Any, path: Path, *, manifest: Manifest, shard: Shard) -> None:  # noqa: ANN401
    for key, expected in _identify(manifest, shard).items():
        found = file.attrs[key]
        if np.array_equal(found, expected):
            continue
        if key == "identity":
            raise InputError(
                f"{path} belongs to other data than the manifest beside it: move it away or "
                f"{_REMEDY}"
            )
        raise InputError(
            f"{path} has `{key}` {found} where the manifest has {expected}, as if renamed: "
            f"{_REMEDY}"
        )


def _refuse_references(file: Any, path: Path) -> None:  # noqa: ANN401
    """Refuses links to other places, and datasets whose bytes are in other files."""
    import h5py

    for name in file:
        if not isinstance(file.get(name, getlink=True), h5py.HardLink):
            raise InputError(f"{path} has `{name}` as a link to another place: {_REMEDY}")
        found = file[name]
        if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
            raise InputError(f"{path} has the bytes of `{name}` in another file: {_REMEDY}")


def _describe(found: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Shape and type of what stands under each name; a group in a dataset's place has neither."""
    return {
        name: (getattr(found[name], "shape", None), getattr(found[name], "dtype", None))
        for name in found
    }


def _find_mismatch(found: Mapping[str, tuple[Any, Any]], expected: Layout) -> str | None:
    if set(found) != set(expected):
        return f"datasets {sorted(found)} where {sorted(expected)} are required"
    for name, (shape, dtype) in expected.items():
        if found[name] != (shape, dtype):
            there = f"{found[name][1]} {found[name][0]}"
            return f"`{name}` of {there} where {dtype} {shape} is required"
    return None
