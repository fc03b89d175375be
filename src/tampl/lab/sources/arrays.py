"""Arrays in files: NumPy, HDF5, Zarr, NetCDF and parquet, named by an address.

    x.npy                 the array
    runs.npz:x            an array of several; `x`, or the only one, by default
    runs.h5:/traj/x       a dataset; with `*` in its path all that match, in natural order
    runs.zarr:traj/x      the same
    runs.nc:x             a variable, with its dimension `time` (and its coordinate) if it has one
    runs.parquet:x        a column of matrices, a trajectory in each row; times in the column `t`

Arrays are read piece by piece: `.npy` files are mapped into memory, the members of an `.npz` are
unpacked to a temporary file that is. Nothing is ever unpickled.
"""

import shutil
import tempfile
import tokenize
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.parquet import count_rows, read_rows
from ...errors import InputError
from .extras import load_extra
from .order import natural_key
from .tracks import Beside, Reading, Track, cut_tracks, read_edges, refuse_missing, split_address

__all__ = ["ARRAY_SUFFIXES", "fill_in", "open_array", "read_arrays", "read_parquet"]

_DAMAGES = (ValueError, OSError, EOFError, KeyError, TypeError, SyntaxError, tokenize.TokenError)


@dataclass(frozen=True)
class Found:
    """An array in a file, which is read where it is cut.

    Attributes:
        name: What a message calls it.
        array: Anything with a shape and a type that is cut like an array.
        times: Of its frames, where the file names them.
        stacked: Whether its first axis is that of the trajectories, where the file says so.
    """

    name: str
    array: Any
    times: NDArray[Any] | None = None
    stacked: bool | None = None


def read_arrays(text: str, reading: Reading) -> list[Track]:
    """The tracks of all arrays that an address names."""
    path, _ = split_address(text)
    tracks: list[Track] = []
    for found in _find_arrays(text):
        tracks += cut_tracks(
            found.array,
            found.name,
            path,
            reading=reading,
            beside=_find_beside(reading, path, found.times),
            stacked=found.stacked,
        )
    return tracks


def _find_beside(reading: Reading, path: Path, times: NDArray[Any] | None) -> Beside:
    def load(text: str) -> NDArray[Any]:
        return np.asarray(open_array(fill_in(text, path)))

    box = None if reading.box is None else read_edges(reading.box)
    if reading.box is not None and box is None:
        box = load(reading.box).astype(np.float64)
    return Beside(
        times=times if reading.times is None else load(reading.times).astype(np.float64),
        types=None if reading.types is None else load(reading.types),
        box=box,
    )


def fill_in(text: str, path: Path) -> str:
    """An address that may speak of the trajectory's file: `{file}:y` or `{stem}.csv`.

    Example:
        >>> fill_in("{stem}.csv", Path("runs/a.npy"))
        'runs/a.csv'
    """
    return text.replace("{file}", str(path)).replace("{stem}", str(path.with_suffix("")))


def open_array(text: str) -> Any:  # noqa: ANN401
    """The one array that an address names."""
    found = _find_arrays(text)
    if len(found) > 1:
        raise InputError(f"{text} names {len(found)} arrays; give the name of one")
    return found[0].array


def _find_arrays(text: str) -> list[Found]:
    path, inner = split_address(text)
    refuse_missing(path)
    find = ARRAY_SUFFIXES.get(path.suffix.lower())
    if find is None:
        known = ", ".join(ARRAY_SUFFIXES)
        raise InputError(f"{path} is no file of arrays; such files end in {known}")
    try:
        return find(path, inner)
    except InputError:
        raise
    except _DAMAGES as error:
        reason = " ".join(str(error).split())
        if "pickle" in reason or "Python objects" in reason:
            raise InputError(
                f"{path} holds Python objects, and reading them would run code: save an array of "
                "numbers, trajectories of different lengths in files of their own"
            ) from error
        raise InputError(f"{path} cannot be read as {path.suffix} ({reason})") from error


def _find_npy(path: Path, inner: str | None) -> list[Found]:
    if inner is not None:
        raise InputError(f"{path} holds one array; leave out `:{inner}`")
    return [Found(str(path), np.load(path, mmap_mode="r", allow_pickle=False))]


def _find_npz(path: Path, inner: str | None) -> list[Found]:
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
    inner = _choose(path, inner, names)
    return [Found(f"{path}:{inner}", _unpack(path, inner, path.stat().st_mtime_ns))]


