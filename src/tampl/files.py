"""Files that appear only when they are complete, folders with one writer at a time, and JSON.

A file is written under a temporary name in its own folder, flushed to the disk and renamed. What a
killed process leaves behind has a temporary name, and `remove_unfinished` removes it.
"""

import fcntl
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import InputError

__all__ = [
    "claimed",
    "is_temporary",
    "read_json",
    "remove_unfinished",
    "replacing",
    "strict_json",
    "write_json",
    "write_texts",
]


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


def remove_unfinished(folder: Path) -> None:
    """Removes the unfinished files of dead processes; the caller has claimed the folder."""
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


def write_json(path: Path, content: object) -> None:
    """Writes JSON, complete or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")


def read_json(path: Path, remedy: str) -> Any:  # noqa: ANN401
    """The content of a file of JSON; one that is missing or damaged is refused.

    Arguments:
        path: The file.
        remedy: What to do about it then.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; {remedy}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}); {remedy}") from error


def strict_json(value: object, *, indent: int | None = None) -> str:
    """Plain data as JSON that any reader takes: null stands for what is not finite.

    Example:
        >>> strict_json({"rmse": float("nan"), "epochs": [1, 2]})
        '{"rmse": null, "epochs": [1, 2]}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes files by name, each complete or not at all."""
    for name, text in texts.items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
