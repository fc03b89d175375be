"""From the runs of a comparison to its tables, figures and page."""

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...evaluation.cases import Case, Cases
from ...evaluation.comparison import ANCHOR, Comparison, FailedRun, RunScore, compare_scores
from ...evaluation.health import find_collapse, latent_std
from ...evaluation.metrics import FLOOR
from ...files import strict_json
from ..snapshots import Snapshots
from .grids import Grid, score_text
from .names import name_of
from .page import Report, write_page
from .runs import (
    SCORES_NOTE,
    RunRecord,
    collapse_lines,
    draw_cases,
    recipe_facts,
    save_figures,
    shown_labels,
    training_seconds,
    write_texts,
)
from .tables import comparison_csv, comparison_grid, difference_grid, failure_lines

__all__ = ["compare_runs", "shown_case", "write_comparison"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_NOTE = (
    f"A cell is the mean over training seeds with the sample standard deviation. Differences to "
    f"{name_of(ANCHOR)} are paired by seed, with a 95 % interval of Student's t for each by "
    f"itself; an interval that holds zero is a tie. Latent std is the spread of the latent "
    f"coordinates in the best model's epoch, before weights are averaged."
)


def compare_runs(
    runs: Sequence[RunRecord],
    *,
    methods: Sequence[str],
    seeds: Sequence[int],
    failed: Sequence[FailedRun] = (),
) -> Comparison:
    """Compares evaluated runs of several methods and seeds."""
    scores = [
        RunScore(
            method=run.method,
            seed=run.seed,
            score=run.scores[run.method],
            latent_std=latent_std(run.history),
            collapsed=find_collapse(run.history) is not None,
        )
        for run in runs
    ]
    baselines = runs[0].baselines if runs else {}
    return compare_scores(scores, baselines, methods=methods, seeds=seeds, failed=failed)


def shown_case(cases: Cases) -> Case:
    """The test microstate that the comparison figure shows."""
    labels = shown_labels(cases) or (cases.cases[0].label,)
    return next(case for case in cases.cases if case.label == labels[-1])


def write_comparison(
    comparison: Comparison,
    runs: Sequence[RunRecord],
    out: Path,
    *,
    recipe: Mapping[str, Any],
    record: Mapping[str, Any],
    snapshots: Snapshots | None,
) -> None:
    """Writes `report.html`, `scores.*` and `figures/`.

    Arguments:
        comparison: The numbers.
        runs: The runs that are done.
        out: The folder.
        recipe: The recipe of all runs, as tables.
        record: The comparison as plain data, for `scores.json`.
        snapshots: A trajectory from the shown case's microstate; None where no run is done.
    """
    grids, remarks = _grids(comparison), _remarks(comparison, runs)
    out.mkdir(parents=True, exist_ok=True)
    write_texts(out, _texts(grids, remarks))
    write_texts(
        out,
        {
            "scores.json": strict_json(record, indent=1) + "\n",
            "scores.csv": comparison_csv(comparison),
        },
    )
    figures = {} if snapshots is None else _figures(comparison, runs, snapshots)
    page = Report(
        title=f"{recipe['system']['name'].upper()}: methods compared",
        tables=grids,
        note=f"{_NOTE} {SCORES_NOTE}",
        remarks=remarks,
        summary=_summary(comparison),
        numbers=_numbers(comparison),
        facts=recipe_facts(_compared_recipe(comparison, recipe)),
        wall_times=_training_times(comparison, runs),
        figures=save_figures(figures, out / "figures"),
        provenance=runs[0].provenance if runs else {},
    )
    write_page(page, out / "report.html")


def _texts(grids: Sequence[Grid], remarks: Sequence[str]) -> dict[str, str]:
    items, comments = ("".join(f"{mark} {line}\n" for line in remarks) for mark in "-%")
    return {
        "scores.md": "\n".join([*(grid.markdown() for grid in grids), items]),
        "scores.tex": "\n".join([*(grid.latex() for grid in grids), comments]),
    }


def _grids(comparison: Comparison) -> list[Grid]:
    scores, differences = comparison_grid(comparison), difference_grid(comparison)
    return [scores, differences] if differences.lines else [scores]


def _remarks(comparison: Comparison, runs: Sequence[RunRecord]) -> list[str]:
    lines = [*failure_lines(comparison), *collapse_lines(runs)]
    waiting, total = len(comparison.waiting), len(comparison.methods) * len(comparison.seeds)
    return [*lines, f"{waiting} of {total} runs are still to be made"] if waiting else lines


def _figures(
    comparison: Comparison, runs: Sequence[RunRecord], snapshots: Snapshots
) -> dict[str, "Figure"]:
    from . import figures

    by_method = {
        method: [run for run in runs if run.method == method] for method in comparison.methods
    }
    first_seed = {run.method: run.cases for run in runs if run.seed == comparison.seeds[0]}
    histories = {
        method: [run.history for run in found] for method, found in by_method.items() if found
    }
    drawn = {"latent scales": figures.latent_scales(histories)}
    if ANCHOR in first_seed:
        drawn |= draw_cases(first_seed[ANCHOR], runs[0].kind)
    if first_seed:
        drawn["comparison"] = figures.comparison(
            {method: first_seed[method] for method in comparison.methods if method in first_seed},
            snapshots,
            index=shown_case(runs[0].cases).index,
            kind=runs[0].kind,
        )
    return drawn


def _ranking(comparison: Comparison) -> list[str]:
    """The methods that have scores, lowest mean RMSE first."""
    scored = [method for method in comparison.methods if method in comparison.scores]
    # What is not a number comes last: a comparison with NaN would leave any order.
    means = {method: comparison.scores[method].rmse.mean for method in scored}
    return sorted(scored, key=lambda method: (isnan(means[method]), means[method]))


def _summary(comparison: Comparison) -> str:
    methods, seeds = len(comparison.methods), len(comparison.seeds)
    text = f"{methods} method{'s' * (methods > 1)}, {seeds} training seed{'s' * (seeds > 1)} each."
    ranking = _ranking(comparison)
    if not ranking:
        return f"{text} No run is done yet."
    texts = [f"{name_of(key)} {score_text(comparison.scores[key].rmse.mean)}" for key in ranking]
    return f"{text} Mean RMSE from low to high: {', '.join(texts)}."


def _numbers(comparison: Comparison) -> dict[str, str]:
    others = [method for method in _ranking(comparison) if method != ANCHOR]
    shown = [key for key in (ANCHOR, *others[:1], FLOOR) if key in comparison.scores]
    return {f"{name_of(key)}, RMSE": score_text(comparison.scores[key].rmse.mean) for key in shown}


def _compared_recipe(comparison: Comparison, recipe: Mapping[str, Any]) -> dict[str, Any]:
    training = {key: value for key, value in recipe["training"].items() if key != "seed"}
    settings = {method: recipe["methods"][method] for method in comparison.methods}
    seeds = {"seeds": list(comparison.seeds)}
    return {**recipe, "training": seeds | training, "methods": settings}


def _training_times(comparison: Comparison, runs: Sequence[RunRecord]) -> dict[str, float]:
    by_method = {
        method: [training_seconds(run) for run in runs if run.method == method]
        for method in comparison.methods
    }
    return {
        f"training, {name_of(method)}": sum(times) for method, times in by_method.items() if times
    }
