"""The command `tampl`: one verb per layer, each a thin wrapper over one public function.

Results go to standard output (`--json` for machines), progress to standard error. Exit code 0 is
done, 2 is wrong input with one line that says what to do, 1 is a bug of ours.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import InputError
from .linear_cli import app as linear
from .memory import keep_freed_memory
from .progress import say
from .records import strict_json
from .version import __version__

if TYPE_CHECKING:
    from .data import Store

__all__ = ["app", "main"]

app = typer.Typer(
    help="Forecast macroscopic observables of many-body systems from one microscopic state.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

app.add_typer(linear, name="linear")

RecipeFile = Annotated[Path, typer.Argument(help="Recipe, a TOML file.")]
RunDirs = Annotated[list[Path], typer.Argument(help="Folders of evaluated runs.")]
RunDir = Annotated[Path, typer.Argument(help="Folder of a run.")]
DataDir = Annotated[Path, typer.Option("--data", help="Folder of a store.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="torch device, such as cpu or cuda.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Training seed; default: the recipe's.")]
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

# typer may carry its own copy of click; its public exception leads to the base in either case.
UsageError: Any = typer.BadParameter.__base__
# Some versions of typer turn Ctrl-C into this exit code, others raise.
INTERRUPTED = 130


def main() -> None:
    """Runs the command line and turns wrong input into one line and exit code 2."""
    keep_freed_memory()
    try:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal may lack the ² of MMD²
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except InputError as error:
        _fail(str(error))
    except UsageError as error:
        _fail(f"{error.format_message()} (see `tampl --help`)")
    except OSError as error:
        _fail(f"{error}; see that the path is right and the disk has room")
    except (KeyboardInterrupt, typer.Abort):
        message = "interrupted; the same command goes on from what was saved"
        _fail(message, code=INTERRUPTED)


def _fail(message: str, code: int = 2) -> None:
    print(f"tampl: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(strict_json(result))
    else:
        print("\n".join(f"{key}: {_plain(value)}" for key, value in result.items()))


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return "; ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(__version__)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for data, run and report.")] = Path(
        "runs/demo"
    ),
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Goes the whole way on a laptop-size SIRS lattice: simulate, train, evaluate, report."""
    from .demo import run_demo

    result = run_demo(out, seed=seed)
    if as_json:
        _show({"report": str(result.page), "scores": _scores(result.scores)}, as_json)
    else:
        print(f"{result.compared.table}\nreport: {result.page}")


@app.command()
def simulate(
    recipe: RecipeFile,
    out: Annotated[Path, typer.Option(help="Folder for the store.")],
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; default: all.")] = None,
    device: Annotated[
        str, typer.Option(help="cpu, or cuda for systems with GPU kernels.")
    ] = "cpu",
    as_json: Json = False,
) -> None:
    """Makes the data of a recipe, or what is missing of it."""
    from . import pipeline
    from .config import read_recipe

    store = pipeline.simulate(read_recipe(recipe), out, workers=workers, device=device)
    _show(_describe(store), as_json)


@app.command("import")
def import_data(
    source: Annotated[str, typer.Argument(help="Format of the data, such as polymer-parquet.")],
    folder: Annotated[Path, typer.Argument(help="Folder of the data.")],
    out: Annotated[Path, typer.Option(help="Folder for the store.")],
    as_json: Json = False,
) -> None:
    """Makes a store of data in another format."""
    from .data.sources import import_store

    _show(_describe(import_store(source, folder, out)), as_json)


@app.command()
def check(
    data: Annotated[Path, typer.Argument(help="Folder of a store.")], as_json: Json = False
) -> None:
    """Checks a store: format, checksums, physical sanity. Exit code 2 if anything is wrong."""
    from . import pipeline

    report = pipeline.check_data(data)
    _show({**asdict(report), "path": str(report.path), "ok": report.ok}, as_json)
    report.refuse_problems()


