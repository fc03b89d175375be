"""The tables of scores: of single runs, of methods over seeds, and of the values of a sweep.

One line for each choice, then the baselines: noise floor, closures, mean training trajectory and
persistence. The excess is the part of a score that the noise of finite ensembles does not explain
(`tampl.evaluation.excess`). A deterministic prediction has no distribution and so no MMD (N/A).

Columns that no line has a value for are left out: without a noise floor there is no excess, and
with one trajectory from each test microstate no MMD; the CRPS stands in its place.

A cell over fewer seeds than were asked for says how many it has. A difference is that of a method
to TAMPL, paired by seed: below zero the method is better. Its 95 % interval stands beside it; an
interval that holds zero is a tie.
"""

from collections.abc import Mapping, Sequence
from itertools import compress

from ...calibration import LEVELS
from ...evaluation.comparison import (
    ANCHOR,
    Comparison,
    Difference,
    ScoreRow,
    Summary,
    Trial,
    compare_trials,
    summarize_known,
)
from ...evaluation.metrics import FLOOR, Score
from ...evaluation.trust import Trust
from .grids import (
    MISSING,
    Column,
    Grid,
    Line,
    csv_text,
    interval_text,
    name_of,
    score_text,
    spread_text,
)

__all__ = [
    "comparison_csv",
    "comparison_grid",
    "difference_grid",
    "score_csv",
    "score_grid",
    "sweep_grid",
    "tabulate_runs",
    "trust_grid",
]

_SCORES = (
    Column("RMSE"),
    Column("excess", soft=True),
    Column("MMD²"),
    Column("excess", soft=True),
)
_TRAINING = (Column("latent std"), Column("collapsed"))
_DIFFERENCES = (
    Column("RMSE"),
    Column("95 % interval", soft=True),
    Column("verdict"),
    Column("MMD²"),
    Column("95 % interval", soft=True),
    Column("verdict"),
)
Crps = Mapping[str, Summary]
"""The CRPS over seeds, by method or by name of a run."""

_CSV_SCORES = ("key", "method", "rmse", "rmse_excess", "mmd2", "mmd2_excess")
_CSV_COMPARISON = (
    *("key", "method", "n"),
    *("rmse", "rmse_std", "rmse_excess"),
    *("rmse_difference", "rmse_low", "rmse_high", "rmse_verdict"),
    *("mmd2", "mmd2_std", "mmd2_excess"),
    *("mmd2_difference", "mmd2_low", "mmd2_high", "mmd2_verdict"),
    *("latent_std", "collapsed", "failed"),
)


def tabulate_runs(scores: Mapping[str, Score], baselines: Mapping[str, Score]) -> Comparison:
    """The scores of single runs by name, as a comparison with one run for each name."""
    trials = [Trial(name, 0, score) for name, score in scores.items()]
    return compare_trials(trials, baselines, choices=list(scores), seeds=[0])


def score_grid(runs: Comparison, *, crps: Crps | None = None) -> Grid:
    """The table of single runs.

    Arguments:
        runs: The runs.
        crps: The CRPS of each run; a column where no line has an MMD.
    """
    columns, cells = _tabulate_scores(runs, crps or {})
    lines = [
        Line((name_of(key), *texts), strong=key in runs.choices, baseline=key in runs.baselines)
        for key, texts in cells.items()
    ]
    return Grid((Column("Method"), *columns), tuple(lines))


def comparison_grid(comparison: Comparison, *, crps: Crps | None = None) -> Grid:
    """The table of methods over seeds.

    Arguments:
        comparison: The methods compared.
        crps: The CRPS of each method's runs; a column where no line has an MMD.
    """
    columns, scores = _tabulate_scores(comparison, crps or {})
    lines = []
    for method in comparison.choices:
        row = comparison.scores.get(method)
        if row is None:
            waits = any(method == other for other, _ in comparison.waiting)
            cells = ("not yet" if waits else "failed", *[""] * (len(columns) + 1))
        else:
            latent = MISSING if row.latent_std is None else f"{row.latent_std.mean:.3g}"
            collapsed = f"{len(row.collapsed)} of {len(row.seeds)}" if row.collapsed else "no"
            cells = (*scores[method], latent, collapsed)
        lines.append(Line((name_of(method), *cells), strong=method == ANCHOR))
    for key in comparison.baselines:
        lines.append(Line((name_of(key), *scores[key], "", ""), baseline=True))
    return Grid((Column("Method"), *columns, *_TRAINING), tuple(lines))


