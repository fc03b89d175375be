"""The outputs of a report, a comparison and a sweep: tables, figures and a page.

report        report.html, metrics.json, scores.md|tex|csv, figures/
comparison    report.html, scores.json|md|tex|csv, figures/
sweep         sweep.json|md, figures/sweep.png|pdf
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...evaluation.cases import Case, Cases
from ...evaluation.comparison import ANCHOR, Comparison
from ...evaluation.health import find_collapse
from ...evaluation.metrics import FLOOR
from ...files import strict_json, write_texts
from ..runs import RunRecord
from ..snapshots import Snapshots
from .grids import name_of, score_text
from .page import Report, write_page
from .tables import (
    comparison_csv,
    comparison_grid,
    difference_grid,
    score_csv,
    score_grid,
    sweep_grid,
    tabulate_runs,
)

__all__ = [
    "choose_case",
    "choose_labels",
    "describe_collapses",
    "write_comparison",
    "write_report",
    "write_sweep",
]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_LABELS = (("K=1", "K=4"), ("half-plane", "four-bands"))
"""Families of initial microstates that differ much: for each system a slow and a fast one."""

_SCORES_NOTE = (
    "Standardised units, frame t = 0 excluded; lower is better. RMSE compares ensemble means, "
    "MMD² scalar marginal distributions (Gaussian kernel of width 1, biased estimator). The noise "
    "floor is the expected score of a perfect model with ensembles of this size; the excess is "
    "the part of a score that this noise does not explain. N/A: a deterministic prediction has no "
    "distribution."
)
_COMPARISON_NOTE = (
    f"A cell is the mean over training seeds with the sample standard deviation. Differences to "
    f"{name_of(ANCHOR)} are paired by seed, with a 95 % interval of Student's t for each by "
    f"itself; an interval that holds zero is a tie. Latent std is the spread of the latent "
    f"coordinates in the best model's epoch, before weights are averaged."
)


def write_report(
    runs: Mapping[str, RunRecord], out: Path, *, wall_times: Mapping[str, float] | None = None
) -> Path:
    """Writes the page, tables and figures of runs; returns the page's path.

    Arguments:
        runs: The runs by the name in the table, one at least; the page describes the first one.
        out: The folder.
        wall_times: Seconds by part, where they are known.
    """
    from . import figures

    out.mkdir(parents=True, exist_ok=True)
    (name, first), images = next(iter(runs.items())), {}
    for key, run in runs.items():
        drawn = _draw_cases(run.cases, run.kind) | {
            "training": figures.training_curves(run.history),
            "latent": figures.latent_scale(run.history),
        }
        for title, png in _save_figures(drawn, out / "figures", prefix=f"{key}-").items():
            images[title if run is first else f"{title}, {key}"] = png
    own = {key: run.scores[run.method] for key, run in runs.items()}
    table = tabulate_runs(own, first.baselines)
    grid, score = score_grid(table), own[name]
    numbers = {f"{name_of(name)}, RMSE": score.rmse}
    if FLOOR in first.baselines:
        numbers[f"{name_of(FLOOR)}, RMSE"] = first.baselines[FLOOR].rmse
    if score.mmd is not None:
        numbers[f"{name_of(name)}, MMD²"] = score.mmd
    others = {name_of(key): other for key, other in own.items() if key != name}
    others |= {name_of(key).lower(): other for key, other in first.baselines.items()}
    texts = ", ".join(f"{text} {score_text(other.rmse)}" for text, other in others.items())
    page = Report(
        title=f"{first.recipe['system']['name'].upper()}: forecasts from one microstate",
        tables=[grid],
        note=_SCORES_NOTE,
        remarks=describe_collapses(list(runs.values())),
        summary=(
            f"From one initial microstate, {name_of(name)} forecasts the mean macrostate with an "
            f"RMSE of {score_text(score.rmse)} standard deviations ({texts})."
        ),
        numbers={key: score_text(value) for key, value in numbers.items()},
        facts=_list_facts(first.recipe),
        wall_times=wall_times or {"training": first.seconds},
        figures=images,
        provenance=first.provenance,
    )
    write_page(page, out / "report.html")
    plain = {key: asdict(value) for key, value in {**own, **first.baselines}.items()}
    write_texts(
        out,
        {
            "metrics.json": strict_json({"scores": plain}, indent=1) + "\n",
            "scores.md": grid.markdown(),
            "scores.tex": grid.latex(),
            "scores.csv": score_csv(table),
        },
    )
    return out / "report.html"


def write_comparison(
    comparison: Comparison,
    runs: Sequence[RunRecord],
    out: Path,
    *,
    recipe: Mapping[str, Any],
    record: Mapping[str, Any],
    snapshots: Snapshots | None,
) -> str:
    """Writes the page, tables and figures of a comparison; returns the table as Markdown.

    Arguments:
        comparison: The numbers.
        runs: The finished runs.
        out: The folder.
        recipe: The recipe of all runs, as tables.
        record: The comparison as plain data, for `scores.json`.
        snapshots: A trajectory from the microstate of `choose_case`; None without a run.
    """
    scores, differences = comparison_grid(comparison), difference_grid(comparison)
    grids = [scores, differences] if differences.lines else [scores]
    remarks = [*_describe_failures(comparison), *describe_collapses(runs)]
    remarks += _describe_waiting(comparison)
    items, comments = ("".join(f"{mark} {line}\n" for line in remarks) for mark in "-%")
    table = "\n".join([*(grid.markdown() for grid in grids), items])
    out.mkdir(parents=True, exist_ok=True)
    write_texts(
        out,
        {
            "scores.md": table,
            "scores.tex": "\n".join([*(grid.latex() for grid in grids), comments]),
            "scores.json": strict_json(record, indent=1) + "\n",
            "scores.csv": comparison_csv(comparison),
        },
    )
    ranking = _rank(comparison)
    others = [method for method in ranking if method != ANCHOR]
    shown = [key for key in (ANCHOR, *others[:1], FLOOR) if key in comparison.scores]
    times = {
        f"training, {name_of(method)}": sum(run.seconds for run in runs if run.method == method)
        for method in comparison.choices
        if method in comparison.scores
    }
    page = Report(
        title=f"{recipe['system']['name'].upper()}: methods compared",
        tables=grids,
        note=f"{_COMPARISON_NOTE} {_SCORES_NOTE}",
        remarks=remarks,
        summary=_summarize(comparison, ranking),
        numbers={
            f"{name_of(key)}, RMSE": score_text(comparison.scores[key].error) for key in shown
        },
        facts=_list_facts(_merge_seeds(recipe, comparison)),
        wall_times=times,
        figures=_save_figures(_draw_comparison(comparison, runs, snapshots), out / "figures"),
        provenance=runs[0].provenance if runs else {},
    )
    write_page(page, out / "report.html")
    return table


def write_sweep(comparison: Comparison, out: Path, *, record: Mapping[str, Any]) -> str:
    """Writes the table and the figure of a sweep; returns the table as Markdown.

    Arguments:
        comparison: The values compared.
        out: The folder.
        record: The sweep as plain data, for `sweep.json`.
    """
    from .figures import sensitivity

    out.mkdir(parents=True, exist_ok=True)
    key, values = record["key"], [row["value"] for row in record["rows"]]
    heading = f"{name_of(record['method'])}, {key}"
    remarks = [*_describe_failures(comparison, key), *_describe_waiting(comparison)]
    grid = sweep_grid(comparison, heading=heading, test=record["test"])
    table = "\n".join([grid.markdown(), *(f"- {line}" for line in remarks), ""])
    write_texts(out, {"sweep.json": strict_json(record, indent=1) + "\n", "sweep.md": table})
    figure = sensitivity(comparison, values, key=key)
    _save_figures({"sweep": figure}, out / "figures")
    return table


def choose_labels(cases: Cases) -> tuple[str, ...] | None:
    """The families of `SHOWN_LABELS` that the cases have; None where figures show all families."""
    present = {case.label for case in cases.cases}
    return next((labels for labels in SHOWN_LABELS if present.issuperset(labels)), None)


def choose_case(cases: Cases) -> Case:
    """The test microstate that the figure of a comparison shows."""
    labels = choose_labels(cases) or (cases.cases[0].label,)
    return next(case for case in cases.cases if case.label == labels[-1])


def describe_collapses(runs: Sequence[RunRecord]) -> list[str]:
    """One line for each run whose latent scale had collapsed at its end."""
    lines = []
    for run in runs:
        if (collapse := find_collapse(run.history)) is None:
            continue
        numbers = {
            "standard deviation {:.2g}": collapse.std,
            "transition loss {:.2g} times the latent variance": collapse.ratio,
        }
        known = [text.format(value) for text, value in numbers.items() if value is not None]
        line = f"the latent scale collapsed in epoch {collapse.epoch}"
        line += f" ({', '.join(known)})" if known else ""
        lines.append(f"{name_of(run.method)}, seed {run.seed}: {line}")
    return lines


def _describe_failures(comparison: Comparison, key: str | None = None) -> list[str]:
    """One line for each run that failed; choices are values of `key` or else methods."""
    return [
        f"{name_of(trial.choice) if key is None else f'{key} = {trial.choice}'}, seed "
        f"{trial.seed}: failed; {trial.failure}"
        for trial in comparison.failed
    ]


def _describe_waiting(comparison: Comparison) -> list[str]:
    waiting, total = len(comparison.waiting), len(comparison.choices) * len(comparison.seeds)
    return [f"{waiting} of {total} runs are still to be trained"] if waiting else []


def _rank(comparison: Comparison) -> list[str]:
    """The methods that have scores, lowest mean RMSE first."""
    errors = {
        method: comparison.scores[method].error
        for method in comparison.choices
        if method in comparison.scores
    }
    # NaN comes last: a comparison with NaN would leave any order.
    return sorted(errors, key=lambda method: (isnan(errors[method]), errors[method]))


def _summarize(comparison: Comparison, ranking: Sequence[str]) -> str:
    methods, seeds = len(comparison.choices), len(comparison.seeds)
    text = f"{methods} method{'s' * (methods > 1)}, {seeds} training seed{'s' * (seeds > 1)} each."
    if not ranking:
        return f"{text} No run has finished yet."
    texts = [f"{name_of(key)} {score_text(comparison.scores[key].error)}" for key in ranking]
    return f"{text} Mean RMSE from low to high: {', '.join(texts)}."


def _merge_seeds(recipe: Mapping[str, Any], comparison: Comparison) -> dict[str, Any]:
    """The recipe with all seeds in place of one, and the settings of the compared methods."""
    training = {key: value for key, value in recipe["training"].items() if key != "seed"}
    settings = {method: recipe["methods"][method] for method in comparison.choices}
    seeds = {"seeds": list(comparison.seeds)}
    return {**recipe, "training": seeds | training, "methods": settings}


def _list_facts(recipe: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The recipe's sections as groups of plain facts; a table within a section is a group."""
    groups: dict[str, dict[str, Any]] = {}
    for section in ("system", "data", "model", "training", "methods"):
        groups[section] = {}
        for key, value in recipe[section].items():
            nested = isinstance(value, Mapping)
            groups.update({f"{section}, {key}": dict(value)} if nested else {})
            groups[section].update({} if nested else {key: value})
    return {name.capitalize(): facts for name, facts in groups.items()}


