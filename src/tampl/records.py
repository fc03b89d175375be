"""The base of all records that recipes, stores and checkpoints are made of, and strict JSON.

A record is frozen, refuses keys it does not know and numbers that are not finite.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["Record", "strict_json"]


class Record(BaseModel):
    """Plain data with types, checked when it is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


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
