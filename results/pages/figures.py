"""The figures of the pages, drawn from kept runs."""

from collections.abc import Sequence
from pathlib import Path

from tampl.errors import InputError
from tampl.lab.recipes import resolve_system
from tampl.lab.report import figures
from tampl.lab.report.grids import in_reading_order
from tampl.lab.report.outputs import choose_case, choose_labels
from tampl.lab.runs import RunRecord
from tampl.lab.snapshots import Snapshots, take_snapshots
from tampl.system import System

from .claims import SCALES
from .records import SEED, Record, Records


def draw_column(records: Records, recipe: str, images: Path) -> list[Path]:
    """Writes `RECIPE-*.png`: predictions, comparison, strip of microstates, latent scales."""
    runs = records.runs(recipe)
    shown = _shown(runs)
    kind, cases = shown["tampl"].kind, shown["tampl"].cases
    labels = choose_labels(cases) or tuple(dict.fromkeys(case.label for case in cases.cases))
    strips = _strips(shown["tampl"], labels)
    case = choose_case(cases)
    drawn = {
        "predictions": figures.predictions(cases, kind, labels=labels),
        "comparison": figures.comparison(
            {method: run.cases for method, run in shown.items()},
            strips[case.label],
            index=case.index,
            kind=kind,
        ),
        "strip": figures.strip(strips, kind),
        "latent_scale": figures.latent_scales(
            {method: _histories(runs, method) for method in SCALES}
        ),
    }
    paths = {name: images / f"{recipe}-{name}.png" for name in drawn}
    for name, figure in drawn.items():
        paths[name].write_bytes(figures.png_bytes(figure))
    return list(paths.values())


def draw_predictions(runs: Sequence[RunRecord], path: Path) -> None:
    """Writes what TAMPL and closures say of the shown test microstates."""
    first = _shown(runs)["tampl"]
    figure = figures.predictions(first.cases, first.kind, labels=choose_labels(first.cases))
    path.write_bytes(figures.png_bytes(figure))


def draw_comparison(runs: Sequence[RunRecord], path: Path) -> None:
    """Writes the comparison of all methods on one test microstate."""
    shown = _shown(runs)
    first = shown["tampl"]
    case = choose_case(first.cases)
    figure = figures.comparison(
        {method: run.cases for method, run in shown.items()},
        take_snapshots(case, _system(first)),
        index=case.index,
        kind=first.kind,
    )
    path.write_bytes(figures.png_bytes(figure))


def _shown(runs: Sequence[RunRecord]) -> dict[str, RunRecord]:
    """The runs of the shown seed by method, in reading order."""
    found = {run.method: run for run in runs if run.seed == SEED}
    for method in SCALES:
        if method not in found:
            raise InputError(f"the kept runs lack {method} with seed {SEED}")
    return {method: found[method] for method in in_reading_order(found)}


def _histories(runs: Sequence[RunRecord], method: str) -> list[Sequence[Record]]:
    """The learning curves of a method, the shown seed's first."""
    own = [run for run in runs if run.method == method]
    return [run.history for run in sorted(own, key=lambda run: (run.seed != SEED, run.seed))]


def _strips(run: RunRecord, labels: Sequence[str]) -> dict[str, Snapshots]:
    """One simulated trajectory from the first microstate of each label."""
    system = _system(run)
    first = {case.label: case for case in reversed(run.cases.cases)}
    return {label: take_snapshots(first[label], system) for label in labels}


def _system(run: RunRecord) -> System:
    settings = dict(run.recipe["system"])
    return resolve_system(settings.pop("name"), settings)
