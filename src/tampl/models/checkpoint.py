"""Models on disk: one safetensors file, its JSON header describing what the tensors are.

Never pickle: a checkpoint can be read without running code from it. A file appears by rename only
when it is complete.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ..data.dataset import Normalization
from ..description import Description
from ..errors import InputError
from ..files import replacing
from ..version import __version__
from .model import MacroModel, ModelSpec, Modules

__all__ = ["load_model", "load_tensors", "save_model", "save_tensors"]

FORMAT = "tampl-model-2"


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


def save_model(model: MacroModel, path: Path) -> None:
    """Saves weights, architecture, system and normalisation of a model."""
    header = {
        "format": FORMAT,
        "code_version": __version__,
        "spec": model.spec.model_dump(mode="json"),
        "description": model.description.model_dump(mode="json"),
    }
    save_tensors(path, model.state_dict(), header)


def load_model(path: str | Path, *, device: torch.device | str = "cpu") -> MacroModel:
    """Loads a model saved by `save_model`, in evaluation mode."""
    tensors, header = load_tensors(Path(path), FORMAT)
    try:
        model = _build(tensors, header)
    # What torch raises where names or shapes of the tensors differ is a RuntimeError.
    except (KeyError, ValidationError, InputError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} does not hold the model it describes: {reason}") from error
    return model.to(device).eval()


def _build(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> MacroModel:
    spec = ModelSpec.model_validate(header["spec"])
    description = Description.model_validate(header["description"])
    # The weights keep the precision they were trained in; the statistics stay float64.
    dtypes = (value.dtype for name, value in tensors.items() if name.startswith("transition."))
    # The file brings all weights: published ones need not be fetched to be overwritten.
    modules = Modules.build(spec.blank(), description).to(next(dtypes, torch.float32))
    modules.spec = spec
    normalization = Normalization(mean=tensors["y_mean"].numpy(), std=tensors["y_std"].numpy())
    model = MacroModel(description, normalization=normalization, modules=modules)
    model.load_state_dict(tensors)
    return model