def difference_grid(comparison: Comparison) -> Grid:
    """Differences to TAMPL: one line for each other method with a seed in common.

    Without a second seed there is no interval, and no column for one.
    """
    pairs, wanted = comparison.paired, len(comparison.seeds)
    mmds = [pair.mmd for pair in pairs.values() if pair.mmd is not None]
    interval = any(part.low is not None for part in (*mmds, *(p.rmse for p in pairs.values())))
    shown = (True, interval, interval, bool(mmds), *[bool(mmds) and interval] * 2)
    lines = []
    for key, pair in pairs.items():
        cells = (*_write_pair(pair.rmse, wanted), *_write_pair(pair.mmd, wanted))
        lines.append(Line((name_of(key), *compress(cells, shown))))
    first = Column(f"Difference to {name_of(ANCHOR)}")
    return Grid((first, *compress(_DIFFERENCES, shown)), tuple(lines))


def trust_grid(trusts: Mapping[str, Sequence[Trust]]) -> Grid:
    """How far forecasts can be trusted: means over the runs of each method or name.

    Arguments:
        trusts: What is known of each run; methods without are left out.
    """
    distributions = any(trust.plain.mmd is not None for own in trusts.values() for trust in own)
    lines = []
    for key, found in trusts.items():
        calibrations = [trust.calibration for trust in found if trust.calibration is not None]
        held = summarize_known([trust.held for trust in found])
        covered = [
            summarize_known([c.mean_coverage(level) for c in calibrations]) for level in LEVELS
        ]
        ratio = summarize_known([c.spread_to_error for c in calibrations])
        plain = [summarize_known([trust.plain.rmse for trust in found])]
        if distributions:
            plain.append(summarize_known([trust.plain.mmd for trust in found]))
        cells = (
            *(MISSING if part is None else _write_percent(part.mean) for part in (held, *covered)),
            MISSING if ratio is None else f"{ratio.mean:.2f}",
            *(MISSING if part is None else spread_text(part.mean, part.std) for part in plain),
        )
        lines.append(Line((name_of(key), *cells), strong=key == ANCHOR))
    bands = (Column(f"{100 * level:g} % band covers") for level in LEVELS)
    plains = (Column("plain RMSE", soft=True), Column("plain MMD²", soft=True))
    shown = plains if distributions else plains[:1]
    columns = (Column("Trust"), Column("held"), *bands, Column("spread / error"), *shown)
    return Grid(columns, tuple(lines))


def _write_percent(fraction: float) -> str:
    """A fraction in percent, with a digit more where it is small.

    Example:
        >>> _write_percent(0.794), _write_percent(0.004), _write_percent(1e-5), _write_percent(0.0)
        ('79 %', '0.4 %', 'below 0.1 %', '0 %')
    """
    if 0 < fraction < 5e-4:
        return "below 0.1 %"
    return f"{100 * fraction:.{1 if 0 < fraction < 0.1 else 0}f} %"


def sweep_grid(comparison: Comparison, *, heading: str, test: bool) -> Grid:
    """The table of a sweep: one line for each value.

    Arguments:
        comparison: The values compared.
        heading: Method and setting.
        test: Whether the runs are scored on the test split.
    """
    tested = (Column("test RMSE"), Column("test MMD²")) if test else ()
    lines = []
    for value in comparison.choices:
        row, wanted = comparison.scores.get(value, ScoreRow(None, None)), len(comparison.seeds)
        shown = (row.validation, *((row.rmse, row.mmd) if test else ()), row.latent_std)
        cells = (MISSING if part is None else spread_text(part.mean, part.std) for part in shown)
        collapsed = f"{len(row.collapsed)} of {len(row.seeds)}"
        lines.append(Line((f"{value}{_count(row.seeds, wanted)}", *cells, collapsed)))
    return Grid((Column(heading), Column("validation RMSE"), *tested, *_TRAINING), tuple(lines))


