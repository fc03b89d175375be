"""Parquet files whose rows hold matrices, one trajectory a row.

A data set is a folder of files, and a split either all of those that are named after it, as in
`train-00000-of-00010.parquet`, or all in a folder of its name, as in `train/0000.parquet`. A
matrix is a list of lists. Only parquet is read: unpickling a file would run code from it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

from ..errors import InputError

__all__ = ["count_rows", "find_files", "read_rows"]

_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")


def find_files(folder: Path, split: str) -> list[Path]:
    """The files of a split, in order of their names.

    Raises:
        InputError: If there are none, or some in one layout and some in another, as in two copies
            of a data set, of which every trajectory would be read twice.
    """
    if not folder.is_dir():
        raise InputError(f"`folder` is {folder}, which is no folder: give that of the data set")
    found = sorted(path for path in folder.rglob("*.parquet") if _is_of_split(path, split))
    layouts = {(path.parent, _is_named_after(path, split)): path for path in found}
    if len(layouts) > 1:
        one, other = list(layouts.values())[:2]
        raise InputError(
            f"{folder} has the split `{split}` more than once, as {one.relative_to(folder)} and "
            f"as {other.relative_to(folder)}: keep one copy of the data set"
        )
    if found:
        return found
    pickles = [path for path in sorted(folder.rglob("*")) if path.suffix in _PICKLES]
    if pickles and not any(folder.rglob("*.parquet")):
        raise InputError(
            f"{pickles[0]} is pickled, and reading it would run whatever code is in it: get the "
            "parquet files of the data set, or write its arrays as parquet yourself"
        )
    raise InputError(
        f"{folder} has no parquet file of the split `{split}`, such as {split}-00000.parquet or "
        f"{split}/0000.parquet: download all splits"
    )


def count_rows(files: Sequence[Path], columns: Sequence[str]) -> int:
    """Rows of all files together; refuses a file that lacks one of the columns."""
    total = 0
    for path in files:
        with _open(path) as file:
            missing = [name for name in columns if name not in file.schema_arrow.names]
            if missing:
                raise InputError(
                    f"{path} has no column `{missing[0]}`, only {file.schema_arrow.names}; needed "
                    f"are {', '.join(columns)}"
                )
            total += file.metadata.num_rows
    return total


def read_rows(
    files: Sequence[Path], columns: Sequence[str]
) -> Iterator[tuple[str, list[NDArray[Any]]]]:
    """Yields every row: what to call it in a message, and a matrix for each column."""
    for path in files:
        with _open(path) as file:
            batches = file.iter_batches(batch_size=1, columns=list(columns))
            for number, batch in enumerate(batches):
                name = f"{path}, row {number}"
                yield name, [_matrix(batch.column(c)[0], f"{name}: `{c}`") for c in columns]


def _is_of_split(path: Path, split: str) -> bool:
    return _is_named_after(path, split) or path.parent.name == split


def _is_named_after(path: Path, split: str) -> bool:
    return path.stem == split or path.stem.startswith(f"{split}-")


def _open(path: Path) -> Any:  # noqa: ANN401
    pyarrow = _load_pyarrow()
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} is no parquet file ({error}): download it again") from error


def _load_pyarrow() -> ModuleType:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "reading parquet files needs pyarrow: run `pip install 'tampl[parquet]'`"
        ) from error
    return pyarrow


def _matrix(value: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    """A list of lists of equal length as an array, (rows, columns)."""
    try:
        # By the flat numbers: Python lists of a million of them would take seconds.
        flat = value.values.flatten().to_numpy(zero_copy_only=False)
        array = flat.reshape(len(value.values), -1)
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{name} is no list of rows of equal length") from error
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} holds {array.dtype}; it must hold numbers")
    return array
