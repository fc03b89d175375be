"""Stores made of data in foreign formats.

A folder of a published data set, `PUBLISHED`, becomes a store by a function of its own. All other
files are trajectories with observables: `FORMATS` reads them as tracks, and `import_trajectories`
makes a store of those.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from ...data.store import Store
from ...errors import InputError
from .formats import FORMATS
from .importing import ImportSpec, import_trajectories
from .polymer import import_polymer
from .splits import SplitSpec
from .tracks import Reading

__all__ = [
    "FORMATS",
    "PUBLISHED",
    "ImportSpec",
    "Reading",
    "SplitSpec",
    "import_polymer",
    "import_store",
    "import_trajectories",
]

PUBLISHED: Mapping[str, Callable[[Path, Path], Store]] = {"polymer-parquet": import_polymer}
"""How a published data set becomes a store, by the name of its format."""


def import_store(spec: ImportSpec, out: str | Path, *, progress: bool = True) -> Store:
    """Makes a store of foreign data, or what is missing of it.

    Arguments:
        spec: What to import.
        out: The folder of the store.
        progress: Whether to show bars on standard error.
    """
    if spec.format is not None and spec.format in PUBLISHED:
        if len(spec.files) > 1:
            raise InputError(
                f"`--format` is {spec.format!r}, which is one folder, and {len(spec.files)} are "
                "given: give that folder alone"
            )
        return PUBLISHED[spec.format](Path(spec.files[0]), Path(out))
    if spec.format is not None and spec.format not in FORMATS:
        names = ", ".join([*FORMATS, *PUBLISHED])
        raise InputError(f"`--format` is {spec.format!r}; choose one of {names}")
    return import_trajectories(spec, out, progress=progress)
