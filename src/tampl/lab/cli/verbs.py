"""The verbs: of the data, of one run (`train` to `results`), and of many (`demo` to `sweep`).

Results are printed on standard output, as lines for people or as JSON for machines. The help of a
verb lists the methods or formats that there are; they load when that help is asked for.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from ...errors import InputError
from ...files import strict_json
from ...progress import say

__all__ = [
    "DeviceName",
    "Json",
    "ListingCommand",
    "check",
    "compare",
    "demo",
    "evaluate",
    "forecast",
    "import_data",
    "recipe",
    "record",
    "report",
    "results",
    "simulate",
    "studio",
    "sweep",
    "train",
]

if TYPE_CHECKING:
    from ...data import Store

RecipeFile = Annotated[Path, typer.Argument(help="Recipe, a TOML file.")]
RunDirs = Annotated[list[Path], typer.Argument(help="Folders of evaluated runs.")]
RunDir = Annotated[Path, typer.Argument(help="Folder of a run.")]
DataDir = Annotated[Path, typer.Option("--data", help="Folder of a store.")]
StoreDir = Annotated[Path, typer.Option(help="Folder for the store.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
DeviceName = Annotated[
    str, typer.Option(help="torch device, such as cpu or cuda; auto takes a GPU if there is one.")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Training seed; default: the recipe's.")]
Epochs = Annotated[int | None, typer.Option(help="Epochs; default: the recipe's.")]
SeedList = Annotated[
    str | None, typer.Option(help="Training seeds, such as 42,43,44; default: the recipe's.")
]
CampaignData = Annotated[
    Path | None, typer.Option("--data", help="Folder of a store; default: OUT/data.")
]
Budget = Annotated[
    float | None, typer.Option("--budget-s", help="Seconds after which no more work is begun.")
]
Memory = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="GiB that the training data may take in memory; default: half of what is available. "
        "Larger data are read from disk.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Where to send the work: address or file of a Dask scheduler, or local. Needs "
        "the extra dask."
    ),
]
SideBySide = Annotated[int, typer.Option(help="Runs trained at once, each in its own process.")]


def _list_methods() -> list[str]:
    from ...methods import METHODS
    from ...plugins import known_names

    return known_names(METHODS, "tampl.methods")


def _list_formats() -> list[str]:
    from ..sources import FORMATS, PUBLISHED

    return [*FORMATS, *PUBLISHED]


_CHOICES: dict[str, Callable[[], list[str]]] = {
    "method": _list_methods,
    "methods": _list_methods,
    "format": _list_formats,
}
"""What the help lists, by the name of an argument or option."""


class ListingCommand(TyperCommand):
    """A verb whose help lists the choices of its arguments and options."""

    def format_help(self, *arguments: Any) -> None:  # noqa: ANN401
        """Completes the help of the parameters, then prints it by `TyperCommand.format_help`."""
        for parameter in self.params:
            if parameter.name in _CHOICES:
                choices = ", ".join(_CHOICES[parameter.name]())
                text = getattr(parameter, "help", "").partition(" Choices:")[0]
                setattr(parameter, "help", f"{text} Choices: {choices}.")  # noqa: B010
        super().format_help(*arguments)


def simulate(
    recipe: RecipeFile,
    out: StoreDir,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads; default: one for each core.")
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            help="cpu, or cuda for systems with GPU kernels. There is no auto: the kernel is part "
            "of a store's identity."
        ),
    ] = "cpu",
    dask: Dask = None,
    as_json: Json = False,
) -> None:
    """Simulates the data of a recipe, or the part of it that is missing."""
    from .. import pipeline
    from ..recipes import read_recipe

    store = pipeline.simulate(read_recipe(recipe), out, workers=workers, device=device, dask=dask)
    _show(_describe_store(store), as_json)


def import_data(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders of pictures, or arrays in files (runs.h5:/traj/x), in the order "
            "of the trajectories."
        ),
    ],
    out: StoreDir,
    observable: Annotated[
        list[str] | None,
        typer.Option(
            help="A file (y.npy, {stem}.csv), a name such as radius-of-gyration, or "
            "MODULE:FUNCTION, your own code, which is run; may be repeated."
        ),
    ] = None,
    interval: Annotated[
        float | None, typer.Option(help="Time between two frames; default: what the files say.")
    ] = None,
    time_unit: Annotated[str | None, typer.Option(help="Unit of that time, such as ps.")] = None,
    format: Annotated[
        str | None, typer.Option(help="Format of the files, where names do not tell.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="vector, lattice, image or particles; default: recognised.")
    ] = None,
    every: Annotated[int, typer.Option(help="Keep every such frame: 5 keeps every fifth.")] = 1,
    times: Annotated[
        str | None, typer.Option(help="Name of the array that holds the times of the frames.")
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(help="Types of particles: an array, or names, elements or types of atoms."),
    ] = None,
    box: Annotated[
        str | None, typer.Option(help="Edges of the box such as 32,32, or an array of them.")
    ] = None,
    closed: Annotated[
        str, typer.Option(help="Axes along which the box has walls, such as xy; else periodic.")
    ] = "",
    topology: Annotated[
        Path | None, typer.Option(help="File that names the atoms, for XTC, DCD and others.")
    ] = None,
    select: Annotated[str, typer.Option(help="Atoms to keep, in MDAnalysis' words.")] = "all",
    molecule: Annotated[
        bool, typer.Option("--molecule", help="The atoms are one molecule: centre and align it.")
    ] = False,
    axes: Annotated[str, typer.Option(help="Coordinates to keep: xyz or xy.")] = "xyz",
    split: Annotated[
        str, typer.Option(help="Fractions of training, validation and test set.")
    ] = "0.8,0.1,0.1",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random division.")] = 0,
    train: Annotated[
        str | None, typer.Option(help="Training files, a pattern such as 'a*.xtc'.")
    ] = None,
    valid: Annotated[str | None, typer.Option(help="Validation files, a pattern.")] = None,
    test: Annotated[str | None, typer.Option(help="Test files, a pattern.")] = None,
    frames: Annotated[
        int | None, typer.Option(help="Cut the trajectories into blocks of so many frames.")
    ] = None,
    gap: Annotated[
        int | None,
        typer.Option(
            help="Frames between the splits of a trajectory that is cut; default: a block."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Makes a store of your own trajectories and observables, or what is missing of it."""
    from ..sources import ImportSpec, import_store

    patterns = {"train": train, "valid": valid, "test": test}
    spec = ImportSpec.model_validate(
        {
            "files": files,
            "observables": observable or [],
            "interval": interval,
            "time_unit": time_unit,
            "format": format,
            "every": every,
            "reading": {
                "kind": kind,
                "times": times,
                "types": types,
                "box": box,
                "closed": closed,
                "topology": topology,
                "select": select,
                "molecule": molecule,
                "axes": axes,
            },
            "splits": {
                "fractions": _parse_fractions(split),
                "seed": seed,
                "files": {name: text for name, text in patterns.items() if text is not None},
                "frames": frames,
                "gap": gap,
            },
        }
    )
    _show(_describe_store(import_store(spec, out)), as_json)


