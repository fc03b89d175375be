import csv
import io

import pytest

from tampl.evaluate import Score
from tampl.report.names import name_of
from tampl.report.tables import rows, to_csv, to_html, to_latex, to_markdown

SCORES = {
    "mean_trajectory": Score(0.664, None),
    "tampl": Score(0.1083, 0.0112),
    "pair": Score(1.09, None),
    "floor": Score(0.0485, 0.002),
    "mean_field": Score(1.74, None),
    "other": Score(0.2, 0.03),
}


def test_methods_first_then_floor_closures_and_mean_trajectory():
    order = ["tampl", "other", "floor", "mean_field", "pair", "mean_trajectory"]
    assert [row.key for row in rows(SCORES)] == order


def test_excess_is_what_the_noise_leaves():
    """Independent errors add in squares; a deterministic forecast has half the noise."""
    table = {row.key: row for row in rows(SCORES)}
    assert table["tampl"].rmse_excess == pytest.approx((0.1083**2 - 0.0485**2) ** 0.5)
    assert table["pair"].rmse_excess == pytest.approx(
        (SCORES["pair"].rmse ** 2 - 0.0485**2 / 2) ** 0.5
    )
    assert table["tampl"].mmd_excess == pytest.approx(0.0092)
    assert table["pair"].mmd_excess is None
    assert table["floor"].values == (0.0485, None, 0.002, None)


def test_without_a_floor_there_is_no_excess():
    (row,) = rows({"tampl": Score(0.1, 0.01)})
    assert row.values == (0.1, None, 0.01, None)


def test_markdown():
    lines = to_markdown(SCORES).splitlines()
    assert lines[0] == "| Method | RMSE | excess | MMD² | excess |"
    assert lines[2] == "| TAMPL | 0.1083 | 0.0968 | 0.0112 | 0.0092 |"
    assert lines[4] == "| Simulation noise floor | 0.0485 |  | 0.0020 |  |"
    assert lines[5] == "| Mean field | 1.7400 | 1.7397 | N/A | N/A |"
    assert lines[-1].startswith("| Mean training trajectory |")
    assert {line.count("|") for line in lines} == {6}


def test_csv_has_all_digits():
    table = list(csv.DictReader(io.StringIO(to_csv({**SCORES, "tampl": Score(1 / 3, 1 / 7)}))))
    assert float(table[0]["rmse"]) == 1 / 3
    assert float(table[0]["mmd2"]) == 1 / 7
    assert table[-1]["mmd2"] == "N/A"


def test_latex_has_equal_columns_and_a_rule_before_the_baselines():
    text = to_latex(SCORES)
    lines = text.splitlines()
    assert {line.count("&") for line in lines if "&" in line} == {4}
    assert lines[lines.index(r"\midrule", 4) + 1].startswith("Simulation noise floor")


def test_names_from_outside_are_escaped():
    hostile = {"<script>|a_b&%\\": Score(0.1, 0.01)}
    assert "<script>" not in to_html(hostile)
    assert r"\|a_b" in to_markdown(hostile)
    assert r"a\_b\&\%\textbackslash{}" in to_latex(hostile)


def test_pretty_names():
    assert name_of("pair") == "Pair approximation"
    assert name_of("mine") == "mine"
