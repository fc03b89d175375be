import csv
import io

import pytest

from tampl.evaluation import Score
from tampl.lab.report.names import name_of
from tampl.lab.report.tables import ScoreTable, rows, score_csv, score_grid
from tampl.methods import METHODS

RUNS = {"tampl": Score(0.1083, 0.0112), "other": Score(0.2, 0.03)}
BASELINES = {
    "mean_trajectory": Score(0.664, None),
    "pair": Score(1.09, None),
    "floor": Score(0.0485, 0.002),
    "mean_field": Score(1.74, None),
}
TABLE = ScoreTable(RUNS, BASELINES)


def test_runs_first_then_floor_closures_and_mean_trajectory():
    order = ["tampl", "other", "floor", "pair", "mean_field", "mean_trajectory"]
    assert [row.key for row in rows(TABLE)] == order


def test_closures_of_any_system_are_baselines():
    scores = {"mine": Score(0.1, 0.1), "cahn_hilliard": Score(1.0, None), "floor": Score(0.1, 0.1)}
    table = rows(ScoreTable.of_run(scores))
    assert [(row.key, row.baseline) for row in table] == [
        ("mine", False),
        ("floor", True),
        ("cahn_hilliard", True),
    ]


def test_excess_is_what_the_noise_leaves():
    """Independent errors add in squares; a deterministic forecast has half the noise."""
    table = {row.key: row for row in rows(TABLE)}
    assert table["tampl"].excess.rmse == pytest.approx((0.1083**2 - 0.0485**2) ** 0.5)
    assert table["pair"].excess.rmse == pytest.approx((1.09**2 - 0.0485**2 / 2) ** 0.5)
    assert table["tampl"].excess.mmd == pytest.approx(0.0092)
    assert table["pair"].excess.mmd is None
    assert table["floor"].values == (0.0485, None, 0.002, None)


def test_without_a_floor_there_is_no_excess():
    (row,) = rows(ScoreTable({"tampl": Score(0.1, 0.01)}, {}))
    assert row.values == (0.1, None, 0.01, None)


def test_markdown():
    lines = score_grid(TABLE).markdown().splitlines()
    assert lines[0] == "| Method | RMSE | excess | MMD² | excess |"
    assert lines[2] == "| TAMPL | 0.1083 | 0.0968 | 0.0112 | 0.0092 |"
    assert lines[4] == "| Simulation noise floor | 0.0485 |  | 0.0020 |  |"
    assert lines[6] == "| Mean field | 1.7400 | 1.7397 | N/A | N/A |"
    assert lines[-1].startswith("| Mean training trajectory |")
    assert {line.count("|") for line in lines} == {6}


def test_csv_has_all_digits():
    text = score_csv(ScoreTable({"tampl": Score(1 / 3, 1 / 7)}, BASELINES))
    table = list(csv.DictReader(io.StringIO(text)))
    assert float(table[0]["rmse"]) == 1 / 3
    assert float(table[0]["mmd2"]) == 1 / 7
    assert table[-1]["mmd2"] == "N/A"


def test_every_method_has_a_name_for_readers():
    assert [name_of(method) for method in METHODS if name_of(method) == method] == []


def test_pretty_names():
    assert name_of("pair") == "Pair approximation"
    assert name_of("mine") == "mine"
