"""The figures of the pages, drawn from kept runs."""

from collections.abc import Sequence
from pathlib import Path

from tampl.config import resolve_system
from tampl.errors import InputError
from tampl.evaluate.snapshots import Snapshots, take_snapshots
from tampl.report import figures
from tampl.report.comparisons import shown_case
from tampl.report.names import in_reading_order
from tampl.report.runs import RunRecord, shown_labels
from tampl.systems import System

from .records import Records
from .sirs_claims import SCALES

SEED = 42
"""Of the runs that are shown."""


def draw_sirs(records: Records, images: Path) -> list[Path]:
    """Writes `sirs-*.png`: predictions, comparison, strip of microstates, latent scales."""
    runs = {method: _runs(records, method) for method in records.comparisons["sirs"].methods}
    shown = {method: own[0] for method, own in runs.items() if own[0].seed == SEED}
    for method in SCALES:
        if method not in shown:
            raise InputError(f"{records.folder / 'sirs'} lacks {method} with seed {SEED}")
    kind, cases = shown["tampl"].kind, shown["tampl"].cases
    labels = shown_labels(cases) or tuple(dict.fromkeys(case.label for case in cases.cases))
    strips = _strips(shown["tampl"], labels)
    case = shown_case(cases)
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
            {method: [run.history for run in runs[method]] for method in SCALES}
        ),
    }
    paths = {name: images / f"sirs-{name}.png" for name in drawn}
    for name, figure in drawn.items():
        paths[name].write_bytes(figures.png_bytes(figure))
    return list(paths.values())


def draw_comparison(runs: Sequence[RunRecord], path: Path) -> None:
    """Writes the comparison of the runs of the shown seed on one test microstate."""
    shown = {run.method: run for run in runs if run.seed == SEED}
    first = shown["tampl"]
    case = shown_case(first.cases)
    figure = figures.comparison(
        {method: shown[method].cases for method in in_reading_order(shown)},
        take_snapshots(case, _system(first)),
        index=case.index,
        kind=first.kind,
    )
    path.write_bytes(figures.png_bytes(figure))


def _runs(records: Records, method: str) -> list[RunRecord]:
    """The runs of a method, the shown seed first."""
    own = [run for run in records.runs("sirs") if run.method == method]
    return sorted(own, key=lambda run: (run.seed != SEED, run.seed))


def _strips(run: RunRecord, labels: Sequence[str]) -> dict[str, Snapshots]:
    """One simulated trajectory from the first microstate of each label."""
    system = _system(run)
    first = {case.label: case for case in reversed(run.cases.cases)}
    return {label: take_snapshots(first[label], system) for label in labels}


def _system(run: RunRecord) -> System:
    settings = dict(run.recipe["system"])
    return resolve_system(settings.pop("name"), settings)
