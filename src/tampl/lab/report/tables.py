"""The table of one run's or a few runs' scores.

One row for each run, then the rows that put it in perspective: noise floor, closures and mean
training trajectory. The excess is what remains when the noise of finite ensembles is taken away
(`tampl.evaluate.excess`). What has no distribution has no MMD (N/A).

The tables of a comparison: means over seeds with the excess over the floor, then differences.

A cell over fewer seeds than were asked for says how many it has. A difference is that of the
method to TAMPL, paired by seed: below zero the method is better. It comes with its 95 % interval
and what that says; an interval that holds zero is a tie.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...evaluation.comparison import ANCHOR, Comparison, Difference, Summary, order_baselines
from ...evaluation.metrics import FLOOR, Score, excess
from .grids import MISSING, Column, Grid, Line, csv_text, interval_text, score_text, spread_text
from .names import name_of

__all__ = [
    "Row",
    "ScoreTable",
    "comparison_csv",
    "comparison_grid",
    "difference_grid",
    "failure_lines",
    "rows",
    "score_csv",
    "score_grid",
]

_COLUMNS = (
    Column("Method"),
    Column("RMSE"),
    Column("excess", soft=True),
    Column("MMD²"),
    Column("excess", soft=True),
)


_CSV_HEADER = ("key", "method", "rmse", "rmse_excess", "mmd2", "mmd2_excess")


@dataclass(frozen=True)
class ScoreTable:
    """Scores of runs by name, and of what they are compared with."""

    runs: Mapping[str, Score]
    baselines: Mapping[str, Score]

    @classmethod
    def of_run(cls, scores: Mapping[str, Score]) -> "ScoreTable":
        """The scores of one evaluation, which begin with the model's own."""
        name, *others = scores
        return cls({name: scores[name]}, {key: scores[key] for key in others})


@dataclass(frozen=True)
class Row:
    """One line of the table; the floor has no excess, nor has anything without a floor."""

    key: str
    score: Score
    excess: Score | None
    baseline: bool

    @property
    def values(self) -> tuple[float | None, ...]:
        """The numbers in the order of the columns."""
        above = (None, None) if self.excess is None else (self.excess.rmse, self.excess.mmd)
        return self.score.rmse, above[0], self.score.mmd, above[1]


def rows(table: ScoreTable) -> list[Row]:
    """Rows in the order of the table: runs as given, then floor, closures, mean trajectory."""
    floor = table.baselines.get(FLOOR)
    own = [_row(key, score, floor, baseline=False) for key, score in table.runs.items()]
    return own + [
        _row(key, table.baselines[key], None if key == FLOOR else floor, baseline=True)
        for key in order_baselines(table.baselines)
    ]


def score_grid(table: ScoreTable) -> Grid:
    """The table for people."""
    return Grid(_COLUMNS, tuple(_line(row) for row in rows(table)))


def score_csv(table: ScoreTable) -> str:
    """The table as CSV with all digits."""
    return csv_text(_CSV_HEADER, ([row.key, name_of(row.key), *row.values] for row in rows(table)))


def _row(key: str, score: Score, floor: Score | None, *, baseline: bool) -> Row:
    return Row(key, score, None if floor is None else excess(score, floor), baseline)


def _line(row: Row) -> Line:
    # The floor has no excess by definition, which is not the same as one that cannot be had.
    missing = ("", "", MISSING, "") if row.key == FLOOR else (MISSING,) * 4
    numbers = (
        gap if value is None else score_text(value)
        for value, gap in zip(row.values, missing, strict=True)
    )
    cells = (name_of(row.key), *numbers)
    return Line(cells, strong=not row.baseline, baseline=row.baseline)


_SCORE_COLUMNS = (
    Column("Method"),
    Column("RMSE"),
    Column("excess", soft=True),
    Column("MMD²"),
    Column("excess", soft=True),
    Column("latent std"),
    Column("collapsed"),
)


_DIFFERENCE_COLUMNS = (
    Column(f"Difference to {name_of(ANCHOR)}"),
    Column("RMSE"),
    Column("95 % interval", soft=True),
    Column("verdict"),
    Column("MMD²"),
    Column("95 % interval", soft=True),
    Column("verdict"),
)


_CSV_HEADER = (
    *("key", "method", "n"),
    *("rmse", "rmse_std", "rmse_excess"),
    *("rmse_difference", "rmse_low", "rmse_high", "rmse_verdict"),
    *("mmd2", "mmd2_std", "mmd2_excess"),
    *("mmd2_difference", "mmd2_low", "mmd2_high", "mmd2_verdict"),
    *("latent_std", "collapsed", "failed"),
)


@dataclass(frozen=True)
class _Metric:
    """What the table says of one row by one metric; None where there is nothing to say."""

    summary: Summary | None = None
    excess: float | None = None
    difference: Difference | None = None


