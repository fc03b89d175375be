r"""The table of scores as Markdown, HTML, LaTeX and CSV.

One row for each method, then the rows that put it in perspective: noise floor, closures and mean
training trajectory. The excess is what remains when the noise of finite ensembles is taken away.
Squares add, so it is sqrt(RMSE^2 - RMSE_floor^2) and MMD^2 - MMD^2_floor; a deterministic forecast
meets only the references' half of RMSE_floor^2. What has no distribution has no MMD (N/A).
"""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ..evaluate.metrics import Score
from .names import BASELINES, name_of

__all__ = ["Row", "rows", "to_csv", "to_html", "to_latex", "to_markdown"]

MISSING = "N/A"
_HEADER = ("Method", "RMSE", "excess", "MMD²", "excess")
_LATEX_HEADER = r"Method & RMSE & excess & MMD$^2$ & excess \\"
_CSV_HEADER = ("key", "method", "rmse", "rmse_excess", "mmd2", "mmd2_excess")
_LATEX_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    }
)


@dataclass(frozen=True)
class Row:
    """One line of the table; an excess is None for the floor itself and where there is none."""

    key: str
    score: Score
    rmse_excess: float | None
    mmd_excess: float | None

    @property
    def values(self) -> tuple[float | None, ...]:
        """The numbers in the order of the columns."""
        return self.score.rmse, self.rmse_excess, self.score.mmd, self.mmd_excess


def rows(scores: Mapping[str, Score]) -> list[Row]:
    """Rows in the order of the table: methods as given, then floor, closures, mean trajectory."""
    methods = [key for key in scores if key not in BASELINES]
    order = methods + [key for key in BASELINES if key in scores]
    floor = scores.get("floor")
    return [_row(key, scores[key], None if key == "floor" else floor) for key in order]


def to_markdown(scores: Mapping[str, Score]) -> str:
    """The table in GitHub's Markdown."""
    lines: list[Sequence[str]] = [_HEADER, ("---", "---:", "---:", "---:", "---:")]
    lines += [_cells(row, lambda name: name.replace("|", r"\|")) for row in rows(scores)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_html(scores: Mapping[str, Score]) -> str:
    """The table as an HTML element; baselines have the class `baseline`."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in _HEADER)
    body = "".join(_html_row(row) for row in rows(scores))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def to_latex(scores: Mapping[str, Score]) -> str:
    """The table as a LaTeX tabular with booktabs rules."""
    table = rows(scores)
    lines = [r"\begin{tabular}{lrrrr}", r"\toprule", _LATEX_HEADER, r"\midrule"]
    for number, row in enumerate(table):
        if number and row.key in BASELINES and table[number - 1].key not in BASELINES:
            lines.append(r"\midrule")
        lines.append(" & ".join(_cells(row, _latex_text)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def to_csv(scores: Mapping[str, Score]) -> str:
    """The table as CSV with all digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_CSV_HEADER)
    for row in rows(scores):
        numbers = (MISSING if value is None else repr(float(value)) for value in row.values)
        writer.writerow([row.key, name_of(row.key), *numbers])
    return buffer.getvalue()


def _row(key: str, score: Score, floor: Score | None) -> Row:
    if floor is None:
        return Row(key, score, None, None)
    if score.mmd is None or floor.mmd is None:
        return Row(key, score, _above(score.rmse, floor.rmse**2 / 2), None)
    return Row(key, score, _above(score.rmse, floor.rmse**2), score.mmd - floor.mmd)


def _above(rmse: float, noise: float) -> float:
    return math.sqrt(max(0.0, rmse**2 - noise))


def _cells(row: Row, text: Callable[[str], str]) -> Sequence[str]:
    # The floor has no excess by definition, which is not the same as one that cannot be had.
    missing = ("", "", MISSING, "") if row.key == "floor" else (MISSING,) * 4
    numbers = [
        gap if value is None else f"{value:.4f}"
        for value, gap in zip(row.values, missing, strict=True)
    ]
    return [text(name_of(row.key)), *numbers]


def _html_row(row: Row) -> str:
    name, *numbers = _cells(row, escape)
    cells = "".join(f"<td>{number}</td>" for number in numbers)
    group = ' class="baseline"' if row.key in BASELINES else ""
    return f'<tr{group}><th scope="row">{name}</th>{cells}</tr>'


def _latex_text(text: str) -> str:
    return text.translate(_LATEX_SPECIAL)
