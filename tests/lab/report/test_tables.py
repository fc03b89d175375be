"""The table of single runs: order, excess, forms."""

import csv
import io

import pytest

from tampl.evaluation import Score
from tampl.evaluation.comparison import summarize
from tampl.lab.report.tables import score_csv, score_grid, tabulate_runs

RUNS = {"tampl": Score(0.1083, 0.0112), "other": Score(0.2, 0.03)}
BASELINES = {
    "persistence": Score(0.9, None),
    "mean_trajectory": Score(0.664, None),
    "pair": Score(1.09, None),
    "floor": Score(0.0485, 0.002),
    "mean_field": Score(1.74, None),
}
TABLE = tabulate_runs(RUNS, BASELINES)


def test_runs_first_then_floor_closures_and_simple_forecasts():
    order = ["floor", "pair", "mean_field", "mean_trajectory", "persistence"]
    assert list(TABLE.scores) == ["tampl", "other", *order]
    assert TABLE.baselines == tuple(order)


def test_closures_of_any_system_are_baselines():
    table = tabulate_runs(
        {"mine": Score(0.1, 0.1)}, {"cahn_hilliard": Score(1, None), "floor": Score(0.1, 0.1)}
    )
    lines = [(line.cells[0], line.strong, line.baseline) for line in score_grid(table).lines]
    assert lines == [
        ("mine", True, False),
        ("Simulation noise floor", False, True),
        ("cahn_hilliard", False, True),
    ]


def test_excess_is_what_the_noise_leaves():
    """Independent errors add in squares; a deterministic forecast has half the noise."""
    rows = TABLE.scores
    assert rows["tampl"].excess.rmse == pytest.approx((0.1083**2 - 0.0485**2) ** 0.5)
    assert rows["pair"].excess.rmse == pytest.approx((1.09**2 - 0.0485**2 / 2) ** 0.5)
    assert rows["tampl"].excess.mmd == pytest.approx(0.0092)
    assert rows["pair"].excess.mmd is None
    assert rows["floor"].excess is None


def headings(grid):
    return [column.heading for column in grid.columns]


def test_without_a_floor_there_is_no_excess():
    grid = score_grid(tabulate_runs({"tampl": Score(0.1, 0.01)}, {}))
    assert headings(grid) == ["Method", "RMSE", "MMD²"]
    assert grid.lines[0].cells == ("TAMPL", "0.1000", "0.0100")


def test_the_crps_stands_in_the_place_of_an_absent_mmd():
    table = tabulate_runs({"tampl": Score(0.1, None)}, {"persistence": Score(0.9, None)})
    crps = {"tampl": summarize([0.05])}
    grid = score_grid(table, crps=crps)
    assert headings(grid) == ["Method", "RMSE", "CRPS"]
    assert [line.cells[1:] for line in grid.lines] == [("0.1000", "0.0500"), ("0.9000", "N/A")]
    assert "CRPS" not in headings(score_grid(TABLE, crps=crps))


def test_markdown():
    lines = score_grid(TABLE).markdown().splitlines()
    assert lines[0] == "| Method | RMSE | excess | MMD² | excess |"
    assert lines[2] == "| TAMPL | 0.1083 | 0.0968 | 0.0112 | 0.0092 |"
    assert lines[4] == "| Simulation noise floor | 0.0485 |  | 0.0020 |  |"
    assert lines[6] == "| Mean field | 1.7400 | 1.7397 | N/A | N/A |"
    assert lines[-2].startswith("| Mean training trajectory |")
    assert lines[-1].startswith("| Persistence |")
    assert {line.count("|") for line in lines} == {6}


def test_csv_has_all_digits():
    text = score_csv(tabulate_runs({"tampl": Score(1 / 3, 1 / 7)}, BASELINES))
    assert text.startswith("key,method,rmse,rmse_excess,mmd2,mmd2_excess\n")
    table = list(csv.DictReader(io.StringIO(text)))
    assert float(table[0]["rmse"]) == 1 / 3
    assert float(table[0]["mmd2"]) == 1 / 7
    assert table[-1]["mmd2"] == "N/A"
