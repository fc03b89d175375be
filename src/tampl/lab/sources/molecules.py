"""Trajectories of atoms and particles in the formats that MDAnalysis reads.

XTC, TRR, DCD and others hold coordinates alone, and a topology names their atoms; GSD, XYZ, PDB,
and the dumps and data files of LAMMPS say all by themselves. Only selected atoms are kept.

A molecule (`--molecule`) becomes a vector x1, y1, z1, x2, ...: its atoms keep their order, and
every frame is centred and rotated onto the first frame of the first file, which a rigid motion
cannot tell from the original (Kabsch's problem, solved by MDAnalysis). All atoms weigh the same.
Molecules that are broken at the edge of a periodic box must be made whole before.

All other selections are fluids, sets of particles with types in a box. Along periodic axes
positions are taken into the box; between walls (`--closed`) they must be in it.

References:
    Theobald, Rapid calculation of RMSDs using a quaternion-based characteristic polynomial, Acta
    Crystallographica A 61, 478-480 (2005).
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .extras import load_extra
from .tracks import Piece, Reading, Track, read_edges, refuse_damage

__all__ = ["MD_SUFFIXES", "align", "read_molecules"]

MD_SUFFIXES = {
    **{f".{name}": None for name in ("xtc", "trr", "dcd", "gsd", "xyz", "pdb", "gro", "trj")},
    **{f".{name}": None for name in ("ncdf", "mdcrd", "h5md", "tng", "arc", "history")},
    ".lammpstrj": "LAMMPSDUMP",
    ".lammpsdump": "LAMMPSDUMP",
    ".dump": "LAMMPSDUMP",
    ".data": "DATA",
}
"""Ends of the names of files that are taken for trajectories of atoms, with MDAnalysis' format
where it is not the end itself."""

_DAMAGES = (ValueError, OSError, TypeError, IndexError, KeyError, EOFError, RuntimeError)
"""What the readers of the formats raise for damaged files."""

_UNTIMED = ("XYZ", "LAMMPSDUMP", "DATA", "GSD", "PDB", "GRO", "ARC", "MDCRD", "TRJ")
"""Formats that count frames or steps, to which MDAnalysis gives a picosecond each."""

_LABELS = ("names", "elements", "types")
_RIGHT, _SKEW = 90.0, 1e-3


def read_molecules(text: str, reading: Reading) -> list[Track]:
    """The one track of a trajectory file."""
    path = Path(text)
    if not path.is_file():
        raise InputError(f"{path} does not exist: give the path of an existing file")
    universe = _open_universe(path, reading)
    atoms = _select(universe, reading, path)
    types = None if reading.molecule else _read_types(atoms, reading, path)
    trajectory = universe.trajectory
    counts = str(trajectory.format).upper() in _UNTIMED

    def read(frames: range) -> Piece:
        x, boxes, times = [], [], []
        with _quiet(path):
            for ts in trajectory[frames.start : frames.stop : frames.step]:
                x.append(atoms.positions.astype(np.float64))
                boxes.append(None if ts.dimensions is None else np.array(ts.dimensions))
                times.append(ts.data.get("step") if counts else ts.time)
        positions, known = np.stack(x), all(time is not None for time in times)
        dim = len(reading.axes)
        return Piece(
            positions[..., :dim],
            np.array(times, np.float64) if known else None,
            types=types,
            box=None if reading.molecule else _read_boxes(boxes, reading, path),
        )

    unit = "" if counts else "ps"
    return [Track(str(path), path, len(trajectory), read, time_unit=unit, counts_steps=counts)]


def align(x: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
    """Frames (F, N, 3), centred and each rotated onto a centred reference (N, 3)."""
    rotation_matrix = load_extra("md", "MDAnalysis.analysis.align").rotation_matrix
    centred = x - x.mean(axis=1, keepdims=True)
    turned = [frame @ rotation_matrix(frame, reference)[0].T for frame in centred]
    return np.stack(turned)


def _open_universe(path: Path, reading: Reading) -> Any:  # noqa: ANN401
    mda = load_extra("md", "MDAnalysis")
    form = MD_SUFFIXES.get(path.suffix.lower())
    if reading.topology is not None and not reading.topology.is_file():
        raise InputError(f"`--topology` is {reading.topology}, which does not exist")
    with _quiet(path):
        try:
            if reading.topology is None:
                return mda.Universe(str(path), format=form, topology_format=form)
            kind = MD_SUFFIXES.get(reading.topology.suffix.lower())
            return mda.Universe(
                str(reading.topology), str(path), format=form, topology_format=kind
            )
        except _DAMAGES as error:
            reason = " ".join(str(error).split())
            remedy = (
                "; formats of coordinates alone need `--topology`, such as a GRO, PDB or PSF file"
                if reading.topology is None
                else ""
            )
            raise InputError(f"{path} cannot be read ({reason}){remedy}") from error


def _select(universe: Any, reading: Reading, path: Path) -> Any:  # noqa: ANN401
    selection_error = load_extra("md", "MDAnalysis.exceptions").SelectionError
    with _quiet(path):
        try:
            atoms = universe.select_atoms(reading.select)
        except (selection_error, AttributeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"`--select` is {reading.select!r}, which is no selection of MDAnalysis for "
                f"{path} ({reason})"
            ) from error
    if not len(atoms):
        raise InputError(
            f"`--select` is {reading.select!r}, which selects none of the "
            f"{len(universe.atoms)} atoms in {path}"
        )
    return atoms


def _read_types(atoms: Any, reading: Reading, path: Path) -> NDArray[Any]:  # noqa: ANN401
    if reading.types is None:
        return np.ones(len(atoms), dtype=np.int64)
    if reading.types not in _LABELS:
        raise InputError(f"`--types` is {reading.types!r}; of atoms give names, elements or types")
    no_data = load_extra("md", "MDAnalysis.exceptions").NoDataError
    with _quiet(path):
        try:
            labels = getattr(atoms, reading.types)
        except (no_data, AttributeError) as error:
            raise InputError(
                f"`--types` is {reading.types!r}, and {path} has no {reading.types} of its atoms: "
                "choose another of names, elements and types, or give a `--topology`"
            ) from error
    labels = np.asarray(labels).astype(str)
    if (labels == "").any():
        raise InputError(
            f"{path}: atom {int((labels == '').argmax())} has no name among `--types "
            f"{reading.types}`; choose another of names, elements and types"
        )
    return labels


def _read_boxes(boxes: list[Any], reading: Reading, path: Path) -> NDArray[np.float64] | None:
    dim = len(reading.axes)
    if reading.box is not None:
        edges = read_edges(reading.box)
        if edges is None or edges.shape != (dim,):
            raise InputError(
                f"`--box` is {reading.box!r}; give {dim} edges as numbers, such as "
                f"{','.join(['32'] * dim)}"
            )
        return np.tile(edges, (len(boxes), 1))
    if any(box is None for box in boxes):
        return None
    stacked = np.stack([np.asarray(box, np.float64) for box in boxes])
    if np.abs(stacked[:, 3:] - _RIGHT).max() > _SKEW and (stacked[:, :3] > 0).all():
        raise InputError(
            f"{path} has a box with angles {stacked[0, 3:].tolist()}; boxes of particles must be "
            "rectangular"
        )
    return stacked[:, :dim]


@contextmanager
def _quiet(path: Path) -> Iterator[None]:
    """Keeps the remarks of MDAnalysis to itself, and turns a damaged frame into one line."""
    with warnings.catch_warnings(), refuse_damage(str(path)):
        warnings.simplefilter("ignore")
        yield
