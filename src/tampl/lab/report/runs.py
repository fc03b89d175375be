"""From what runs leave behind to figures and one page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...evaluation.cases import Cases
from ...evaluation.claims import Peaks
from ...evaluation.health import find_collapse
from ...evaluation.metrics import FLOOR, Score
from ...files import replacing, strict_json
from .grids import score_text
from .names import name_of
from .page import Report, write_page
from .tables import ScoreTable, score_csv, score_grid

__all__ = [
    "SCORES_NOTE",
    "RunRecord",
    "collapse_lines",
    "draw_cases",
    "recipe_facts",
    "save_figures",
    "shown_labels",
    "training_seconds",
    "write_report",
    "write_texts",
]

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SHOWN_LABELS = (("K=1", "K=4"), ("half-plane", "four-bands"))
"""Families of initial microstates that differ much, for each system a slow and a fast one."""


SCORES_NOTE = (
    "Standardised units, frame t = 0 excluded; lower is better. RMSE compares ensemble means, "
    "MMD² scalar marginal distributions (Gaussian kernel of width 1, biased estimator). The noise "
    "floor is the expected score of a perfect model with ensembles of this size; the excess is "
    "what is left without that noise. N/A: a deterministic prediction has no distribution."
)


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
        data: Identity of the data that the run was evaluated on.
        history: One record per epoch.
        provenance: Hardware, versions, commit and command of the evaluation.
        training_provenance: The same of the training.
        peaks: Peaks of the simulation, the model and the closures.
        spread: The model's spread over the true one, by symbol; empty where it has none.
    """

    name: str
    method: str
    kind: str
    recipe: Mapping[str, Any]
    scores: Mapping[str, Score]
    cases: Cases
    data: str
    history: Sequence[Mapping[str, Any]]
    provenance: Mapping[str, Any]
    training_provenance: Mapping[str, Any] = field(default_factory=dict)
    peaks: Peaks = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The training seed."""
        return self.recipe["training"]["seed"]

    @property
    def baselines(self) -> dict[str, Score]:
        """The scores of what was not trained."""
        return {key: score for key, score in self.scores.items() if key != self.method}


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
    first = runs[0]
    table = ScoreTable({run.name: run.scores[run.method] for run in runs}, first.baselines)
    page = Report(
        title=f"{first.recipe['system']['name'].upper()}: forecasts from one microstate",
        tables=[score_grid(table)],
        note=SCORES_NOTE,
        remarks=collapse_lines(runs),
        summary=_summary(table),
        numbers=_numbers(table),
        facts=recipe_facts(first.recipe),
        wall_times=wall_times or {"training": training_seconds(first)},
        figures=figures,
        provenance=first.provenance,
    )
    write_page(page, out / "report.html")
    plain = {key: asdict(score) for key, score in {**table.runs, **table.baselines}.items()}
    write_texts(
        out,
        {
            "metrics.json": strict_json({"scores": plain}, indent=1) + "\n",
            "scores.md": score_grid(table).markdown(),
            "scores.tex": score_grid(table).latex(),
            "scores.csv": score_csv(table),
        },
    )
    return out / "report.html"


def write_texts(out: Path, texts: Mapping[str, str]) -> None:
    """Writes files by name, each complete or not at all."""
    for name, text in texts.items():
        with replacing(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def collapse_lines(runs: Sequence[RunRecord]) -> list[str]:
    """One line for each run whose latent scale had collapsed at its end."""
    lines = (_collapse_line(run) for run in runs)
    return [line for line in lines if line is not None]


def _collapse_line(run: RunRecord) -> str | None:
    collapse = find_collapse(run.history)
    if collapse is None:
        return None
    numbers = {"standard deviation {:.2g}": collapse.std}
    numbers["transition loss {:.2g} times the latent variance"] = collapse.ratio
    known = ", ".join(text.format(value) for text, value in numbers.items() if value is not None)
    return (
        f"{name_of(run.method)}, seed {run.seed}: the latent scale collapsed in epoch "
        f"{collapse.epoch}{f' ({known})' if known else ''}"
    )


def save_figures(
    drawn: "Mapping[str, Figure]", folder: Path, *, prefix: str = ""
) -> dict[str, bytes]:
    """Saves figures by name and returns them as PNG images.

    Arguments:
        drawn: The figures; a blank in a name is a hyphen in the file's.
        folder: Where to; it is made where it does not exist.
        prefix: What the files' names begin with.
    """
    from .figures import save_figure

    folder.mkdir(parents=True, exist_ok=True)
    images = {
        name: save_figure(figure, folder / f"{prefix}{name}".replace(" ", "-"))[0]
        for name, figure in drawn.items()
    }
    return {name: image.read_bytes() for name, image in images.items()}


def draw_cases(cases: Cases, kind: str) -> "dict[str, Figure]":
    """The figures of predictions and twins, for microstates of a kind."""
    from . import figures

    return {
        "predictions": figures.predictions(cases, kind, labels=shown_labels(cases)),
        "twins": figures.twins(cases, kind),
    }


def shown_labels(cases: Cases) -> tuple[str, ...] | None:
    """The families of `SHOWN_LABELS` that the cases have; None where figures show all families."""
    present = {case.label for case in cases.cases}
    return next((labels for labels in SHOWN_LABELS if present.issuperset(labels)), None)


def _figures(run: RunRecord, folder: Path) -> dict[str, bytes]:
    from . import figures

    drawn = draw_cases(run.cases, run.kind) | {
        "training": figures.training_curves(run.history),
        "latent": figures.latent_scale(run.history),
    }
    return save_figures(drawn, folder, prefix=f"{run.name}-")


def _numbers(table: ScoreTable) -> dict[str, str]:
    """The few numbers to see first: the first run's score and the floor's."""
    name, own = next(iter(table.runs.items()))
    numbers = {f"{name_of(name)}, RMSE": score_text(own.rmse)}
    if FLOOR in table.baselines:
        numbers[f"{name_of(FLOOR)}, RMSE"] = score_text(table.baselines[FLOOR].rmse)
    if own.mmd is not None:
        numbers[f"{name_of(name)}, MMD²"] = score_text(own.mmd)
    return numbers


def _summary(table: ScoreTable) -> str:
    name, own = next(iter(table.runs.items()))
    others = {name_of(key): score for key, score in table.runs.items() if key != name}
    others |= {name_of(key).lower(): score for key, score in table.baselines.items()}
    texts = ", ".join(f"{text} {score_text(score.rmse)}" for text, score in others.items())
    return (
        f"From one initial microstate, {name_of(name)} forecasts the mean macrostate with an RMSE "
        f"of {score_text(own.rmse)} standard deviations ({texts})."
    )


def recipe_facts(recipe: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The recipe's sections as groups of plain facts, tables within a section on their own."""
    groups: dict[str, dict[str, Any]] = {}
    for section in ("system", "data", "model", "training", "methods"):
        groups[section] = {}
        for key, value in recipe[section].items():
            nested = isinstance(value, Mapping)
            groups.update({f"{section}, {key}": dict(value)} if nested else {})
            groups[section].update({} if nested else {key: value})
    return {name.capitalize(): facts for name, facts in groups.items()}


def training_seconds(run: RunRecord) -> float:
    """How long a run was trained."""
    return sum(sum(record["seconds"].values()) for record in run.history)
