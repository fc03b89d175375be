"""What the specifications share."""

from typing import Literal

import torch
from pydantic import PositiveInt

from ..errors import InputError
from ..microstates import Microstate

__all__ = ["DTYPES", "Precision", "Source", "Widths", "mismatch"]

Widths = tuple[PositiveInt, ...]


Source = Literal["x", "y"]
"""What an encoder sees of a frame: its microstate or its macrostate."""


Precision = Literal["float32", "bfloat16"]


DTYPES: dict[Precision, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def mismatch(
    name: str, needs: str, microstate: Microstate, *, part: str = "encoder"
) -> InputError:
    """What to raise where a part of a model does not fit the microstates."""
    return InputError(
        f"the {part} `{name}` takes {needs} microstates, not {type(microstate).__name__.lower()} "
        f"ones; choose another `model.{part}.name`"
    )