def score_csv(runs: Comparison) -> str:
    """The table of single runs as CSV with all digits."""
    lines = []
    for key in runs.scores:
        (rmse, _, above_rmse, *_), (mmd, _, above_mmd, *_) = _list_numbers(runs, key)
        lines.append([key, name_of(key), rmse, above_rmse, mmd, above_mmd])
    return csv_text(_CSV_SCORES, lines)


def comparison_csv(comparison: Comparison) -> str:
    """The table of methods over seeds, with differences, as CSV with all digits."""
    lines: list[list[object]] = []
    for key in (*comparison.choices, *comparison.baselines):
        row, (rmse, mmd) = comparison.scores.get(key), _list_numbers(comparison, key)
        reasons = [str(trial.failure) for trial in comparison.failed if trial.choice == key]
        count = 0 if row is None or row.rmse is None else len(row.rmse.values)
        latent = None if row is None or row.latent_std is None else row.latent_std.mean
        collapsed = "" if row is None else " ".join(map(str, row.collapsed))
        line = [key, name_of(key), count, *rmse, *mmd, latent, collapsed, "; ".join(reasons)]
        lines.append(line)
    return csv_text(_CSV_COMPARISON, lines)


def _tabulate_scores(
    comparison: Comparison, crps: Crps
) -> tuple[list[Column], dict[str, list[str]]]:
    """Columns of scores that some line has a value for, and the cells of every line."""
    rows = comparison.scores.values()
    # Before the first run has finished nothing is known, and all columns stand.
    excess = not rows or any(row.excess is not None for row in rows)
    mmd = not rows or any(row.mmd is not None for row in rows)
    shown = (True, excess, mmd, mmd and excess)
    columns = list(compress(_SCORES, shown))
    cells = {
        key: list(compress(_write_scores(comparison, key), shown)) for key in comparison.scores
    }
    if crps and not mmd:
        columns.append(Column("CRPS"))
        for key, texts in cells.items():
            wanted = len(comparison.seeds) if key in comparison.choices else 1
            texts.append(_write_summary(crps.get(key), wanted))
    return columns, cells


def _write_scores(comparison: Comparison, key: str) -> tuple[str, ...]:
    """RMSE, its excess, MMD and its excess as cells."""
    row, wanted = comparison.scores[key], len(comparison.seeds) if key in comparison.choices else 1
    cells: list[str] = []
    for summary, metric in ((row.rmse, "rmse"), (row.mmd, "mmd")):
        above = getattr(row.excess, metric, None)
        # The floor has no excess by definition, which is not the same as an unknown one.
        unknown = "" if key == FLOOR else MISSING
        cells += [_write_summary(summary, wanted), unknown if above is None else score_text(above)]
    return tuple(cells)


def _write_summary(summary: Summary | None, wanted: int) -> str:
    if summary is None:
        return MISSING
    return f"{spread_text(summary.mean, summary.std)}{_count(summary.values, wanted)}"


def _write_pair(difference: Difference | None, wanted: int) -> tuple[str, str, str]:
    if difference is None:
        return MISSING, "", ""
    mean = f"{score_text(difference.mean, '+')}{_count(difference.values, wanted)}"
    if difference.low is None or difference.high is None:
        return mean, "", ""
    interval = interval_text(difference.low, difference.high)
    return mean, interval, "" if difference.verdict is None else difference.verdict.value


def _count(values: tuple[object, ...], wanted: int) -> str:
    return "" if len(values) == wanted else f" (n = {len(values)})"


def _list_numbers(comparison: Comparison, key: str) -> list[list[object]]:
    """For RMSE and MMD: mean, deviation, excess, difference with interval, and verdict."""
    row, pair = comparison.scores.get(key), comparison.paired.get(key)
    numbers = []
    for metric in ("rmse", "mmd"):
        summary, difference = getattr(row, metric, None), getattr(pair, metric, None)
        verdict = getattr(difference, "verdict", None)
        numbers.append(
            [
                *(getattr(summary, name, None) for name in ("mean", "std")),
                getattr(getattr(row, "excess", None), metric, None),
                *(getattr(difference, name, None) for name in ("mean", "low", "high")),
                None if verdict is None else verdict.value,
            ]
        )
    return numbers
