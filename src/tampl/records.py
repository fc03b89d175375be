"""The base of all records that recipes, stores and checkpoints are made of, and JSON.

A record is frozen, refuses keys it does not know and numbers that are not finite.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from .errors import InputError

__all__ = ["Record", "read_json", "strict_json"]


class Record(BaseModel):
    """Plain data with types, checked when it is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def read_json(path: Path, remedy: str) -> Any:  # noqa: ANN401
    """The content of a file of JSON; one that is missing or damaged is refused.

    Arguments:
        path: The file.
        remedy: What to do about it then.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; {remedy}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}); {remedy}") from error


def strict_json(value: object, *, indent: int | None = None) -> str:
    """Plain data as JSON that any reader takes: null stands for what is not finite.

    Example:
        >>> strict_json({"rmse": float("nan"), "epochs": [1, 2]})
        '{"rmse": null, "epochs": [1, 2]}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
