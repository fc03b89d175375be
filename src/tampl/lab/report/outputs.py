"""The outputs of a report, a comparison and a sweep: tables, figures and a page.

report        report.html, metrics.json, scores.md|tex|csv, figures/
comparison    report.html, scores.json|md|tex|csv, figures/
sweep         sweep.json|md, figures/sweep.png|pdf
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...description import Description
from ...evaluation.cases import Case, Cases
from ...evaluation.comparison import ANCHOR, Comparison, Summary, summarize, summarize_known
from ...evaluation.health import find_collapse, never_validated
from ...evaluation.metrics import FLOOR
from ...evaluation.trust import Trust
from ...files import strict_json, write_texts
from ...microstates import Microstate
from ..runs import RunRecord
from ..snapshots import Snapshots
from .grids import markdown_text, name_of, score_text, spread_text
from .introduction import (
    caption_cases,
    caption_comparison,
    caption_scales,
    caption_trust,
    describe_observables,
    find_closures,
    introduce,
    list_colours,
    read_description,
    start_alike,
)
from .page import Report, write_page
from .tables import (
    comparison_csv,
    comparison_grid,
    difference_grid,
    score_csv,
    score_grid,
    sweep_grid,
    tabulate_runs,
    trust_grid,
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

RECOMMENDED = "tampl+"
"""The method whose calibration a comparison shows, where it has a run of it."""

_LATENT_NOTE = (
    "Latent std is the spread of the latent coordinates in the best model's epoch, before weights "
    "are averaged."
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
    name, first = next(iter(runs.items()))
    images: dict[str, bytes] = {}
    captions: dict[str, str] = {}
    for key, run in runs.items():
        drawn = _draw_cases(run.cases, _find_kind(run)) | {
            **_draw_trust(run),
            "training": figures.training_curves(run.history),
            "latent": figures.latent_scale(run.history),
        }
        texts = caption_cases(run.cases, run.method) | caption_trust(run.method)
        for title, png in _save_figures(drawn, out / "figures", prefix=f"{key}-").items():
            text, place = texts.get(title, ""), title
            if run is not first:
                text, place = f"{name_of(key)}, {title}. {text}".strip(), f"{title}, {key}"
            images[place], captions[place] = png, text
    own = {key: run.scores[run.method] for key, run in runs.items()}
    crps = {key: found for key, run in runs.items() if (found := summarize_known([run.crps]))}
    table = tabulate_runs(own, first.baselines)
    grid, score = score_grid(table, crps=crps), own[name]
    description = read_description(first.description)
    numbers = {f"{name_of(name)}, RMSE": score.rmse}
    if FLOOR in first.baselines:
        numbers[f"{name_of(FLOOR)}, RMSE"] = first.baselines[FLOOR].rmse
    if score.mmd is not None:
        numbers[f"{name_of(name)}, MMD²"] = score.mmd
    others = {name_of(key): other for key, other in own.items() if key != name}
    others |= {name_of(key).lower(): other for key, other in first.baselines.items()}
    listed = ", ".join(f"{text} {score_text(other.rmse)}" for text, other in others.items())
    aside = f" ({listed})" if listed else ""
    trust = trust_grid(_collect_trust({key: [run] for key, run in runs.items()}))
    page = Report(
        title=f"{first.recipe['system']['name'].upper()}: forecasts from one microstate",
        tables=[grid, trust] if trust.lines else [grid],
        note=f"{_write_note(table, crps)} {_write_trust_note(list(runs.values()))}",
        remarks=[
            *_describe_warnings(runs),
            *describe_collapses(list(runs.values())),
            *_describe_runs(list(runs.values())),
        ],
        summary=(
            f"From one initial microstate, {name_of(name)} forecasts the mean macrostate with an "
            f"RMSE of {score_text(score.rmse)} standard deviations{aside}."
        ),
        introduction=introduce(description, runs),
        numbers={key: score_text(value) for key, value in numbers.items()},
        facts=_list_facts(first.recipe, description),
        wall_times=wall_times or {"training": first.seconds},
        figures=images,
        captions=captions,
        colours=list_colours(description),
        provenance=first.provenance,
    )
    write_page(page, out / "report.html")
    plain = {key: asdict(value) for key, value in {**own, **first.baselines}.items()}
    metrics = {
        "scores": plain,
        "crps": {key: found.mean for key, found in crps.items()},
        "trust": {key: run.trust.as_dict() for key, run in runs.items() if run.trust is not None},
    }
    write_texts(
        out,
        {
            "metrics.json": strict_json(metrics, indent=1) + "\n",
            "scores.md": "\n".join(each.markdown() for each in page.tables),
            "scores.tex": "\n".join(each.latex() for each in page.tables),
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
    description: Description | None = None,
) -> str:
    """Writes the page, tables and figures of a comparison; returns the table as Markdown.

    Arguments:
        comparison: The numbers.
        runs: The finished runs.
        out: The folder.
        recipe: The recipe of all runs, as tables.
        record: The comparison as plain data, for `scores.json`.
        snapshots: A trajectory from the microstate of `choose_case`; None without a run.
        description: What the data are of.
    """
    runs = [replace(run, cases=_add_units(run.cases, description)) for run in runs]
    crps = _summarize_crps(runs)
    scores, differences = comparison_grid(comparison, crps=crps), difference_grid(comparison)
    by_method = {
        method: [run for run in runs if run.method == method] for method in comparison.choices
    }
    trust = trust_grid(_collect_trust(by_method))
    grids = [grid for grid in (scores, differences, trust) if grid is scores or grid.lines]
    remarks = [
        *_describe_failures(comparison),
        *_describe_warnings({f"{run.method} seed {run.seed}": run for run in runs}),
        *describe_collapses(runs),
        *_describe_runs(runs),
        *_describe_waiting(comparison),
    ]
    items = "".join(f"- {markdown_text(line)}\n" for line in remarks)
    comments = "".join(f"% {' '.join(line.split())}\n" for line in remarks)
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
        note=(
            f"{_write_seeds_note(comparison)} {_LATENT_NOTE} {_write_note(comparison, crps)} "
            f"{_write_trust_note(runs)}"
        ),
        remarks=remarks,
        summary=_summarize(comparison, ranking),
        introduction=introduce(description, comparison.choices),
        numbers={
            f"{name_of(key)}, RMSE": score_text(comparison.scores[key].error) for key in shown
        },
        facts=_list_facts(_merge_seeds(recipe, comparison), description),
        wall_times=times,
        figures=_save_figures(_draw_comparison(comparison, runs, snapshots), out / "figures"),
        captions=_caption_comparison(comparison, runs, snapshots),
        colours=list_colours(description),
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
    table = "\n".join([grid.markdown(), *(f"- {markdown_text(line)}" for line in remarks), ""])
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


def _add_units(cases: Cases, description: Description | None) -> Cases:
    """The cases with units, which those of older evaluations lack."""
    if description is None or cases.units:
        return cases
    units = tuple(observable.unit for observable in description.observables)
    return replace(cases, units=units, time_unit=description.time_unit)


def _describe_runs(runs: Sequence[RunRecord]) -> list[str]:
    """One line for each run whose model is of no use, or which was trained further."""
    useless = [
        f"{name_of(run.method)}, seed {run.seed}: no validation gave a finite error; do not rely "
        "on this model"
        for run in runs
        if never_validated(run.history)
    ]
    return useless + [
        f"{name_of(run.method)}, seed {run.seed}: extended from {step['from']} to {step['to']} "
        "epochs, so that its learning rate rose again in between"
        for run in runs
        for step in run.training_provenance.get("extended", [])
    ]


def _write_note(comparison: Comparison, crps: Mapping[str, Summary]) -> str:
    """The meaning of the columns that the table has."""
    rows = comparison.scores
    lines = [
        "Scores are in standard deviations of the training set, t = 0 excluded; lower is better."
    ]
    mmds = [row.mmd is not None for row in rows.values()]
    if FLOOR in rows:
        lines.append(
            "RMSE compares ensemble means, MMD² scalar marginal distributions (Gaussian kernel of "
            "width 1, biased estimator). The noise floor is the expected score of a perfect model "
            "with ensembles of this size; the excess is the part of a score that this noise does "
            "not explain."
        )
        if not all(mmds):
            lines.append("N/A: a deterministic prediction has no distribution.")
    elif rows:
        lines.append(
            "Each test microstate has one trajectory: RMSE compares the mean of the forecast with "
            "it, and there is neither a noise floor nor an MMD."
        )
    if closures := find_closures(comparison.baselines, comparison.choices):
        names = " and ".join(name_of(name) for name in closures)
        word = "are textbook equations" if len(closures) > 1 else "is a textbook equation"
        lines.append(f"{names} {word} for the observables.")
    if crps:
        values = ", ".join(f"{name_of(k)} {spread_text(v.mean, v.std)}" for k, v in crps.items())
        lines.append(
            "CRPS compares the distribution of the forecast with single trajectories (for a "
            f"deterministic one the mean absolute error): {values}."
        )
    return " ".join(lines)


def _write_trust_note(runs: Sequence[RunRecord]) -> str:
    """Whether scores were taken inside limits and envelope, and what the second table says."""
    if not runs or all(run.trust is None for run in runs):
        return "Scores are plain: nothing holds a forecast near the training data."
    text = (
        "Forecasts start from the observed macrostate where a method can use it, respect the "
        "limits of the observables, and are held inside the envelope of the training data; held "
        "is the fraction of members and times that had to be. A band covers the fraction of the "
        "simulated trajectories that lie inside it. Plain scores are those of the same models "
        "without any of this."
    )
    if any(run.trust is None for run in runs):
        text += " Runs of an earlier version have plain scores alone."
    return text


def _collect_trust(runs: Mapping[str, Sequence[RunRecord]]) -> dict[str, list[Trust]]:
    found = {key: [r.trust for r in own if r.trust is not None] for key, own in runs.items()}
    return {key: trusts for key, trusts in found.items() if trusts}


def _describe_warnings(runs: Mapping[str, RunRecord]) -> list[str]:
    """One line for each warning of the forecasts from test microstates."""
    return [
        f"{name_of(key.partition(' ')[0])}{key[len(key.partition(' ')[0]) :]}: {line}"
        for key, run in runs.items()
        for line in (() if run.trust is None else run.trust.warnings)
    ]


def _draw_trust(run: RunRecord) -> "dict[str, Figure]":
    from . import figures

    drawn = {}
    if run.trust is not None and run.trust.calibration is not None:
        drawn["calibration"] = figures.calibration(run.trust.calibration, run.cases.time_unit)
    if run.trust is not None and run.trust.markov is not None:
        drawn["markov"] = figures.markov(run.trust.markov, run.cases.symbols)
    return drawn


def _write_seeds_note(comparison: Comparison) -> str:
    if len(comparison.seeds) == 1:
        return f"Each method was trained once, with seed {comparison.seeds[0]}."
    text = "A cell is the mean over training seeds with the sample standard deviation."
    if comparison.paired:
        text += (
            f" Differences to {name_of(ANCHOR)} are paired by seed, with a 95 % interval of "
            "Student's t for each by itself; an interval that holds zero is a tie."
        )
    return text


def _summarize_crps(runs: Sequence[RunRecord]) -> dict[str, Summary]:
    """The CRPS of each method over seeds."""
    values: dict[str, list[float]] = {}
    for run in runs:
        if run.crps is not None:
            values.setdefault(run.method, []).append(run.crps)
    return {method: summarize(found) for method, found in values.items()}


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


def _list_facts(
    recipe: Mapping[str, Any], description: Description | None
) -> dict[str, dict[str, Any]]:
    """The recipe's sections as groups of plain facts; a table within a section is a group."""
    groups: dict[str, dict[str, Any]] = {}
    for section in ("system", "data", "model", "training", "methods", "chosen"):
        groups[section] = {}
        for key, value in recipe.get(section, {}).items():
            nested = isinstance(value, Mapping)
            groups.update({f"{section}, {key}": dict(value)} if nested else {})
            groups[section].update({} if nested else {key: value})
        if section == "system":
            groups["observables"] = dict(describe_observables(description))
    return {name.capitalize(): facts for name, facts in groups.items()}