@lru_cache(maxsize=16)
def _unpack(path: Path, name: str, version: int) -> NDArray[Any]:
    """A member of an archive, mapped from a temporary file that has no name any more."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / "member.npy"
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as member:
            with unpacked.open("wb") as file:
                shutil.copyfileobj(member, file)
        return np.load(unpacked, mmap_mode="r", allow_pickle=False)


def _find_hdf5(path: Path, inner: str | None) -> list[Found]:
    import h5py

    file = h5py.File(path, "r")
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if _is_dataset(item) else None)
    return [Found(f"{path}:/{name}", file[name]) for name in _choose_several(path, inner, names)]


def _is_dataset(item: Any) -> bool:  # noqa: ANN401
    return hasattr(item, "dtype")


def _find_zarr(path: Path, inner: str | None) -> list[Found]:
    zarr = load_extra("zarr", "zarr")
    root = zarr.open(path, mode="r")
    if not hasattr(root, "members"):
        if inner:
            raise InputError(f"{path} is a single array; leave out `:{inner}`")
        return [Found(str(path), root)]
    members = dict(root.members(max_depth=None))
    names = [name for name, item in members.items() if _is_dataset(item)]
    return [Found(f"{path}:{name}", root[name]) for name in _choose_several(path, inner, names)]


def _find_netcdf(path: Path, inner: str | None) -> list[Found]:
    xarray = load_extra("xarray", "xarray", "h5netcdf")
    data = xarray.open_dataset(path, decode_times=False)
    name = _choose(path, inner, [str(name) for name in data.data_vars])
    variable = data[name]
    array = _Lazy(variable)
    if "time" not in variable.dims:
        return [Found(f"{path}:{name}", array)]
    place = variable.dims.index("time")
    if place > 1:
        raise InputError(
            f"{path}:{name} has the dimensions {variable.dims}; `time` must be the first, or the "
            "second after that of the trajectories"
        )
    times = np.asarray(data["time"]) if "time" in data.coords else None
    return [Found(f"{path}:{name}", array, times=times, stacked=place == 1)]


class _Lazy:
    """A variable of xarray that is read where it is cut."""

    def __init__(self, variable: Any) -> None:  # noqa: ANN401
        self.variable, self.shape, self.dtype = variable, variable.shape, variable.dtype

    def __getitem__(self, where: Any) -> NDArray[Any]:  # noqa: ANN401
        return np.asarray(self.variable[where])


def _choose(path: Path, inner: str | None, names: list[str]) -> str:
    found = _choose_several(path, inner, names)
    if len(found) > 1:
        raise InputError(f"{path}:{inner} names {len(found)} arrays; give the name of one")
    return found[0]


def _choose_several(path: Path, inner: str | None, names: list[str]) -> list[str]:
    """The arrays of a file that an address means; `x` or the only one where it names none."""
    if not names:
        raise InputError(f"{path} holds no arrays")
    known = ", ".join(sorted(names)[:8])
    if inner is None:
        if "x" in names or len(names) == 1:
            return ["x" if "x" in names else names[0]]
        raise InputError(f"{path} holds several arrays ({known}): say which, as in {path}:NAME")
    found = [name for name in names if fnmatch(name, inner.strip("/"))]
    if not found:
        raise InputError(f"{path} has no array `{inner}`; it holds {known}")
    return sorted(found, key=natural_key)


ARRAY_SUFFIXES: dict[str, Callable[[Path, str | None], list[Found]]] = {
    ".npy": _find_npy,
    ".npz": _find_npz,
    ".h5": _find_hdf5,
    ".hdf5": _find_hdf5,
    ".zarr": _find_zarr,
    ".nc": _find_netcdf,
}
"""How the arrays of a file are found, by the end of its name."""


def read_parquet(text: str, reading: Reading) -> list[Track]:
    """The tracks of a column of matrices, one in each row."""
    path, inner = split_address(text)
    if not path.is_file():
        raise InputError(f"{path} does not exist: give the path of an existing file")
    columns = [inner or "x", *([reading.times] if reading.times else [])]
    rows = _Rows(path, columns)
    tracks: list[Track] = []
    for number in range(count_rows([path], columns)):
        [x, *times] = rows[number]
        cut = cut_tracks(
            _Row(rows, number, x.shape, x.dtype),
            f"{path}, row {number}",
            path,
            reading=reading,
            beside=Beside(times=times[0].ravel() if times else None),
            stacked=False,
        )
        tracks += [Track(t.name, t.file, t.frames, t.read, place=number) for t in cut]
    return tracks


class _Rows:
    """The rows of a file, read in order; going back begins at the first again."""

    def __init__(self, path: Path, columns: list[str]) -> None:
        self.path, self.columns = path, columns
        self.number, self.row = -1, list[NDArray[Any]]()
        self.rows: Iterator[tuple[str, list[NDArray[Any]]]] = iter(())

    def __getitem__(self, number: int) -> list[NDArray[Any]]:
        if number < self.number or self.number < 0:
            self.rows, self.number = read_rows([self.path], self.columns), -1
        while self.number < number:
            _, self.row = next(self.rows)
            self.number += 1
        return self.row


class _Row:
    """The matrix of a row, which is read again where it is cut."""

    def __init__(
        self, rows: _Rows, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.rows, self.number, self.shape, self.dtype = rows, number, shape, dtype

    def __getitem__(self, where: slice) -> NDArray[Any]:
        return self.rows[self.number][0][where]
