"""What a sweep varies: a setting of a method, found in the recipe, and its values."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..config import Recipe
from ..errors import InputError

__all__ = ["Axis", "parse_setting"]

SWEPT = ("model", "training")
"""Sections in which a key is looked up; another system or other data are no matter of a sweep."""


@dataclass(frozen=True)
class Axis:
    """What is varied: a setting of a method, as a dotted path into the recipe, and its values."""

    method: str
    path: str
    values: tuple[Any, ...]

    @classmethod
    def find(cls, recipe: Recipe, method: str, key: str, *, values: Sequence[Any]) -> "Axis":
        """Finds a key and checks all values, by what the recipe itself refuses.

        Arguments:
            recipe: The recipe.
            method: Name of the method.
            key: A dotted path into the recipe's tables, such as `model.latent_dim`, or a path
                that is looked up in the method's own settings, then model, then training.
            values: The values.
        """
        axis = cls(method, _find_path(recipe, method, key), tuple(values))
        if not axis.values:
            raise InputError(f"`{key}` has no values; give one at least")
        for place, value in enumerate(axis.values):
            recipe.with_value(axis.path, value)
            if value in axis.values[:place]:
                raise InputError(f"`{key}` has the value {value!r} twice; give each value once")
        return axis

    @property
    def short(self) -> str:
        """The path as the method's user would say it."""
        return self.path.removeprefix(f"methods.{self.method}.")

    def folder(self, value: object, seed: int) -> str:
        """Name of the folder of a run."""
        text = re.sub(r"[^A-Za-z0-9.+-]+", "_", str(value)).strip("_")
        return f"{self.method}-{self.short}-{text}-{seed}"


def parse_setting(text: str) -> tuple[str, list[Any]]:
    """Key and values of a text such as `lambda_tr=0.1,1.0`; values are TOML.

    Example:
        >>> parse_setting("model.transition.hidden=[64, 64],[128]")
        ('model.transition.hidden', [[64, 64], [128]])
    """
    key, _, values = text.partition("=")
    try:
        tables = tomllib.loads(f"values = [{values}]")
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"`set` is {text!r}; write KEY=VALUE,VALUE,... with values as in a recipe, texts in "
            f"quotation marks ({error})"
        ) from error
    return key.strip(), tables["values"]


def _find_path(recipe: Recipe, method: str, key: str) -> str:
    """The dotted path of a key, which may lack its section."""
    recipe.method(method)
    tables, own = recipe.as_tables(only=method), f"methods.{method}"
    sections = {own: tables["methods"][method], **{name: tables[name] for name in SWEPT}}
    given = [name for name in sections if key.startswith(f"{name}.")]
    found = [name for name, table in sections.items() if _holds(table, key.split("."))]
    if not given and not found:
        raise InputError(
            f"unknown key `{key}`: neither a setting of {method} nor one of the recipe's "
            f"{' or '.join(SWEPT)}"
        )
    path = key if given else f"{found[0]}.{key}"
    if path == "training.seed":
        raise InputError("`training.seed` is no setting to sweep; give `seeds`")
    return path


def _holds(table: object, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(table, Mapping) or key not in table:
            return False
        table = table[key]
    return True
