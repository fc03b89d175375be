"""What the pages say in words follows from the numbers, whichever way they fall."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tampl.evaluation.claims import Peak
from tampl.evaluation.comparison import Trial, compare_trials
from tampl.evaluation.metrics import Score

sys.path.append(str(Path(__file__).parents[2] / "results"))
paper, tables, claims, column, studies, readme = (
    importlib.import_module(f"pages.{name}")
    for name in ("paper", "tables", "sirs_claims", "sirs_column", "sirs_studies", "readme")
)


def compared(scores):
    """A comparison of (method, seed, RMSE, MMD)."""
    runs = [Trial(method, seed, Score(rmse, mmd)) for method, seed, rmse, mmd in scores]
    methods, seeds = ({getattr(run, key) for run in runs} for key in ("choice", "seed"))
    return compare_trials(runs, choices=sorted(methods), seeds=sorted(seeds))


def test_distance_to_the_paper():
    found = compared([("tampl", 1, 0.1056 * 1.1, 0.0105 / 2)])
    assert paper.distance(found, "tampl", "rmse") == "0.1162, 10 % above 0.1056"
    assert paper.distance(found, "tampl", "mmd") == "0.0053, 50 % below 0.0105"
    assert "[below](#what-was-tried)" in column.describe_targets(found)
    assert "tried" not in column.describe_targets(compared([("tampl", 1, 0.1, 0.01)]))


def test_the_paper_has_no_row_for_our_own_methods():
    assert paper.cells("tampl+") == ("", "")
    assert paper.cells("vamp") == ("0.1955 ± 0.0312", "N/A")


def test_verdicts():
    rows = [("tampl", seed, 0.1, 0.01) for seed in (1, 2)]
    rows += [("jld", 1, 0.50, 0.3), ("jld", 2, 0.51, 0.3)]
    rows += [("vamp", 1, 0.09, None), ("vamp", 2, 0.12, None), ("jld-vic", 1, 0.2, 0.1)]
    text = column.describe_verdicts(compared(rows))
    assert "worse: JLD; tie: VAMP; one seed, no interval: JLD-VIC." in text
    assert "With every seed TAMPL's is below that of JLD, JLD-VIC. MMD²" in text
    assert "VAMP" not in text.partition("MMD²")[2]


@pytest.mark.parametrize(("time", "word"), [(3.0, "earlier"), (9.0, "later")])
def test_closures_beside_the_simulation(time, word):
    peaks = {"reference": Peak(5.0, 0.2), "mean_field": Peak(time, 0.5), "pair": Peak(4.0, 0.3)}
    run = SimpleNamespace(peaks={name: {"I": peak} for name, peak in peaks.items()})
    text = claims.describe_closures([run])
    assert f"mean field {abs(time - 5):.2f} {word} and 2.50 times as high" in text
    assert "pair approximation 1.00 earlier and 1.50 times as high" in text


def test_peaks_are_means_over_the_runs_that_have_them():
    runs = [SimpleNamespace(peaks={"jld": {"I": Peak(time, 0.1)}}) for time in (1.0, 3.0)]
    runs.append(SimpleNamespace(peaks={}))
    assert claims.mean_peak(runs, "jld", "I").time == 2.0


def test_cost_is_said_both_ways():
    costs = {
        f"forecast_cost-{name}.json": {
            **{"members": 64, "initial_microstates": 200, "frames": 101, "cores": 2, "threads": 2},
            **{"simulation_s": 10.0, "forecast_s": 10.0 / ratio, "ratio": ratio},
            "provenance": {"device": device, "cpu": "a processor"},
        }
        for name, device, ratio in (("h200", "NVIDIA H200", 20.0), ("cpu", "cpu", 0.5))
    }
    text = studies.write_cost(SimpleNamespace(load=costs.__getitem__))
    assert "20.0 times cheaper on one NVIDIA H200" in text
    assert "2.0 times dearer on 2 threads, a processor" in text


def test_the_short_table_has_the_best_of_the_other_methods_by_column():
    rows = [(method, seed, 0.1, 0.01) for method in ("tampl", "tampl+") for seed in (1, 2)]
    rows += [("jld", 1, 0.5, 0.02), ("jld", 2, 0.5, 0.02), ("vamp", 1, 0.3, None)]
    text = readme.scores_table(compared(rows).as_dict())
    best = "| Best of the other methods | 0.3000 (n = 1) (VAMP) | 0.0200 ± 0.0000 (JLD) |"
    assert f"{best} 0.1324 ± 0.0180 (JLD-VIC) | 0.0158 ± 0.0040 (JLD-VIC) |" in text
    assert text.count("\n") == 4  # without a noise floor


def test_cells_that_are_missing():
    summary = {"mean": 0.5, "std": None}
    row = dict.fromkeys(("validation", "rmse", "latent_std"), summary) | {"mmd": None}
    sweep = {"method": "jld", "key": "methods.jld.lambda_tr", "seeds": [1, 2]}
    text = tables.sweep_table({**sweep, "rows": [{**row, "value": 2, "seeds": [1]}]})
    assert "| 2 (n = 1) | 0.5000 | 0.5000 | N/A | 0.5000 |" in text
    trial = {"change": "new", "epochs": 1, "validation": 0.5, "solvers": {}}
    assert "| new | 1 | 0.500 |  |  |  |" in tables.accuracy_table({"trials": [trial]})


def test_tuning_shows_the_repetition_only_where_there_is_one():
    trials = [{"value": 1.0, "validation": 0.5}, {"value": 2.0, "validation": 0.4}]
    text = tables.tuning_table({"axes": {"vamp": {"key": "epsilon", "trials": trials}}})
    assert "| **2** | 0.400 |" in text and "repeated" not in text
