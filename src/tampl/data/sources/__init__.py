"""Stores made of data in foreign formats, by the name of the format."""

from collections.abc import Callable
from pathlib import Path

from ...errors import InputError
from ..store import Store
from .polymer import import_polymer

__all__ = ["SOURCES", "import_polymer", "import_store"]

SOURCES: dict[str, Callable[[Path, Path], Store]] = {"polymer-parquet": import_polymer}


def import_store(source: str, folder: str | Path, out: str | Path) -> Store:
    """Makes a store of foreign data.

    Arguments:
        source: Name of the format, one of `SOURCES`.
        folder: Where the data are.
        out: The folder of the store, new or empty.
    """
    if source not in SOURCES:
        raise InputError(f"`source` is {source!r}; formats are {', '.join(SOURCES)}")
    return SOURCES[source](Path(folder), Path(out))
