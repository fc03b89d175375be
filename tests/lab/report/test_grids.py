import csv
import io
from math import inf, nan

import pytest

from tampl.lab.report.grids import (
    Column,
    Grid,
    Line,
    csv_text,
    interval_text,
    latex_text,
    name_of,
    score_text,
    spread_text,
)
from tampl.methods import METHODS

GRID = Grid(
    (Column("Method"), Column("RMSE"), Column("excess", soft=True)),
    (
        Line(("TAMPL", "0.1", "-0.01"), strong=True),
        Line(("JLD-SIG", "0.2 ± 0.1", "")),
        Line(("Floor", "0.05", ""), baseline=True),
        Line(("Mean", "0.3", ""), baseline=True),
    ),
)
HOSTILE = "<script>|a_b&%\\~^#{$}"


def test_markdown_has_equal_columns():
    lines = GRID.markdown().splitlines()
    assert lines[0] == "| Method | RMSE | excess |"
    assert lines[2] == "| TAMPL | 0.1 | -0.01 |"
    assert {line.count("|") for line in lines} == {4}


def test_latex_has_equal_columns_and_one_rule_before_the_baselines():
    lines = GRID.latex().splitlines()
    assert {line.count("&") for line in lines if "&" in line} == {2}
    assert [lines[n + 1].split(" ")[0] for n, line in enumerate(lines) if line == r"\midrule"] == [
        "TAMPL",
        "Floor",
    ]
    assert r"JLD-SIG & 0.2 $\pm$ 0.1 &  \\" in lines
    assert r"TAMPL & 0.1 & $-$0.01 \\" in lines


def test_html_marks_lines_and_soft_columns():
    text = GRID.html()
    assert text.count('class="strong"') == 1
    assert text.count('class="baseline"') == 2
    assert text.count('class="soft"') == 4


def test_names_from_outside_are_escaped():
    grid = Grid((Column(HOSTILE), Column("RMSE")), (Line((HOSTILE, HOSTILE)),))
    assert "<script>" not in grid.html()
    assert grid.markdown().splitlines()[-1].count("|") == 3 + 2
    assert grid.markdown().count(r"\|a_b") == 3
    assert "<script>" not in grid.markdown()


def test_text_in_markdown_stays_on_its_line_and_links_nowhere():
    grid = Grid((Column("key"),), (Line(("a\n\n# b [c](http://d)",)),))
    assert grid.markdown().splitlines()[2:] == [r"| a # b [c]\(http://d) |"]


def test_every_special_sign_of_latex_is_escaped():
    assert latex_text(HOSTILE) == (
        r"<script>|a\_b\&\%\textbackslash{}\textasciitilde{}\textasciicircum{}\#\{\$\}"
    )
    assert latex_text("MMD² of jld-2, -1") == "MMD$^2$ of jld-2, $-$1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (-0.00215, "-0.0022"),
        (9.87654, "9.8765"),
        (25.1773, "25.2"),
        (-183.8026, "-184"),
        (1243.2, "1243"),
        (12432.0, "1.2e+04"),
        (1.5e32, "1.5e+32"),
        (inf, "inf"),
        (nan, "nan"),
    ],
)
def test_scores_are_short(value, text):
    assert score_text(value) == text


def test_numbers_of_a_cell_have_the_same_form():
    assert spread_text(0.45, 0.0531) == "0.4500 ± 0.0531"
    assert spread_text(916.5404, 1243.2) == "917 ± 1243"
    assert spread_text(8.5, 11.25) == "8.5 ± 11.2"
    assert spread_text(7500.0, 13000.0) == "7.5e+03 ± 1.3e+04"
    assert spread_text(inf, nan) == "inf ± nan"
    assert spread_text(25.1773, None) == "25.2"
    assert interval_text(-2165.2, 3998.1) == "-2165 to +3998"
    assert interval_text(-0.1499, 0.7898) == "-0.1499 to +0.7898"


def test_csv_round_trip():
    text = csv_text(("key", "value"), [("a, b", 1 / 3), ("c", None)])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows == [{"key": "a, b", "value": repr(1 / 3)}, {"key": "c", "value": "N/A"}]


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
)
def test_no_text_of_csv_is_a_formula(text):
    [_, row] = csv.reader(io.StringIO(csv_text(("key", "value"), [(text, -0.5)]), newline=""))
    assert row == [f"'{text.strip()}", "-0.5"]


def test_every_method_has_a_name_for_readers():
    assert [name_of(method) for method in METHODS if name_of(method) == method] == []
    assert name_of("pair") == "Pair approximation"
    assert name_of("mine") == "mine"
