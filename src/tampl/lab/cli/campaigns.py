"""The verbs of many runs: `demo`, `compare` and `sweep`."""

from pathlib import Path
from typing import Annotated

import typer

from ...errors import InputError
from ...progress import say
from .options import Device, Json, RecipeFile, Seed, plain_scores, show

__all__ = ["compare", "demo", "sweep"]

Seeds = Annotated[
    str | None, typer.Option(help="Training seeds, such as 42,43,44; default: the recipe's.")
]


OwnData = Annotated[
    Path | None, typer.Option("--data", help="Folder of a store; default: OUT/data.")
]


Budget = Annotated[
    float | None, typer.Option("--budget-s", help="Seconds after which no more work is begun.")
]


SideBySide = Annotated[int, typer.Option(help="Runs made at once, each in a process of its own.")]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for data, run and report.")] = Path(
        "runs/demo"
    ),
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Goes the whole way on a laptop-size SIRS lattice: simulate, train, evaluate, report."""
    from ..demo import run_demo

    result = run_demo(out, seed=seed)
    if as_json:
        show({"report": str(result.page), "scores": plain_scores(result.scores)}, as_json)
    else:
        print(f"{result.compared.table}\nreport: {result.page}")


def compare(
    recipe: RecipeFile,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for data, runs, table and page; default: runs/compare-RECIPE."),
    ] = None,
    methods: Annotated[str, typer.Option(help="Names such as tampl,jld; or all.")] = "all",
    seeds: Seeds = None,
    data: OwnData = None,
    budget_s: Budget = None,
    device: Device = "cpu",
    side_by_side: SideBySide = 1,
    as_json: Json = False,
) -> None:
    """Compares methods over seeds: trains and evaluates what is missing, prints the table."""
    from ..campaign import Resources
    from ..comparisons import compare
    from ..recipes import read_recipe

    compared = compare(
        read_recipe(recipe),
        out or Path("runs") / f"compare-{recipe.stem}",
        methods=None if methods == "all" else _split(methods),
        seeds=_integers(seeds),
        resources=Resources(
            data=data, budget_s=budget_s, device=device, side_by_side=side_by_side
        ),
    )
    if as_json:
        show(compared.record, as_json)
    else:
        print(f"{compared.table}\nreport: {compared.page}")
    _say_unfinished(len(compared.comparison.waiting))


def sweep(
    recipe: RecipeFile,
    method: Annotated[str, typer.Option(help="Name of the method.")],
    setting: Annotated[str, typer.Option("--set", help="KEY=VALUE,VALUE,... as in a recipe.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for data, runs and table; default: runs/sweep-RECIPE-M-KEY."),
    ] = None,
    seeds: Seeds = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs; default: the recipe's.")] = None,
    test: Annotated[bool, typer.Option(help="Whether to score on the test split.")] = True,
    data: OwnData = None,
    budget_s: Budget = None,
    device: Device = "cpu",
    side_by_side: SideBySide = 1,
    as_json: Json = False,
) -> None:
    """Varies one setting of a method: errors and latent scale for each value."""
    from ..campaign import Resources
    from ..recipes import read_recipe
    from ..sweeps import Axis, parse_setting, sweep

    chosen = read_recipe(recipe)
    if epochs is not None:
        chosen = chosen.with_value("training.epochs", epochs)
    key, values = parse_setting(setting)
    swept = sweep(
        chosen,
        out or Path("runs") / f"sweep-{recipe.stem}-{method}-{key}",
        Axis.find(chosen, method, key, values=values),
        seeds=_integers(seeds),
        test=test,
        resources=Resources(
            data=data, budget_s=budget_s, device=device, side_by_side=side_by_side
        ),
    )
    if as_json:
        show(swept.record, as_json)
    else:
        print(swept.table)
    _say_unfinished(swept.sweep.waiting)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _integers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in _split(text)]
    except ValueError as error:
        raise InputError(f"`seeds` is {text!r}; give integers such as 42,43,44") from error


def _say_unfinished(runs: int) -> None:
    if runs:
        say(f"the budget is spent and {runs} runs are not done; the same command goes on")
