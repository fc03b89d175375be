"""Tensors on disk: one safetensors file, its JSON header describing what the tensors are.

Never pickle: a checkpoint can be read without running code from it. A file appears by rename only
when it is complete. Its header carries a checksum, the SHA-256 of the rest of the header and of
names, types, shapes and bytes of the tensors; a file that differs from it is refused. Models of
formats from before there were checksums are read without.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ..errors import InputError
from ..files import parse_json, replacing
from ..progress import say
from ..version import __version__

__all__ = [
    "load_latest_tensors",
    "load_tensors",
    "previous_file",
    "refuse_unlike",
    "save_tensors",
    "take_prefixed",
]

# A file of a later format that lacks its checksum is damaged too.
_UNCHECKED = ("tampl-model-1", "tampl-model-2")

# Counters are single integers; whatever a network computes with is one of the others.
_REAL = (torch.float32, torch.float64)


def save_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    header: Mapping[str, Any],
    *,
    keep_previous: bool = False,
) -> None:
    """Writes tensors and a JSON header to one file, complete or not at all.

    Arguments:
        path: The file.
        tensors: The tensors by name.
        header: What they are, as plain data with a `format`.
        keep_previous: Whether to keep the file that is replaced as `previous_file(path)`.
    """
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    checked = {**header, "checksum": _compute_checksum(contiguous, header)}
    with replacing(path) as temporary:
        temporary.write_bytes(save(contiguous, metadata={"json": json.dumps(checked)}))
        if keep_previous and path.is_file():
            _keep(path, previous_file(path))


def load_tensors(path: Path, format_name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads what `save_tensors` wrote; refuses what is absent, damaged or of another format.

    Arguments:
        path: The file.
        format_name: The present format, such as `tampl-model-3`; formats of the same name with a
            lower number are read too.
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist; train a model first or give another folder")
    remedy = "restore it, or train again in a new folder"
    try:
        with safe_open(path, framework="pt") as file:
            header = parse_json((file.metadata() or {}).get("json", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, ValueError, TypeError, RuntimeError, OverflowError, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is damaged ({reason}); {remedy}") from error
    if not isinstance(header, dict):
        raise InputError(f"{path} is damaged (its header is no table); {remedy}")
    _refuse_other_format(path, header.get("format"), format_name)
    checksum = header.pop("checksum", None)
    if checksum is None and header["format"] not in _UNCHECKED:
        raise InputError(f"{path} is damaged (it lacks its checksum); {remedy}")
    if checksum is not None and checksum != _compute_checksum(tensors, header):
        raise InputError(f"{path} is damaged (it differs from its checksum); {remedy}")
    for name, tensor in tensors.items():
        if tensor.dtype not in _REAL and (tensor.dtype != torch.int64 or tensor.ndim):
            raise InputError(
                f"{path} holds `{name}` as {tensor.dtype} of shape {tuple(tensor.shape)}; tensors "
                f"are float32 or float64, and counters single integers of 64 bits: {remedy}"
            )
    try:
        return tensors, _UPGRADES.get(header["format"], dict)(header)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged (its header lacks {error}); {remedy}") from error


def load_latest_tensors(path: Path, format_name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a file that was saved with `keep_previous`, or the one before it if it is damaged.

    Where both are damaged, the error is about the later one.
    """
    try:
        return load_tensors(path, format_name)
    except InputError as error:
        previous = previous_file(path)
        try:
            found = load_tensors(previous, format_name)
        except InputError:
            raise error from None
        say(f"{error}: {previous.name}, the checkpoint before it, is taken")
        return found


def previous_file(path: Path) -> Path:
    """Where the file that was replaced last is kept.

    Example:
        >>> previous_file(Path("state.safetensors")).name
        'state.previous.safetensors'
    """
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def refuse_unlike(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], what: str) -> None:
    """Refuses tensors whose names, shapes or types are not those expected.

    Arguments:
        found: The tensors by name.
        expected: Tensors like those that are needed.
        what: What they are of, the beginning of the message.
    """
    if missing := sorted(expected.keys() - found.keys()):
        raise InputError(f"{what} lacks `{missing[0]}`")
    if unknown := sorted(found.keys() - expected.keys()):
        raise InputError(f"{what} has an unknown tensor `{unknown[0]}`")
    for name, value in expected.items():
        other = found[name]
        if (other.shape, other.dtype) != (value.shape, value.dtype):
            raise InputError(
                f"{what} has `{name}` as {other.dtype} of shape {tuple(other.shape)}, where "
                f"{value.dtype} of shape {tuple(value.shape)} is needed"
            )


def _compute_checksum(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> str:
    # Through JSON and back, as the reader will see it.
    plain = json.loads(json.dumps(header))
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _keep(path: Path, previous: Path) -> None:
    """Gives a file a second name, in one step."""
    temporary = path.with_name(f".tampl-{secrets.token_hex(16)}.tmp")
    try:
        try:
            os.link(path, temporary)
        except OSError:  # a file system without hard links
            shutil.copyfile(path, temporary)
        os.replace(temporary, previous)
    finally:
        temporary.unlink(missing_ok=True)


def _refuse_other_format(path: Path, found: object, wanted: str) -> None:
    name, _, number = wanted.rpartition("-")
    match = re.fullmatch(
        rf"{re.escape(name)}-([1-9]\d{{0,5}})", found if type(found) is str else ""
    )
    if match is None:
        raise InputError(
            f"{path} has format {found!r}, not {wanted!r}; it was not written by this version of "
            f"tampl ({__version__})"
        )
    if int(match[1]) > int(number):
        raise InputError(
            f"{path} has format {found!r}, and this version of tampl ({__version__}) reads up to "
            f"{wanted!r}; install a newer tampl, or train again in a new folder"
        )


def _upgrade_model_1(header: dict[str, Any]) -> dict[str, Any]:
    """Models of the first format had one kind of readout, which had no name."""
    spec = header["spec"]
    return {**header, "spec": {**spec, "readout": {"name": "mlp", **spec["readout"]}}}


_UPGRADES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "tampl-model-1": _upgrade_model_1
}
"""What brings the header of an older format up to date."""


def take_prefixed(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, by the rest of their names."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
