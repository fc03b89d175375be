"""Arguments and options that several verbs share.

Results on standard output, as lines for people or JSON for machines.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ...files import strict_json

__all__ = [
    "DataDir",
    "Device",
    "Json",
    "RecipeFile",
    "RunDir",
    "RunDirs",
    "Seed",
    "plain_scores",
    "show",
]

RecipeFile = Annotated[Path, typer.Argument(help="Recipe, a TOML file.")]


RunDirs = Annotated[list[Path], typer.Argument(help="Folders of evaluated runs.")]


RunDir = Annotated[Path, typer.Argument(help="Folder of a run.")]


DataDir = Annotated[Path, typer.Option("--data", help="Folder of a store.")]


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


Device = Annotated[str, typer.Option(help="torch device, such as cpu or cuda.")]


Seed = Annotated[int | None, typer.Option(min=0, help="Training seed; default: the recipe's.")]


def show(result: dict[str, Any], as_json: bool) -> None:
    """Prints a result, one line for each key or one line of JSON."""
    if as_json:
        print(strict_json(result))
    else:
        print("\n".join(f"{key}: {_plain(value)}" for key, value in result.items()))


def plain_scores(scores: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Scores as plain data."""
    return {name: asdict(score) for name, score in scores.items()}


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return "; ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)
