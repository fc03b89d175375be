"""Tensors on disk: one safetensors file, its JSON header describing what the tensors are.

Never pickle: a checkpoint can be read without running code from it. A file appears by rename only
when it is complete.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ..errors import InputError
from ..files import replacing
from ..version import __version__

__all__ = ["load_tensors", "save_tensors"]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Writes tensors and a JSON header to one file, complete or not at all."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        temporary.write_bytes(save(contiguous, metadata={"json": json.dumps(header)}))


def load_tensors(path: Path, format_name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads what `save_tensors` wrote; refuses what is absent, damaged or of another format."""
    if not path.is_file():
        raise InputError(f"{path} does not exist; train a model first or give another folder")
    try:
        with safe_open(path, framework="pt") as file:
            header = dict(json.loads((file.metadata() or {}).get("json", "{}")))
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} is damaged ({error}); restore it, or train again in a new folder"
        ) from error
    if header.get("format") != format_name:
        raise InputError(
            f"{path} has format {header.get('format')!r}, not {format_name!r}; it was not written "
            f"by this version of tampl ({__version__})"
        )
    return tensors, header
