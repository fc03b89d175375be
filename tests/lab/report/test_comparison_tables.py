import csv
import io

from comparison_samples import make_comparison

from tampl.evaluation import Score
from tampl.evaluation.comparison import Trial, compare_trials, summarize
from tampl.lab.report.tables import comparison_csv, comparison_grid, difference_grid

COMPARISON = make_comparison()


def cells(grid):
    return {line.cells[0]: line.cells[1:] for line in grid.lines}


def test_order_of_the_rows():
    assert list(cells(comparison_grid(COMPARISON))) == [
        *("TAMPL", "JLD", "JLD-VIC", "VAMP", "macro_2", "JLD-SIG", "Next-macro"),
        *("Simulation noise floor", "Mean field", "Mean training trajectory"),
    ]


def test_cells():
    table = cells(comparison_grid(COMPARISON))
    assert table["TAMPL"][0] == "0.1100 ± 0.0100"
    assert table["TAMPL"][4:] == ("1.5", "no")
    assert table["JLD"][5] == "1 of 3"
    assert table["Simulation noise floor"] == ("0.0500", "", "0.0020", "", "", "")
    assert table["Mean field"][2:] == ("N/A", "N/A", "", "")


def test_cells_with_fewer_seeds_say_so():
    table = cells(comparison_grid(COMPARISON))
    assert table["VAMP"][0] == "0.1350 ± 0.0071 (n = 2)"
    assert table["VAMP"][2] == "N/A"
    assert table["macro_2"][0] == "0.4000 (n = 1)"


def test_failed_and_waiting_methods_have_a_row():
    table = cells(comparison_grid(COMPARISON))
    assert table["JLD-SIG"] == ("failed", "", "", "", "", "")
    assert table["Next-macro"][0] == "not yet"


def test_differences_have_interval_and_verdict():
    table = cells(difference_grid(COMPARISON))
    assert list(table) == ["JLD", "JLD-VIC", "VAMP", "macro_2"]
    assert table["JLD"][:3] == ("+0.1000", "+0.1000 to +0.1000", "worse")
    # Differences 0.01, -0.01, 0: mean 0, s = 0.01, t = 4.3027.
    assert table["JLD-VIC"][:3] == ("+0.0000", "-0.0248 to +0.0248", "tie")
    assert table["VAMP"][0] == "+0.0250 (n = 2)"
    assert table["VAMP"][3:] == ("N/A", "", "")


def test_one_seed_has_no_interval():
    assert cells(difference_grid(COMPARISON))["macro_2"][:3] == ("+0.3000 (n = 1)", "", "")


def test_a_comparison_of_one_seed_has_no_columns_for_intervals():
    trials = [Trial("tampl", 1, Score(0.1, 0.01)), Trial("jld", 1, Score(0.2, 0.02))]
    one = compare_trials(trials, choices=["tampl", "jld"], seeds=[1])
    grid = difference_grid(one)
    assert [column.heading for column in grid.columns] == ["Difference to TAMPL", "RMSE", "MMD²"]
    assert grid.lines[0].cells == ("JLD", "+0.1000", "+0.0100")


def test_single_trajectories_have_neither_mmd_nor_excess():
    trials = [Trial("tampl", 1, Score(0.1, None)), Trial("jld", 1, Score(0.2, None))]
    choices = ["tampl", "jld", "vamp"]
    one = compare_trials(trials, {"persistence": Score(0.9, None)}, choices=choices, seeds=[1])
    grid = comparison_grid(one, crps={"tampl": summarize([0.05])})
    heads = [column.heading for column in grid.columns]
    assert heads == ["Method", "RMSE", "CRPS", "latent std", "collapsed"]
    assert cells(grid)["JLD"][:2] == ("0.2000", "N/A")
    assert cells(grid)["VAMP"] == ("not yet", "", "", "")
    assert [column.heading for column in difference_grid(one).columns][1:] == ["RMSE"]


def test_latex_has_equal_columns_and_escapes():
    text = comparison_grid(COMPARISON).latex()
    assert {line.count("&") for line in text.splitlines() if "&" in line} == {6}
    assert r"macro\_2" in text
    assert r"0.1100 $\pm$ 0.0100" in text
    assert r"95 \% interval" in difference_grid(COMPARISON).latex()
    assert "$-$0.0248 to +0.0248" in difference_grid(COMPARISON).latex()


def test_csv_has_all_digits_and_reasons():
    rows = {row["key"]: row for row in csv.DictReader(io.StringIO(comparison_csv(COMPARISON)))}
    jld = COMPARISON.paired["jld"].rmse
    assert float(rows["jld"]["rmse_low"]) == jld.low
    assert rows["jld"]["rmse_verdict"] == "worse"
    assert rows["jld"]["collapsed"] == "43"
    assert (rows["vamp"]["mmd2"], rows["vamp"]["n"]) == ("N/A", "2")
    assert "diverged & stopped" in rows["jld-sig"]["failed"]
    assert rows["floor"]["rmse"] == "0.05"


def test_nothing_is_known_yet():
    nothing = compare_trials([], choices=["tampl", "jld"], seeds=[1])
    assert cells(comparison_grid(nothing)) == {
        "TAMPL": ("not yet", "", "", "", "", ""),
        "JLD": ("not yet", "", "", "", "", ""),
    }
    assert difference_grid(nothing).lines == ()
