"""Files that appear only when they are complete, and folders with one writer at a time.

A file is written under a temporary name in its own folder, flushed to the disk and renamed. What a
killed process leaves behind has a temporary name, and `sweep` removes it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InputError

__all__ = ["claimed", "is_temporary", "replacing", "sweep"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path to write to; renames it to `path` if the block ends well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Holds `folder` against other processes that claim it; the claim ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def is_temporary(path: Path) -> bool:
    """Whether `path` is named as an unfinished file of `replacing`."""
    return path.name.startswith(".") and path.suffix == ".tmp"


def sweep(folder: Path) -> None:
    """Removes the unfinished files of dead runs; the caller has claimed the folder."""
    for path in folder.iterdir():
        if is_temporary(path):
            path.unlink(missing_ok=True)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"another run is writing to {folder}: wait for it to end or choose another folder"
        ) from error
    except OSError:
        # Some network file systems lock no folders. Two writers then do the same work twice, and
        # still every file is complete, because each has its own temporary names.
        pass


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