def _draw_cases(cases: Cases, kind: str) -> "dict[str, Figure]":
    from . import figures

    return {
        "predictions": figures.predictions(cases, kind, labels=choose_labels(cases)),
        "twins": figures.twins(cases, kind),
    }


def _draw_comparison(
    comparison: Comparison, runs: Sequence[RunRecord], snapshots: Snapshots | None
) -> "dict[str, Figure]":
    from . import figures

    if not runs:
        return {}
    by_method = {
        method: [run.history for run in runs if run.method == method]
        for method in comparison.choices
    }
    histories = {method: found for method, found in by_method.items() if found}
    drawn = {"latent scales": figures.latent_scales(histories)}
    first_seed = {run.method: run for run in runs if run.seed == comparison.seeds[0]}
    if ANCHOR in first_seed:
        drawn |= _draw_cases(first_seed[ANCHOR].cases, runs[0].kind)
    cases = {
        method: first_seed[method].cases for method in comparison.choices if method in first_seed
    }
    if cases and snapshots is not None:
        index = choose_case(next(iter(cases.values()))).index
        drawn["comparison"] = figures.comparison(cases, snapshots, index=index, kind=runs[0].kind)
    return drawn


def _save_figures(
    drawn: "Mapping[str, Figure]", folder: Path, *, prefix: str = ""
) -> dict[str, bytes]:
    """Saves figures as PNG and PDF, and returns the PNG images by name."""
    from .figures import save_figure

    folder.mkdir(parents=True, exist_ok=True)
    images = {
        name: save_figure(figure, folder / f"{prefix}{name}".replace(" ", "-"))[0]
        for name, figure in drawn.items()
    }
    return {name: image.read_bytes() for name, image in images.items()}
