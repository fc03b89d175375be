"""One shard: an HDF5 file with a block of one split, written whole or not at all.

    trajectories   microstates (n r, F, *shape)   macrostates (n r, F, m)    labels (n r,)
    references     initial     (n, *shape)        macrostates (n, N, F, m)   labels (n,)

for n initial microstates with r runs each, the runs of one microstate one after another.
Attributes say what it belongs to (identity, split, start, count), how it was made (seed, kernel,
code_version) and its checksum, a SHA-256 over names, types, shapes and bytes of the datasets.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..files import replacing
from ..version import __version__
from .manifest import Manifest, Shard

__all__ = ["Arrays", "check_header", "empty_arrays", "encode_labels", "read_shard", "write_shard"]

Arrays = dict[str, NDArray[Any]]
"""The datasets of a shard, or of a whole split, by name."""

_LABEL_BYTES = 64
# What `h5py.string_dtype("utf-8", 64)` gives: NumPy has no mark of its own for UTF-8.
_LABEL: np.dtype[np.bytes_] = np.dtype(f"S{_LABEL_BYTES}", metadata={"h5py_encoding": "utf-8"})
_REMEDY = "delete it and run `tampl simulate` again"


def empty_arrays(manifest: Manifest, split: str, count: int) -> Arrays:
    """Allocates the datasets that belong to `count` initial microstates of `split`."""
    description, members = manifest.description, manifest.splits[split].members
    shape, dtype = description.microstate.shape, description.microstate.dtype
    series = (description.frames, len(description.observables))
    rows = count * manifest.splits[split].runs
    labels = np.empty(rows, _LABEL)
    if members:
        return {
            "initial": np.empty((count, *shape), dtype),
            "macrostates": np.empty((count, members, *series)),
            "labels": labels,
        }
    return {
        "microstates": np.empty((rows, description.frames, *shape), dtype),
        "macrostates": np.empty((rows, *series)),
        "labels": labels,
    }


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
    """Writes a shard; it appears under its name only when it is complete and on the disk."""
    import h5py

    fault = _unlike(arrays, empty_arrays(manifest, shard.split, shard.count))
    if fault:
        raise InputError(f"`{manifest.description.system}` made {fault}: correct the system")
    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array.astype(_LABEL) if name == "labels" else array)
        file.attrs.update(_belongs(manifest, shard))
        file.attrs.update(_made_by(manifest))
        file.attrs["checksum"] = _checksum(arrays)


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
    arrays = into if into is not None else empty_arrays(manifest, shard.split, shard.count)
    with _opened(path) as file:
        _refuse_foreign(file, path, manifest=manifest, shard=shard)
        _refuse_unlike(file, arrays, path)
        for name, array in arrays.items():
            file[name].read_direct(array)
        if verify and file.attrs["checksum"] != _checksum(arrays):
            raise InputError(
                f"{path} is damaged: its content differs from its checksum: {_REMEDY}"
            )
    return arrays


def read_macrostates(path: Path, *, manifest: Manifest, shard: Shard) -> NDArray[np.float64]:
    """Reads the macrostates of a shard alone, with the same refusals."""
    with _opened(path) as file:
        _refuse_foreign(file, path, manifest=manifest, shard=shard)
        _refuse_unlike(file, empty_arrays(manifest, shard.split, shard.count), path)
        return file["macrostates"][()]


def check_header(path: Path, *, manifest: Manifest, shard: Shard) -> None:
    """Refuses what `read_shard` would refuse without reading the data."""
    with _opened(path) as file:
        _refuse_foreign(file, path, manifest=manifest, shard=shard)
        _refuse_unlike(file, empty_arrays(manifest, shard.split, shard.count), path)


def _belongs(manifest: Manifest, shard: Shard) -> dict[str, str | int]:
    return {
        "identity": manifest.identity,
        "split": shard.split,
        "start": shard.start,
        "count": shard.count,
    }


def _made_by(manifest: Manifest) -> dict[str, str | int]:
    return {"seed": manifest.seed, "kernel": manifest.kernel, "code_version": __version__}


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
    try:
        # A shard never changes once it is there, so that it needs no lock: read-only and network
        # file systems often have none.
        with h5py.File(path, "r", locking=False) as file:
            yield file
    except PermissionError as error:
        raise InputError(f"{path} cannot be read: give yourself the right to read it") from error
    except (OSError, KeyError, RuntimeError) as error:
        raise InputError(f"{path} is truncated or not a shard ({error}): {_REMEDY}") from error


def _refuse_foreign(file: Any, path: Path, *, manifest: Manifest, shard: Shard) -> None:  # noqa: ANN401
    for key, expected in _belongs(manifest, shard).items():
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


def _refuse_unlike(file: Any, expected: Arrays, path: Path) -> None:  # noqa: ANN401
    fault = _unlike(file, expected)
    if fault:
        raise InputError(f"{path} has {fault}: {_REMEDY}")


def _unlike(found: Mapping[str, Any], expected: Arrays) -> str | None:
    if set(found) != set(expected):
        return f"datasets {sorted(found)} where {sorted(expected)} are required"
    for name, array in expected.items():
        # A group in the place of a dataset has neither.
        shape, dtype = getattr(found[name], "shape", None), getattr(found[name], "dtype", None)
        if shape != array.shape or dtype != array.dtype:
            return f"`{name}` of {dtype} {shape} where {array.dtype} {array.shape} is required"
    return None
