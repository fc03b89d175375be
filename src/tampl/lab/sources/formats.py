"""The formats of trajectories, and how one is recognised by the name of a file."""

from collections.abc import Callable, Mapping

from ...errors import InputError
from .arrays import ARRAY_SUFFIXES, read_arrays, read_parquet
from .molecules import MD_SUFFIXES, read_molecules
from .pictures import PICTURES, read_pictures
from .tracks import Reading, Track, refuse_missing, split_address

__all__ = ["FORMATS", "recognise_format"]

FORMATS: Mapping[str, Callable[[str, Reading], list[Track]]] = {
    "numpy": read_arrays,
    "hdf5": read_arrays,
    "zarr": read_arrays,
    "netcdf": read_arrays,
    "parquet": read_parquet,
    "pictures": read_pictures,
    "md": read_molecules,
}
"""Every format by its name: from an argument of the command line to the tracks that it names."""

_SUFFIXES = {
    **{".npy": "numpy", ".npz": "numpy", ".h5": "hdf5", ".hdf5": "hdf5"},
    **{".zarr": "zarr", ".nc": "netcdf", ".parquet": "parquet"},
    **dict.fromkeys(PICTURES, "pictures"),
    **dict.fromkeys(MD_SUFFIXES, "md"),
}
assert ARRAY_SUFFIXES.keys() <= _SUFFIXES.keys()


def recognise_format(text: str) -> str:
    """The format of a file or folder, by its name; refuses one that does not exist."""
    path, _ = split_address(text)
    refuse_missing(path)
    known = _SUFFIXES.get(path.suffix.lower())
    if known is None and path.is_dir():
        known = "pictures"
    if known is None:
        raise InputError(
            f"{path} is of a format that its name does not tell: say `--format`, one of "
            f"{', '.join(FORMATS)}"
        )
    return known
