"""From what runs leave behind to figures and one page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..atomic import replacing
from ..evaluate.cases import Cases
from ..evaluate.metrics import Score
from ..records import strict_json
from .names import name_of
from .page import Report, write_page
from .tables import to_csv, to_latex, to_markdown

__all__ = ["RunRecord", "write_report"]

SHOWN_LABELS = ("K=1", "K=4")
"""Families of initial microstates in the paper's prediction figure; without them all are shown."""


@dataclass(frozen=True)
class RunRecord:
    """An evaluated run as it lies on disk.

    Attributes:
        name: What the table calls it.
        method: Name of the method, under which its own score stands.
        kind: Kind of the microstates.
        recipe: The resolved recipe, as tables.
        scores: Scores by name.
        cases: The cases to look at.
        history: One record per epoch.
        provenance: Hardware, versions, commit and command.
    """

    name: str
    method: str
    kind: str
    recipe: Mapping[str, Any]
    scores: Mapping[str, Score]
    cases: Cases
    history: Sequence[Mapping[str, Any]]
    provenance: Mapping[str, Any]


def write_report(
    runs: Sequence[RunRecord], out: Path, *, wall_times: Mapping[str, float] | None = None
) -> Path:
    """Writes the page, `metrics.json`, `scores.*` and `figures/`; returns the page's path.

    Arguments:
        runs: The runs, one at least; the first one's facts head the page.
        out: The folder.
        wall_times: Seconds by part, where they are known.
    """
    figures = {
        (name if run is runs[0] else f"{name}, {run.name}"): png
        for run in runs
        for name, png in _figures(run, out / "figures").items()
    }
    scores = _scores(runs)
    first = runs[0]
    page = Report(
        title=f"{first.recipe['system']['name'].upper()}: forecasts from one microstate",
        scores=scores,
        summary=_summary(scores),
        facts=_facts(first.recipe),
        wall_times=wall_times or _training_time(first),
        figures=figures,
        provenance=first.provenance,
    )
    write_page(page, out / "report.html")
    plain = {name: asdict(score) for name, score in scores.items()}
    tables = {
        "metrics.json": strict_json({"scores": plain}, indent=1) + "\n",
        "scores.md": to_markdown(scores),
        "scores.tex": to_latex(scores),
        "scores.csv": to_csv(scores),
    }
    for name, text in tables.items():
        with replacing(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return out / "report.html"


def _figures(run: RunRecord, folder: Path) -> dict[str, bytes]:
    from . import figures

    present = {case.label for case in run.cases.cases}
    labels = list(SHOWN_LABELS) if present.issuperset(SHOWN_LABELS) else None
    drawn = {
        "predictions": figures.predictions(run.cases, run.kind, labels=labels),
        "twins": figures.twins(run.cases, run.kind),
        "training": figures.training_curves(run.history),
        "latent": figures.latent_scale(run.history),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        figures.save_figure(figure, folder / f"{run.name.replace(' ', '-')}-{name}")
    return {name: figures.png_bytes(figure) for name, figure in drawn.items()}


def _scores(runs: Sequence[RunRecord]) -> dict[str, Score]:
    """The runs' own scores under their names, then what they are compared with."""
    own = {run.name: run.scores[run.method] for run in runs}
    others = {key: score for key, score in runs[0].scores.items() if key != runs[0].method}
    return own | others


def _summary(scores: Mapping[str, Score]) -> str:
    name, own = next(iter(scores.items()))
    others = ", ".join(
        f"{name_of(key).lower()} {score.rmse:.3f}" for key, score in list(scores.items())[1:]
    )
    return (
        f"From one initial microstate, {name_of(name)} forecasts the mean macrostate with an RMSE "
        f"of {own.rmse:.3f} standard deviations ({others})."
    )


def _facts(recipe: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The recipe's sections as groups of plain facts, tables within a section on their own."""
    groups: dict[str, dict[str, Any]] = {}
    for section in ("system", "data", "model", "training", "methods"):
        groups[section] = {}
        for key, value in recipe[section].items():
            nested = isinstance(value, Mapping)
            groups.update({f"{section}, {key}": dict(value)} if nested else {})
            groups[section].update({} if nested else {key: value})
    return {name.capitalize(): facts for name, facts in groups.items()}


def _training_time(run: RunRecord) -> dict[str, float]:
    return {"training": sum(sum(record["seconds"].values()) for record in run.history)}
