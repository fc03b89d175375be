"""The base of all plain data that recipes, stores and models are made of."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import InputError

__all__ = ["BatchSize", "Count", "Depth", "Frozen", "Steps", "Width", "prefix_keys"]

# Bounds far outside of what is of use, so that a mistyped exponent is one line and takes neither
# all memory nor time without end.
Width = Annotated[int, Field(gt=0, le=2**16)]
"""Features of a layer, or another size of a network."""

Depth = Annotated[int, Field(gt=0, le=100)]
"""Layers, blocks or transforms, one after another."""

Steps = Annotated[int, Field(gt=0, le=10**4)]
"""How often a network is asked for one answer."""

Count = Annotated[int, Field(gt=0, le=10**6)]
"""How often something is done in a training, or how many of it are drawn at a time."""

BatchSize = Annotated[int, Field(gt=0, le=10**9)]
"""Rows that are looked at together; where there are fewer, all of them."""


class Frozen(BaseModel):
    """Plain data with types, checked when it is made and never changed afterwards.

    Unknown keys and numbers that are not finite are refused. A value that breaks a rule raises
    `InputError` with one line that names the key, its value and the rule.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __str__(self) -> str:
        return repr(self)

    if not TYPE_CHECKING:  # a type checker is to see the arguments that the fields give

        def __init__(self, /, **data: Any) -> None:  # noqa: ANN401
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise InputError(_first_line(error)) from None

        @classmethod
        def model_validate(cls, *arguments: Any, **options: Any) -> "Frozen":  # noqa: ANN401
            try:
                return super().model_validate(*arguments, **options)
            except ValidationError as error:
                raise InputError(_first_line(error)) from None

        @classmethod
        def model_validate_json(cls, *arguments: Any, **options: Any) -> "Frozen":  # noqa: ANN401
            try:
                return super().model_validate_json(*arguments, **options)
            except ValidationError as error:
                raise InputError(_first_line(error)) from None


def prefix_keys(message: str, where: str) -> str:
    """A message about a key of plain data, where these stand under a key of others.

    Example:
        >>> prefix_keys("`widths` is 3: input should be a valid tuple", "model.encoder")
        '`model.encoder.widths` is 3: input should be a valid tuple'
    """
    for head in ("`", "unknown key `"):
        if message.startswith(head):
            return f"{head}{where}.{message[len(head) :]}"
    return f"{where}: {message}"


def _first_line(error: ValidationError) -> str:
    """The first thing that is wrong, as one line."""
    first = error.errors()[0]
    keys, message = [str(key) for key in first["loc"]], first["msg"]
    where = ".".join(keys)
    if not keys and first["type"] != "value_error":
        return f"{first['input']!r} is not what is needed here: {message}"
    if first["type"] == "extra_forbidden":
        return f"unknown key `{where}`"
    if first["type"] == "missing":
        return f"`{where}` is missing"
    if first["type"] != "value_error":
        return f"`{where}` is {first['input']!r}: {message[:1].lower()}{message[1:]}"
    # A rule of ours, which names its own key; plain data within plain data name theirs.
    rule = message.removeprefix("Value error, ")
    if keys and rule.startswith(f"`{keys[-1]}`"):
        keys = keys[:-1]
    return prefix_keys(rule, ".".join(keys)) if keys else rule
