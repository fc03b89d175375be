"""Tables of text: names for readers, cells, and the forms Markdown, HTML, LaTeX and CSV."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = [
    "MISSING",
    "Column",
    "Grid",
    "Line",
    "csv_text",
    "in_reading_order",
    "interval_text",
    "latex_text",
    "markdown_text",
    "name_of",
    "score_text",
    "spread_text",
]

_NAMES = {
    "reference": "Simulation",
    "tampl": "TAMPL",
    "tampl+": "TAMPL+",
    "jld": "JLD",
    "jld-sig": "JLD-SIG",
    "jld-vic": "JLD-VIC",
    "jld-recon": "JLD-Recon",
    "two-stage-recon": "TwoStage-Recon",
    "vamp": "VAMP",
    "macro-only": "Macro-only",
    "next-macro": "Next-macro",
    "floor": "Simulation noise floor",
    "mean_field": "Mean field",
    "pair": "Pair approximation",
    "mean_trajectory": "Mean training trajectory",
    "persistence": "Persistence",
}


def name_of(key: str) -> str:
    """The name a reader sees: "pair" is "Pair approximation"; an unknown key is itself.

    A method from outside of the package brings its own.
    """
    if key in _NAMES:
        return _NAMES[key]
    from ...methods import METHODS  # loads torch, which the names above do without

    return getattr(METHODS.get(key), "title", "") or key


def in_reading_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order of a table; keys without a name come last.

    Example:
        >>> in_reading_order({"own", "vamp", "tampl"})
        ['tampl', 'vamp', 'own']
    """
    places = {key: place for place, key in enumerate(_NAMES)}
    return sorted(keys, key=lambda key: (places.get(key, len(places)), key))


MISSING = "N/A"

_LATEX_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "²": "$^2$",
        "±": r"$\pm$",
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    }
)


# A sign that opens an element of HTML, and not one between two numbers.
_TAG = re.compile(r"<(?=\S)")

# The sign of a number, and not the hyphen of a name.
_NEGATIVE = re.compile(r"(?<!\w)-(?=\d)")


@dataclass(frozen=True)
class Column:
    """A column's heading; a soft column holds a number derived from the column before it."""

    heading: str
    soft: bool = False


@dataclass(frozen=True)
class Line:
    """One line of text cells.

    Attributes:
        cells: The texts, the first of them the line's name.
        strong: Whether the line is a main result of the table.
        baseline: Whether the line is a baseline for the others.
    """

    cells: tuple[str, ...]
    strong: bool = False
    baseline: bool = False


@dataclass(frozen=True)
class Grid:
    """Columns and lines; baselines come last."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]

    @property
    def _headings(self) -> list[str]:
        return [column.heading for column in self.columns]

    def markdown(self) -> str:
        """The table in GitHub's Markdown."""
        rules = ["---", *["---:"] * (len(self.columns) - 1)]
        heads, *cells = (
            [markdown_text(text).replace("|", r"\|") for text in texts]
            for texts in (self._headings, *(line.cells for line in self.lines))
        )
        return "".join(f"| {' | '.join(line)} |\n" for line in (heads, rules, *cells))

    def html(self) -> str:
        """The table as an HTML element; lines have the classes `strong` and `baseline`."""
        head = "".join(f'<th scope="col">{escape(text)}</th>' for text in self._headings)
        body = "".join(_render_line(line, self.columns) for line in self.lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def latex(self) -> str:
        """The table as a LaTeX tabular with booktabs rules."""
        alignment = "l" + "r" * (len(self.columns) - 1)
        texts = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", _join_latex(self._headings)]
        before: Line | None = None
        for line in self.lines:
            if before is None or (line.baseline and not before.baseline):
                texts.append(r"\midrule")
            texts.append(_join_latex(line.cells))
            before = line
        return "\n".join([*texts, r"\bottomrule", r"\end{tabular}", ""])


def score_text(value: float, sign: str = "") -> str:
    """A score with four decimals; with fewer from 10 on, where a rollout ran away.

    Example:
        >>> score_text(0.10561), score_text(0.02, sign="+"), score_text(916.54), score_text(1.5e32)
        ('0.1056', '+0.0200', '917', '1.5e+32')
    """
    return f"{value:{sign}{_choose_format(value)}}"


def spread_text(mean: float, std: float | None) -> str:
    """A mean with its standard deviation; a single value has none.

    Example:
        >>> spread_text(0.4713, 0.0531), spread_text(916.54, 1243.2)
        ('0.4713 ± 0.0531', '917 ± 1243')
    """
    if std is None:
        return score_text(mean)
    digits = _choose_format(mean, std)
    return f"{mean:{digits}} ± {std:{digits}}"


def interval_text(low: float, high: float) -> str:
    """An interval of differences.

    Example:
        >>> interval_text(-0.0127, 0.0318), interval_text(-6.4595, 10.5023)
        ('-0.0127 to +0.0318', '-6.5 to +10.5')
    """
    digits = _choose_format(low, high)
    return f"{low:+{digits}} to {high:+{digits}}"


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """CSV with all digits; None is written as N/A, and no text is taken for a formula."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(_write_cell, line) for line in lines)
    return buffer.getvalue()


def _write_cell(value: object) -> object:
    if not isinstance(value, str):
        return MISSING if value is None else value
    line = " ".join(value.split())
    # Spreadsheets run what begins so; an apostrophe before it makes it a text.
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line


def markdown_text(text: str) -> str:
    r"""Text as Markdown shows it: on one line, and nothing in it is taken for HTML or a link.

    Example:
        >>> print(markdown_text("<b>R & D</b>, [p](q), p < 0.05"))
        &lt;b>R & D&lt;/b>, [p]\(q), p < 0.05
    """
    return _TAG.sub("&lt;", " ".join(text.split())).replace("](", r"]\(")


def latex_text(text: str) -> str:
    r"""Text as LaTeX prints it.

    Example:
        >>> print(latex_text("-0.5 & jld_2"))
        $-$0.5 \& jld\_2
    """
    return _NEGATIVE.sub("$-$", text.translate(_LATEX_SPECIAL))


def _choose_format(*values: float) -> str:
    """The format of the numbers of one cell, which the largest of them decides."""
    largest = max(abs(value) for value in values)
    if largest < 10:
        return ".4f"
    if largest < 100:
        return ".1f"
    return ".0f" if largest < 10_000 else ".1e"


def _render_line(line: Line, columns: Sequence[Column]) -> str:
    name, *others = line.cells
    cells = "".join(
        f"<td{_render_class(soft=column.soft)}>{_render_cell(cell)}</td>"
        for cell, column in zip(others, columns[1:], strict=True)
    )
    group = _render_class(strong=line.strong, baseline=line.baseline)
    return f'<tr{group}><th scope="row">{escape(name)}</th>{cells}</tr>'


def _render_cell(text: str) -> str:
    # A narrow screen breaks a cell before the sign of a deviation or of an upper limit.
    return escape(text).replace("± ", "±&nbsp;").replace("to +", "to&nbsp;+")


def _render_class(**marks: bool) -> str:
    names = " ".join(name for name, on in marks.items() if on)
    return f' class="{names}"' if names else ""


def _join_latex(cells: Iterable[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"