def _find_kind(run: RunRecord) -> Microstate | str:
    """The kind of a run's microstates; its name where the record says no more."""
    description = read_description(run.description)
    return run.kind if description is None else description.microstate


def _draw_cases(cases: Cases, kind: Microstate | str) -> "dict[str, Figure]":
    from . import figures

    drawn = {"predictions": figures.predictions(cases, kind, labels=choose_labels(cases))}
    if start_alike(cases) is not None:
        drawn["twins"] = figures.twins(cases, kind)
    return drawn


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
    cases = _find_shown(comparison, runs)
    if cases:
        main = ANCHOR if ANCHOR in cases else next(iter(cases))
        drawn |= _draw_cases(cases[main], _find_kind(runs[0]))
        drawn |= _draw_trust(_find_trusted(comparison, runs))
    if cases and snapshots is not None:
        index = choose_case(next(iter(cases.values()))).index
        kind = _find_kind(runs[0])
        drawn["comparison"] = figures.comparison(cases, snapshots, index=index, kind=kind)
    return drawn


def _find_trusted(comparison: Comparison, runs: Sequence[RunRecord]) -> RunRecord:
    """The run whose calibration is shown: of the recommended method, or TAMPL, or the first."""
    first = {run.method: run for run in reversed(runs) if run.seed == comparison.seeds[0]}
    order = (RECOMMENDED, ANCHOR, *first)
    return next(first[method] for method in order if method in first)


def _find_shown(comparison: Comparison, runs: Sequence[RunRecord]) -> dict[str, Cases]:
    """The cases of each method's run with the first seed."""
    found = {run.method: run.cases for run in runs if run.seed == comparison.seeds[0]}
    return {method: found[method] for method in comparison.choices if method in found}


def _caption_comparison(
    comparison: Comparison, runs: Sequence[RunRecord], snapshots: Snapshots | None
) -> dict[str, str]:
    """The captions of the figures of `_draw_comparison`."""
    captions = {"latent scales": caption_scales(comparison.seeds)}
    cases = _find_shown(comparison, runs)
    if cases:
        main = ANCHOR if ANCHOR in cases else next(iter(cases))
        captions |= caption_cases(cases[main], main)
        captions |= caption_trust(_find_trusted(comparison, runs).method)
    if cases and snapshots is not None:
        captions["comparison"] = caption_comparison(
            cases,
            choose_case(next(iter(cases.values()))).index,
            seed=comparison.seeds[0],
            snapshots=len(snapshots.times),
        )
    return captions


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
