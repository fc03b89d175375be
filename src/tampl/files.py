"""Files that appear only when they are complete, folders with one writer, JSON and archives.

A file is written under a temporary name in its own folder, flushed to the disk and renamed. A
temporary name is random, begins with `.tampl-` and belongs to a file that did not exist before, so
that no link is followed. What a killed process leaves behind has such a name, and
`remove_unfinished` removes it.

A folder is claimed by a lock on the file `.tampl.lock` in it. The lock belongs to the process and
ends with it; a lock file that a killed process leaves behind holds nobody up.
"""

import errno
import json
import math
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from filelock import FileLock, Timeout

from .errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "claimed",
    "flush",
    "is_temporary",
    "parse_json",
    "read_arrays",
    "read_json",
    "remove_unfinished",
    "replacing",
    "strict_json",
    "write_json",
    "write_texts",
]


LOCK = ".tampl.lock"

# The second pattern is that of versions before 0.2, by the names of the files that they wrote.
_TEMPORARY = re.compile(
    r"\.tampl-[0-9a-f]{32}\.tmp"
    r"|\.((manifest|run|provenance|history|evaluation|plan)\.json|recipe\.toml|cases\.npz"
    r"|(state|best|last)\.safetensors|[A-Za-z0-9_-]+-\d{5}\.h5)\.\d+\.tmp"
)

# Network file systems without locks answer so. Two writers then do the same work twice, and still
# every file is complete, because each has its own temporary names.
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)

_DEEPEST = 100
"""Levels of JSON; ours has fewer than ten."""

_MOST_UNPACKED, _MOST_TIMES = 2**30, 20
"""Bytes that any archive may unpack to; a larger one to so many times its own size."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary file to write to; renames it to `path` if the block ends well.

    A block that leaves the file empty is an error.
    """
    temporary = path.with_name(f".tampl-{secrets.token_hex(16)}.tmp")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield temporary
        if not temporary.stat().st_size:
            raise FileNotFoundError(errno.ENOENT, "nothing was written to it", str(path))
        flush(temporary)
        os.replace(temporary, path)
        _flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Holds `folder` against other processes that claim it; the claim ends with the process."""
    # A lock without the help of the system would outlive a killed process.
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise InputError(
            f"another run is writing to {folder}: wait for it to end or choose another folder"
        ) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        yield
    finally:
        if lock.is_locked:
            # Removed while it is held: who has opened it meanwhile finds that it has no name.
            with suppress(OSError):
                (folder / LOCK).unlink()
            lock.release()


def is_temporary(path: Path) -> bool:
    """Whether `path` is named as an unfinished file of `replacing`, or as a lock of `claimed`."""
    return path.name == LOCK or _TEMPORARY.fullmatch(path.name) is not None


def remove_unfinished(folder: Path) -> None:
    """Removes the unfinished files of dead processes; the caller has claimed the folder."""
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Waits until the content of a file is on the disk; raises what went wrong on the way."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows opens no folders, and renames durably
        return
    descriptor = os.open(folder, os.O_RDONLY)
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
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise InputError(f"{path} is no regular file; {remedy}")
    try:
        return parse_json(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; {remedy}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}); {remedy}") from error


def read_arrays(path: Path, remedy: str) -> "dict[str, NDArray[Any]]":
    """The arrays of an archive of `numpy.savez`; one that is missing or damaged is refused.

    Refused is also a small archive that would fill the memory once it is unpacked.

    Arguments:
        path: The file.
        remedy: What to do about it then.
    """
    import numpy as np

    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no regular file; {remedy}")
    try:
        # Opened here, because NumPy leaves a file open whose archive it cannot read.
        with path.open("rb") as file:
            with ZipFile(file) as archive:
                size = sum(member.file_size for member in archive.infolist())
            if size > max(_MOST_UNPACKED, _MOST_TIMES * path.stat().st_size):
                raise ValueError(f"it would unpack to {size / 2**30:,.1f} GiB")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; {remedy}") from error
    # Which one depends on the damaged byte: zlib, zipfile, tokenize and NumPy have their own.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is no archive of arrays ({reason}); {remedy}") from error


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401
    """The content of JSON, or ValueError for what is no JSON or nested more than 100 deep."""
    deep = f"nested more than {_DEEPEST} deep"
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError(deep) from None
    level = [content]
    for _ in range(_DEEPEST):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return content
    raise ValueError(deep)


def _parts(value: object) -> list[Any]:
    """The tables and lists directly within a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in inner if isinstance(part, dict | list)]


def strict_json(value: object, *, indent: int | None = None) -> str:
    """Plain data as JSON that any reader takes: null stands for what is not finite.

    Example:
        >>> strict_json({"rmse": float("nan"), "epochs": [1, 2]})
        '{"rmse": null, "epochs": [1, 2]}'
    """
    return json.dumps(_keep_finite(value), indent=indent, allow_nan=False)


def _keep_finite(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {key: _keep_finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_keep_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes files by name, each complete or not at all."""
    for name, text in texts.items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