def comparison_grid(comparison: Comparison) -> Grid:
    """Scores for people: methods in order, then floor, closures and mean trajectory."""
    methods = tuple(
        Line(_method_cells(comparison, method), strong=method == ANCHOR)
        for method in comparison.methods
    )
    baselines = tuple(
        Line(_baseline_cells(comparison, key), baseline=True) for key in comparison.baselines
    )
    return Grid(_SCORE_COLUMNS, methods + baselines)


def difference_grid(comparison: Comparison) -> Grid:
    """Differences to TAMPL for people: one line for each other method with a seed in common."""
    wanted = len(comparison.seeds)
    lines = tuple(
        Line((name_of(key), *_apart(pair.rmse, wanted), *_apart(pair.mmd, wanted)))
        for key, pair in comparison.paired.items()
    )
    return Grid(_DIFFERENCE_COLUMNS, lines)


def comparison_csv(comparison: Comparison) -> str:
    """The table as CSV with all digits."""
    keys = (*comparison.methods, *comparison.baselines)
    return csv_text(_CSV_HEADER, (_csv_line(comparison, key) for key in keys))


def failure_lines(comparison: Comparison) -> list[str]:
    """One line for each run that failed."""
    return [
        f"{name_of(run.method)}, seed {run.seed}: failed; {run.reason}"
        for run in comparison.failed
    ]


def _metrics(comparison: Comparison, key: str) -> tuple[_Metric, _Metric]:
    """RMSE and MMD of a row."""
    row, pair = comparison.scores.get(key), comparison.paired.get(key)
    if row is None:
        return _Metric(), _Metric()
    above = (None, None) if row.excess is None else (row.excess.rmse, row.excess.mmd)
    apart = (None, None) if pair is None else (pair.rmse, pair.mmd)
    return _Metric(row.rmse, above[0], apart[0]), _Metric(row.mmd, above[1], apart[1])


def _method_cells(comparison: Comparison, method: str) -> tuple[str, ...]:
    row, wanted = comparison.scores.get(method), len(comparison.seeds)
    if row is None:
        waits = any(method == other for other, _ in comparison.waiting)
        blank = [""] * (len(_SCORE_COLUMNS) - 2)
        return (name_of(method), "not yet" if waits else "failed", *blank)
    rmse, mmd = _metrics(comparison, method)
    cells = (*_metric_cells(rmse, wanted), *_metric_cells(mmd, wanted))
    latent = MISSING if row.latent_std is None else f"{row.latent_std:.3g}"
    collapsed = f"{len(row.collapsed)} of {len(row.seeds)}" if row.collapsed else "no"
    return (name_of(method), *cells, latent, collapsed)


def _baseline_cells(comparison: Comparison, key: str) -> tuple[str, ...]:
    rmse, mmd = (_metric_cells(metric, 1) for metric in _metrics(comparison, key))
    if key == FLOOR:  # no excess by definition, which is not the same as one that is unknown
        rmse, mmd = (rmse[0], ""), (mmd[0], "")
    return (name_of(key), *rmse, *mmd, "", "")


def _metric_cells(metric: _Metric, wanted: int) -> tuple[str, str]:
    above = MISSING if metric.excess is None else score_text(metric.excess)
    return _spread(metric.summary, wanted), above


def _spread(summary: Summary | None, wanted: int) -> str:
    if summary is None:
        return MISSING
    return f"{spread_text(summary.mean, summary.std)}{_count(summary.values, wanted)}"


def _apart(difference: Difference | None, wanted: int) -> tuple[str, str, str]:
    if difference is None:
        return MISSING, "", ""
    mean = f"{score_text(difference.mean, '+')}{_count(difference.values, wanted)}"
    if difference.low is None or difference.high is None:
        return mean, "", ""
    interval = interval_text(difference.low, difference.high)
    return mean, interval, "" if difference.verdict is None else difference.verdict.value


def _count(values: tuple[float, ...], wanted: int) -> str:
    return "" if len(values) == wanted else f" (n = {len(values)})"


def _csv_line(comparison: Comparison, key: str) -> list[object]:
    row, metrics = comparison.scores.get(key), _metrics(comparison, key)
    return [
        key,
        name_of(key),
        0 if row is None else len(row.rmse.values),
        *(cell for metric in metrics for cell in _csv_cells(metric)),
        None if row is None else row.latent_std,
        "" if row is None else " ".join(map(str, row.collapsed)),
        "; ".join(run.reason for run in comparison.failed if run.method == key),
    ]


def _csv_cells(metric: _Metric) -> list[object]:
    summary, difference = metric.summary, metric.difference
    mean, std = (None, None) if summary is None else (summary.mean, summary.std)
    if difference is None:
        return [mean, std, metric.excess, None, None, None, None]
    verdict = None if difference.verdict is None else difference.verdict.value
    interval = [difference.mean, difference.low, difference.high]
    return [mean, std, metric.excess, *interval, verdict]