@app.command()
def train(
    recipe: RecipeFile,
    data: DataDir,
    out: Annotated[Path, typer.Option(help="Folder for the run.")],
    method: Annotated[str, typer.Option(help="Name of the method.")] = "tampl",
    seed: Seed = None,
    device: Device = "cpu",
    profile: Annotated[
        bool, typer.Option("--profile", help="Time an epoch instead; nothing is saved.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Trains a model, or goes on with an interrupted training."""
    from . import pipeline
    from .config import read_recipe

    if profile:
        from .profile import profile_training
        from .provenance import provenance

        chosen = read_recipe(recipe).with_seed(seed)
        found = asdict(profile_training(chosen, data, method=method, device=device))
        _show(found | ({"provenance": provenance(device)} if as_json else {}), as_json)
        return
    history = pipeline.train(
        read_recipe(recipe).with_seed(seed), data, out, method=method, device=device
    )
    result = {
        "run": str(out),
        "epochs": len(history.epochs),
        "validation_rmse": history.best,
        "best_epoch": history.best_epoch,
        "latent": history.epochs[-1]["latent"],
    }
    _show(result, as_json)


@app.command()
def forecast(
    run: RunDir,
    initial: Annotated[Path, typer.Option(help="Initial microstates, an .npy file.")],
    horizon: Annotated[int, typer.Option(min=1, help="Frames ahead.")],
    out: Annotated[Path, typer.Option(help="Ensemble, an .npz file.")],
    samples: Annotated[int, typer.Option(min=1, help="Members of the ensemble.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the ensemble.")] = 0,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Forecasts the observables, with their spread, from initial microstates."""
    from . import pipeline

    result = pipeline.forecast_file(
        run, initial, out, horizon=horizon, members=samples, seed=seed, device=device
    )
    final = {
        symbol: {"mean": mean, "std": std}
        for symbol, mean, std in zip(
            result.symbols, result.mean[0, -1].tolist(), result.std[0, -1].tolist(), strict=True
        )
    }
    shape = dict(zip(("microstates", "members", "frames"), result.samples.shape, strict=False))
    _show({"forecast": str(out), **shape, "time": result.times[-1], "final": final}, as_json)


@app.command()
def evaluate(run: RunDir, data: DataDir, device: Device = "cpu", as_json: Json = False) -> None:
    """Scores a run on the test split, beside closures, mean trajectory and noise floor."""
    from . import pipeline

    scores = pipeline.evaluate_run(run, data, device=device)
    if as_json:
        _show({"run": str(run), "scores": _scores(scores)}, as_json)
    else:
        _print_table(scores)


@app.command()
def report(
    runs: RunDirs,
    out: Annotated[Path, typer.Option(help="Folder for page and figures.")],
    as_json: Json = False,
) -> None:
    """Writes one self-contained page, its figures and the scores."""
    from . import pipeline

    _show({"report": str(pipeline.report_runs(runs, out))}, as_json)


@app.command()
def record(
    runs: RunDirs,
    out: Annotated[Path, typer.Option(help="Folder of an experiment, such as results/sirs.")],
    as_json: Json = False,
) -> None:
    """Keeps evaluated runs as small files: scores, recipe, curves and provenance."""
    from . import pipeline

    kept = pipeline.record_runs(runs, out)
    _show({"kept": [str(path) for path in kept]}, as_json)


@app.command()
def results(
    folder: Annotated[Path, typer.Argument(help="Folder of experiments.")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Prints every measured score: methods, floor, closures and mean trajectory."""
    from . import pipeline
    from .report.comparison_tables import comparison_grid

    found = pipeline.read_results(folder)
    if as_json:
        _show({name: comparison.as_dict()["scores"] for name, comparison in found.items()}, True)
        return
    for name, comparison in found.items():
        print(f"{name}\n\n{comparison_grid(comparison).markdown()}")


@app.command()
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
    from .compare import compare
    from .config import read_recipe

    compared = compare(
        read_recipe(recipe),
        out or Path("runs") / f"compare-{recipe.stem}",
        methods=None if methods == "all" else _split(methods),
        seeds=_integers(seeds),
        data=data,
        budget_s=budget_s,
        device=device,
        side_by_side=side_by_side,
    )
    if as_json:
        _show(compared.record, as_json)
    else:
        print(f"{compared.table}\nreport: {compared.page}")
    _say_unfinished(len(compared.comparison.waiting))


@app.command()
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
    from .config import read_recipe
    from .sweep import Axis, parse_setting, sweep

    chosen = read_recipe(recipe)
    if epochs is not None:
        chosen = chosen.with_value("training.epochs", epochs)
    key, values = parse_setting(setting)
    out = out or Path("runs") / f"sweep-{recipe.stem}-{method}-{key}"
    swept = sweep(
        chosen,
        out,
        Axis.find(chosen, method, key, values=values),
        seeds=_integers(seeds),
        data=data,
        test=test,
        budget_s=budget_s,
        device=device,
        side_by_side=side_by_side,
    )
    if as_json:
        _show(json.loads((out / "sweep.json").read_text(encoding="utf-8")), as_json)
    else:
        print((out / "sweep.md").read_text(encoding="utf-8"))
    _say_unfinished(swept.waiting)


def _describe(store: "Store") -> dict[str, Any]:
    splits = {name: split.count for name, split in store.manifest.splits.items()}
    return {"store": str(store.path), "identity": store.manifest.identity, "splits": splits}


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


def _scores(scores: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    return {name: asdict(score) for name, score in scores.items()}


def _print_table(scores: Mapping[str, Any]) -> None:
    from .report.tables import ScoreTable, score_grid

    print(score_grid(ScoreTable.of_run(scores)).markdown())
