"""The table of one run's or a few runs' scores.

One row for each run, then the rows that put it in perspective: noise floor, closures and mean
training trajectory. The excess is what remains when the noise of finite ensembles is taken away
(`tampl.evaluate.excess`). What has no distribution has no MMD (N/A).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..evaluate.comparison import order_baselines
from ..evaluate.excess import excess
from ..evaluate.floor import FLOOR
from ..evaluate.metrics import Score
from .grids import MISSING, Column, Grid, Line, csv_text, score_text
from .names import name_of

__all__ = ["Row", "ScoreTable", "rows", "score_csv", "score_grid"]

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
