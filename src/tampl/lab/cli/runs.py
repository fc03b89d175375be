"""The verbs of one run, from its data to its record: `simulate` to `results`."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import DataDir, Device, Json, RecipeFile, RunDir, RunDirs, Seed, plain_scores, show

__all__ = [
    "check",
    "evaluate",
    "forecast",
    "import_data",
    "record",
    "report",
    "results",
    "simulate",
    "train",
]

if TYPE_CHECKING:
    from ...data import Store


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
    from .. import pipeline
    from ..recipes import read_recipe

    store = pipeline.simulate(read_recipe(recipe), out, workers=workers, device=device)
    show(_describe(store), as_json)


def import_data(
    source: Annotated[str, typer.Argument(help="Format of the data, such as polymer-parquet.")],
    folder: Annotated[Path, typer.Argument(help="Folder of the data.")],
    out: Annotated[Path, typer.Option(help="Folder for the store.")],
    as_json: Json = False,
) -> None:
    """Makes a store of data in another format."""
    from ..sources import import_store

    show(_describe(import_store(source, folder, out)), as_json)


def check(
    data: Annotated[Path, typer.Argument(help="Folder of a store.")], as_json: Json = False
) -> None:
    """Checks a store: format, checksums, physical sanity. Exit code 2 if anything is wrong."""
    from .. import pipeline

    report = pipeline.check_data(data)
    show({**asdict(report), "path": str(report.path), "ok": report.ok}, as_json)
    report.refuse_problems()


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
    from .. import pipeline
    from ..recipes import read_recipe

    if profile:
        from ..profile import profile_training
        from ..provenance import provenance

        chosen = read_recipe(recipe).with_seed(seed)
        found = asdict(profile_training(chosen, data, method=method, device=device))
        show(found | ({"provenance": provenance(device)} if as_json else {}), as_json)
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
    show(result, as_json)


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
    from .. import pipeline

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
    show({"forecast": str(out), **shape, "time": result.times[-1], "final": final}, as_json)


def evaluate(run: RunDir, data: DataDir, device: Device = "cpu", as_json: Json = False) -> None:
    """Scores a run on the test split, beside closures, mean trajectory and noise floor."""
    from .. import pipeline

    scores = pipeline.evaluate_run(run, data, device=device)
    if as_json:
        show({"run": str(run), "scores": plain_scores(scores)}, as_json)
    else:
        _print_table(scores)


def report(
    runs: RunDirs,
    out: Annotated[Path, typer.Option(help="Folder for page and figures.")],
    as_json: Json = False,
) -> None:
    """Writes one self-contained page, its figures and the scores."""
    from .. import pipeline

    show({"report": str(pipeline.report_runs(runs, out))}, as_json)


def record(
    runs: RunDirs,
    out: Annotated[Path, typer.Option(help="Folder of an experiment, such as results/sirs.")],
    as_json: Json = False,
) -> None:
    """Keeps evaluated runs as small files: scores, recipe, curves and provenance."""
    from .. import pipeline

    kept = pipeline.record_runs(runs, out)
    show({"kept": [str(path) for path in kept]}, as_json)


def results(
    folder: Annotated[Path, typer.Argument(help="Folder of experiments.")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Prints every measured score: methods, floor, closures and mean trajectory."""
    from .. import pipeline
    from ..report.tables import comparison_grid

    found = pipeline.read_results(folder)
    if as_json:
        show({name: comparison.as_dict()["scores"] for name, comparison in found.items()}, True)
        return
    for name, comparison in found.items():
        print(f"{name}\n\n{comparison_grid(comparison).markdown()}")


def _describe(store: "Store") -> dict[str, Any]:
    splits = {name: split.count for name, split in store.manifest.splits.items()}
    return {"store": str(store.path), "identity": store.manifest.identity, "splits": splits}


def _print_table(scores: Mapping[str, Any]) -> None:
    from ..report.tables import ScoreTable, score_grid

    print(score_grid(ScoreTable.of_run(scores)).markdown())
