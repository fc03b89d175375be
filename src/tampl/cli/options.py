"""Arguments and options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DataDir", "Device", "Json", "RecipeFile", "RunDir", "RunDirs", "Seed"]

RecipeFile = Annotated[Path, typer.Argument(help="Recipe, a TOML file.")]
RunDirs = Annotated[list[Path], typer.Argument(help="Folders of evaluated runs.")]
RunDir = Annotated[Path, typer.Argument(help="Folder of a run.")]
DataDir = Annotated[Path, typer.Option("--data", help="Folder of a store.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="torch device, such as cpu or cuda.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Training seed; default: the recipe's.")]