def _parse_fractions(text: str) -> list[float]:
    try:
        return [float(part) for part in _split(text)]
    except ValueError as error:
        raise InputError(
            f"`--split` is {text!r}; give three fractions, such as 0.8,0.1,0.1"
        ) from error


def recipe(
    data: Annotated[Path, typer.Argument(help="Folder of a store.")],
) -> None:
    """Prints a complete recipe for a store, with a comment for every setting."""
    from ...data import Store
    from ..commented import write_commented
    from ..recipes import propose_recipe

    print(write_commented(propose_recipe(Store.open(data))), end="")


def check(
    data: Annotated[Path, typer.Argument(help="Folder of a store.")], as_json: Json = False
) -> None:
    """Checks a store: format, checksums, physical sanity. Exit code 2 if anything is wrong."""
    from .. import pipeline

    found = pipeline.check_data(data)
    _show({**asdict(found), "path": str(found.path), "ok": found.ok}, as_json)
    found.refuse_problems()


def train(
    data: DataDir,
    out: Annotated[Path, typer.Option(help="Folder for the run.")],
    recipe: Annotated[
        Path | None, typer.Argument(help="Recipe, a TOML file; default: settings for the data.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="Name of the method; default: tampl with a recipe, else tampl+."),
    ] = None,
    seed: Seed = None,
    epochs: Epochs = None,
    device: DeviceName = "auto",
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Trains a model, resumes an interrupted training, or extends one with more epochs.

    Started by torchrun, several processes train one model.
    """
    from ...data import Store
    from .. import pipeline
    from ..recipes import propose_recipe, read_recipe

    with pipeline.joined(device) as ranks:
        found = propose_recipe(Store.open(data)) if recipe is None else read_recipe(recipe)
        method = method or ("tampl+" if recipe is None else "tampl")
        # First what the recipe chose for the method: options win.
        chosen = found.of(method).with_seed(seed).with_epochs(epochs)
        history = pipeline.train(
            chosen, data, out, method=method, device=device, memory=_to_bytes(memory), ranks=ranks
        )
    result = {
        "run": str(out),
        "epochs": len(history.epochs),
        "validation_rmse": history.best,
        "best_epoch": history.best_epoch,
        "latent": history.epochs[-1]["latent"],
    }
    _show(result, as_json)


def forecast(
    runs: Annotated[
        list[Path], typer.Argument(help="Folder of a run, or several, whose members are pooled.")
    ],
    initial: Annotated[
        Path,
        typer.Option(
            help="Initial microstates: an .npy file, or a store, whose test split has them."
        ),
    ],
    horizon: Annotated[int, typer.Option(min=1, help="Frames ahead.")],
    out: Annotated[Path, typer.Option(help="Ensemble, an .npz file.")],
    samples: Annotated[int, typer.Option(min=1, help="Members of the ensemble.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the ensemble.")] = 0,
    y0: Annotated[
        Path | None, typer.Option("--y0", help="Macrostates of these microstates, an .npy file.")
    ] = None,
    device: DeviceName = "auto",
    as_json: Json = False,
) -> None:
    """Forecasts the observables, with their spread, from initial microstates.

    Of several runs of one system the members are pooled, and where the models disagree is said.
    """
    from .. import pipeline

    result = pipeline.forecast_file(
        runs, initial, out, horizon=horizon, members=samples, seed=seed, device=device, y0=y0
    )
    moments = (result.mean[0, -1].tolist(), result.std[0, -1].tolist())
    final = {
        symbol: {"mean": mean, "std": std, **({"unit": unit} if unit else {})}
        for symbol, unit, mean, std in zip(result.symbols, result.units, *moments, strict=True)
    }
    shape = dict(zip(("microstates", "members", "frames"), result.samples.shape, strict=False))
    time = {"time": result.times[-1]}
    if result.time_unit:
        time["time_unit"] = result.time_unit
    trust: dict[str, Any] = {"held": result.held, "warnings": list(result.warnings)}
    if result.disagreement is not None:
        trust["disagreement"] = result.disagreement.tolist()
    _show({"forecast": str(out), **shape, **time, "final": final, **trust}, as_json)


def evaluate(
    run: RunDir, data: DataDir, device: DeviceName = "auto", as_json: Json = False
) -> None:
    """Scores a run on the test split, beside closures, simple forecasts and the noise floor."""
    from .. import pipeline
    from ..report.tables import score_grid, tabulate_runs, trust_grid
    from ..runs import Run

    scores = pipeline.evaluate_run(run, data, device=device)
    record = Run.open(run).read_record()
    trust, crps = record.trust, record.crps
    assert trust is not None
    if as_json:
        plain = {key: asdict(score) for key, score in scores.items()}
        result = {"run": str(run), "scores": plain, "crps": crps, "trust": trust.as_dict()}
        _show(result, as_json)
        return
    name, *others = scores  # the model's own score comes first
    baselines = {key: scores[key] for key in others}
    print(score_grid(tabulate_runs({name: scores[name]}, baselines)).markdown())
    print(trust_grid({name: [trust]}).markdown())
    print(f"CRPS against single trajectories: {_write_value(crps)}")
    for test in filter(None, (trust.calibration, trust.markov)):
        print(test)


def report(
    runs: RunDirs,
    out: Annotated[Path, typer.Option(help="Folder for page and figures.")],
    as_json: Json = False,
) -> None:
    """Writes one self-contained page, its figures and the scores."""
    from .. import pipeline

    _show({"report": str(pipeline.report_runs(runs, out))}, as_json)


def record(
    runs: RunDirs,
    out: Annotated[Path, typer.Option(help="Folder of an experiment, such as results/sirs.")],
    as_json: Json = False,
) -> None:
    """Copies the records of evaluated runs: scores, recipe, curves and provenance."""
    from .. import pipeline

    _show({"kept": [str(path) for path in pipeline.record_runs(runs, out)]}, as_json)


def results(
    folder: Annotated[Path, typer.Argument(help="Folder of experiments.")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Prints every recorded score: of methods, noise floor, closures and simple forecasts."""
    from .. import pipeline
    from ..report.tables import comparison_grid, trust_grid

    found = pipeline.read_results(folder)
    if as_json:
        _show({name: results.as_dict() for name, results in found.items()}, True)
        return
    for name, results in found.items():
        print(f"{name}\n\n{comparison_grid(results.comparison).markdown()}")
        if results.trusts:
            print(trust_grid(results.trusts).markdown())


def demo(
    out: Annotated[Path, typer.Option(help="Folder for data, runs and report.")] = Path(
        "runs/demo"
    ),
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Simulates a small SIRS epidemic, trains four methods and writes a page, in some minutes."""
    from ..demo import run_demo

    result = run_demo(out, seed=seed)
    if as_json:
        scores = {key: asdict(score) for key, score in result.scores.items()}
        _show({"report": str(result.page), "scores": scores}, as_json)
    else:
        print(f"{result.compared.table}\nreport: {result.page}")


def compare(
    recipe: RecipeFile,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for data, runs, table and page; default: runs/compare-RECIPE."),
    ] = None,
    methods: Annotated[str, typer.Option(help="Names such as tampl,jld; or all.")] = "all",
    seeds: SeedList = None,
    data: CampaignData = None,
    budget_s: Budget = None,
    device: DeviceName = "auto",
    side_by_side: SideBySide = 1,
    memory: Memory = None,
    dask: Dask = None,
    as_json: Json = False,
) -> None:
    """Compares methods over seeds: trains and evaluates missing runs, prints the table.

    Started by torchrun, several processes share every training.
    """
    from ..campaign import Resources
    from ..comparisons import compare
    from ..pipeline import joined
    from ..recipes import read_recipe

    with joined(device) as ranks:
        compared = compare(
            read_recipe(recipe),
            out or Path("runs") / f"compare-{recipe.stem}",
            methods=None if methods == "all" else _split(methods),
            seeds=_parse_seeds(seeds),
            resources=Resources(
                data=data,
                budget_s=budget_s,
                device=device,
                side_by_side=side_by_side,
                memory=_to_bytes(memory),
                dask=dask,
                ranks=ranks,
            ),
        )
    if as_json:
        _show(compared.record, as_json)
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
    seeds: SeedList = None,
    epochs: Epochs = None,
    test: Annotated[bool, typer.Option(help="Score on the test split too, or not.")] = True,
    data: CampaignData = None,
    budget_s: Budget = None,
    device: DeviceName = "auto",
    side_by_side: SideBySide = 1,
    memory: Memory = None,
    dask: Dask = None,
    as_json: Json = False,
) -> None:
    """Varies one setting of a method: errors and latent scale for each value.

    Started by torchrun, several processes share every training.
    """
    from ..campaign import Resources
    from ..comparisons import sweep
    from ..pipeline import joined
    from ..recipes import Axis, parse_setting, read_recipe

    with joined(device) as ranks:
        chosen = read_recipe(recipe).of(method).with_epochs(epochs)
        key, values = parse_setting(setting)
        swept = sweep(
            chosen,
            out or Path("runs") / f"sweep-{recipe.stem}-{method}-{key}",
            Axis.find(chosen, method, key, values=values),
            seeds=_parse_seeds(seeds),
            test=test,
            resources=Resources(
                data=data,
                budget_s=budget_s,
                device=device,
                side_by_side=side_by_side,
                memory=_to_bytes(memory),
                dask=dask,
                ranks=ranks,
            ),
        )
    if as_json:
        _show(swept.record, as_json)
    else:
        print(swept.table)
    _say_unfinished(len(swept.comparison.waiting))


def studio(
    models: Annotated[
        list[Path] | None,
        typer.Argument(help="Runs, models or comparisons; default: the demo's, which is trained."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of a store, for its test states.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; beyond the loopback one with a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8420,
    browser: Annotated[bool, typer.Option(help="Whether to open the page in a browser.")] = True,
    device: DeviceName = "auto",
) -> None:
    """Opens a web page: paint a microstate and watch the forecast."""
    try:
        from ...studio.serve import open_studio
    except ImportError as error:
        raise InputError(f"{error}; the studio needs more: pip install 'tampl[studio]'") from error
    if not models:
        from ..demo import DEMO, prepare_demo

        models, data = [prepare_demo(DEMO)], data or DEMO / "data"
    open_studio(models, data=data, host=host, port=port, browser=browser, device=device)


def _show(result: dict[str, Any], as_json: bool) -> None:
    """Prints a result, one line for each key or one line of JSON."""
    if as_json:
        print(strict_json(result))
    else:
        print("\n".join(f"{key}: {_write_value(value)}" for key, value in result.items()))


def _write_value(value: object) -> str:
    if isinstance(value, tuple | list):
        return "; ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_write_value(part)}" for key, part in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _describe_store(store: "Store") -> dict[str, Any]:
    splits = {name: split.count for name, split in store.manifest.splits.items()}
    return {"store": str(store.path), "identity": store.manifest.identity, "splits": splits}


def _to_bytes(memory: float | None) -> float | None:
    return None if memory is None else memory * 2**30


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _parse_seeds(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in _split(text)]
    except ValueError as error:
        raise InputError(f"`seeds` is {text!r}; give integers such as 42,43,44") from error


def _say_unfinished(runs: int) -> None:
    if runs:
        say(f"the budget is spent and {runs} runs have not finished; the same command resumes")
