"""What the parts of a model share: widths, precision, device, and one way to be refused."""

from typing import Annotated, Literal

import torch
from pydantic import Field

from ..errors import InputError
from ..frozen import Width
from ..microstates import Microstate

__all__ = ["DTYPES", "Precision", "Source", "Widths", "mismatch", "resolve_device"]


Widths = Annotated[tuple[Width, ...], Field(max_length=100)]
"""Features of layers, one after another."""


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


def resolve_device(device: str) -> str:
    """The name of a torch device that is there; "auto" takes a GPU where there is one.

    Example:
        >>> resolve_device("cpu")
        'cpu'
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device).cpu()
    # A device that this build of torch lacks is an ImportError.
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"`device` is {device!r}, which is not available here: {reason}"
        ) from error
    return device
