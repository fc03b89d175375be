"""Linear systems as files: NumPy archives with the matrices by their names.

A, C and Sigma, and either a realisation B, D, K or only the latent dimension d.
"""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ...errors import InputError
from ..linear import LinearSystem, Realisation, Weights
from ..updates import Round
from .gathering import Finding, certify, certify_dimension

__all__ = ["certify_file", "read_system"]

SYSTEM, MODEL = ("A", "C", "Sigma"), ("B", "D", "K")


def read_system(path: str | Path) -> tuple[LinearSystem, Realisation | int]:
    """Reads a system with its realisation, or with its latent dimension where it has none.

    Arguments:
        path: The archive, as `numpy.savez` writes it.
    """
    arrays = _read_arrays(Path(path))
    if missing := [name for name in SYSTEM if name not in arrays]:
        raise InputError(f"{path} lacks `{'`, `'.join(missing)}`; give A, C and Sigma")
    system = LinearSystem(*(arrays[name] for name in SYSTEM))
    if present := [name for name in MODEL if name in arrays]:
        if len(present) < len(MODEL):
            raise InputError(f"{path} has only {present} of a realisation; give B, D and K, or d")
        model = Realisation(*(arrays[name] for name in MODEL))
        if "d" in arrays and _dimension(arrays, path) != model.latent_dim:
            raise InputError(
                f"`d` = {arrays['d'].item()} must be {model.latent_dim}, the rows of `B`"
            )
        return system, model
    return system, _dimension(arrays, path)


def certify_file(
    path: str | Path, *, weights: Weights, steps: Round, partial: bool = False
) -> tuple[Finding, ...]:
    """Gathers every certificate of what is in a file.

    Arguments:
        path: The archive, as `numpy.savez` writes it.
        weights: The weights of the losses.
        steps: The round of TAMPL in question.
        partial: As in `certify`.
    """
    system, model = read_system(path)
    if isinstance(model, Realisation):
        return certify(system, model, weights=weights, steps=steps, partial=partial)
    return certify_dimension(system, model, weights=weights, steps=steps)


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    wrong = f"{path} is no archive of arrays; write one with `numpy.savez`"
    try:
        # Opened here, because NumPy leaves a file open that turns out to be no archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, BadZipFile, AttributeError, TypeError) as error:
        raise InputError(wrong) from error
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"`{name}` in {path} must be real numbers; its type is {array.dtype}")
    if unknown := sorted(set(arrays) - {*SYSTEM, *MODEL, "d"}):
        raise InputError(f"{path} has unknown arrays {unknown}; names are A, C, Sigma, B, D, K, d")
    return arrays


def _dimension(arrays: dict[str, np.ndarray], path: str | Path) -> int:
    d = arrays.get("d")
    if d is None:
        raise InputError(f"{path} has no realisation; give B, D and K, or the dimension d")
    if d.size != 1 or not float(d.item()).is_integer():
        raise InputError(f"`d` must be one whole number; it is {d.tolist()}")
    return int(d.item())
