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
paper, tables, claims, column, studies, readme, experiments, trials = (
    importlib.import_module(f"pages.{name}")
    for name in (
        *("paper", "tables", "claims", "column", "sirs_studies", "readme", "experiments"),
        "trials",
    )
)
SIRS, MIXING = experiments.SIRS, experiments.MIXING


def compared(scores):
    """A comparison of (method, seed, RMSE, MMD)."""
    runs = [Trial(method, seed, Score(rmse, mmd)) for method, seed, rmse, mmd in scores]
    methods, seeds = ({getattr(run, key) for run in runs} for key in ("choice", "seed"))
    return compare_trials(runs, choices=sorted(methods), seeds=sorted(seeds))


def test_distance_to_the_paper():
    found = compared([("tampl", 1, 0.1056 * 1.1, 0.0105 / 2)])
    rmse, mmd = (paper.distance("sirs", found, "tampl", metric) for metric in ("rmse", "mmd"))
    assert rmse == "0.1162, 10 % above 0.1056 and within its range (0.0855 to 0.1257)"
    assert mmd == "0.0053, 50 % below 0.0105 and below its range (0.0062 to 0.0148)"
    assert "above its range" in paper.distance(
        "mixing", compared([("tampl", 1, 0.3003, 0.1)]), "tampl", "rmse"
    )
    assert "[below](#what-was-tried)" in column.describe_targets(SIRS, found)
    assert "tried" not in column.describe_targets(SIRS, compared([("tampl", 1, 0.1, 0.01)]))


def test_the_paper_has_no_row_for_our_own_methods():
    assert paper.cells("sirs", "tampl+") == ("", "")
    assert paper.cells("sirs", "vamp") == ("0.1955 ± 0.0312", "N/A")
    assert paper.cells("mixing", "vamp") == ("0.6607 ± 0.0074", "N/A")


def test_the_paper_has_rows_that_were_not_run():
    found = compared([("tampl", 1, 0.3, 0.1), ("jld", 1, 0.4, 0.1), ("own", 1, 0.4, 0.1)])
    absent = ["jld-sig", "jld-vic", "jld-recon", "two-stage-recon", "vamp"]
    assert paper.missing("mixing", found) == absent
    text = paper.beside("mixing", found).markdown()
    assert "| 0.3039 ± 0.0201 | 0.1150 ± 0.0032 |" in text and text.count("not yet") == 5
    assert text.splitlines()[-1].startswith("| own |")


def test_verdicts():
    rows = [("tampl", seed, 0.1, 0.01) for seed in (1, 2)]
    rows += [("jld", 1, 0.50, 0.3), ("jld", 2, 0.51, 0.3)]
    rows += [("vamp", 1, 0.09, None), ("vamp", 2, 0.12, None), ("jld-vic", 1, 0.2, 0.1)]
    text = column.describe_verdicts(compared(rows))
    assert "worse: JLD; tie: VAMP; one seed, no interval: JLD-VIC." in text
    assert "With every seed TAMPL's is below that of JLD, JLD-VIC. MMD²" in text
    assert "VAMP" not in text.partition("MMD²")[2]


def test_a_method_below_tampl_with_every_seed_is_named():
    rows = [
        (method, seed, rmse, 0.1)
        for method, rmse in (("tampl", 0.3), ("tampl+", 0.2), ("jld", 0.4))
        for seed in (1, 2)
    ]
    text = column.describe_verdicts(compared(rows))
    assert "TAMPL's is below that of JLD and above that of TAMPL+." in text


def kept(*runs):
    """Runs of (method, seed, settings of the method)."""
    return [
        SimpleNamespace(method=method, seed=seed, recipe={"methods": {method: settings}})
        for method, seed, settings in runs
    ]


@pytest.fixture
def searched(tmp_path):
    """Records of the mixture: JLD-SIG has the small lattice's weight, VAMP another epsilon."""
    folders = {
        "mixing": kept(
            ("tampl", 1, {}), ("jld-sig", 1, {"weight": 1}), ("vamp", 1, {"epsilon": 2})
        ),
        "sirs-mini": kept(("jld-sig", 1, {"weight": 1}), ("vamp", 1, {"epsilon": 1})),
    }
    scores = [("tampl", 1, 0.3, 0.1), ("jld-sig", 1, 0.4, 0.1), ("vamp", 1, 0.4, None)]
    tuning = {"axes": {"jld-sig": {}}}
    return SimpleNamespace(
        folder=tmp_path,
        runs=folders.__getitem__,
        comparisons={"mixing": compared(scores)},
        load=lambda name: tuning,
    )


def test_what_is_missing_goes_away_with_the_records(searched):
    text = column.describe_gaps(MIXING, searched)
    assert "Not run at this size: JLD, JLD-VIC, JLD-Recon, TwoStage-Recon. Preliminary" in text
    assert "JLD-SIG (`penalty.weight`)." in text and "VAMP" not in text
    assert readme.describe_gaps(MIXING, searched).endswith("another system: JLD-SIG.")
    (searched.folder / "tuning-mixing.json").touch()
    assert "reliminary" not in column.describe_gaps(MIXING, searched)
    rows = [(method, 1, 0.3, 0.1) for method in paper.SCORES["mixing"]]
    searched.comparisons["mixing"] = compared(rows)
    assert column.describe_gaps(MIXING, searched) == ""
    assert readme.describe_gaps(MIXING, searched) == ""


def test_methods_worse_than_the_mean_trajectory_are_named():
    rows = compared([("tampl", 1, 0.3, 0.1), ("jld", 1, 0.8, 0.1)])
    rows.scores["mean_trajectory"] = SimpleNamespace(error=0.7)
    assert column.describe_useless(rows) == "Worse than that trajectory: JLD. "
    rows.scores["mean_trajectory"] = SimpleNamespace(error=0.9)
    assert column.describe_useless(rows) == ""


@pytest.mark.parametrize(("time", "word"), [(3.0, "earlier"), (9.0, "later")])
def test_closures_beside_the_simulation(time, word):
    peaks = {"reference": Peak(5.0, 0.2), "mean_field": Peak(time, 0.5), "pair": Peak(4.0, 0.3)}
    run = SimpleNamespace(peaks={name: {"I": peak} for name, peak in peaks.items()})
    text = claims.describe_closures([run])
    assert f"mean field {abs(time - 5):.2f} {word} and 2.50 times as high" in text
    assert "pair approximation 1.00 earlier and 1.50 times as high" in text


def test_a_system_without_closures_and_peaks_has_its_spread_alone():
    spread = {"S": 0.2, "K": 0.3}
    cases = SimpleNamespace(symbols=("S", "K"))
    peaks = {"reference": {"S": Peak(1.0, 1.0)}}
    run = SimpleNamespace(method="tampl", seed=1, peaks=peaks, spread=spread, cases=cases)
    assert claims.describe_closures([run]) == ""
    assert claims.claims_table([run], ["tampl"]).splitlines()[2:] == ["| TAMPL | 0.20 | 0.30 |"]
    text = claims.describe_spread([run], ("S", "K"))
    assert "of S over the true one: 0.20 (seed 1); of K over the true one: 0.30 (seed 1)." in text


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
    mixed = [("tampl", 1, 0.3, 0.1), ("jld", 1, 0.4, 0.2)]
    columns = {"sirs": rows, "mixing": mixed}
    text = readme.scores_table({key: compared(own).as_dict() for key, own in columns.items()})
    head, _, *lines = text.splitlines()
    assert head == "|  | SIRS, RMSE | SIRS, MMD² | mixing, RMSE | mixing, MMD² |"
    best = "| Best of the other methods | 0.3000 (n = 1) (VAMP) | 0.0200 ± 0.0000 (JLD) |"
    assert f"{best} 0.4000 (JLD) | 0.2000 (JLD) |" in lines
    best = "| Best of the other methods, paper | 0.1324 ± 0.0180 (JLD-VIC) |"
    two_stage = "0.3039 ± 0.0201 (TwoStage-Recon) | 0.1150 ± 0.0032 (TwoStage-Recon)"
    assert f"{best} 0.0158 ± 0.0040 (JLD-VIC) | {two_stage} |" in lines
    assert "| TAMPL+ | 0.1000 ± 0.0000 | 0.0100 ± 0.0000 |  |  |" in lines
    assert len(lines) == 5  # without a noise floor


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


def test_equal_effort_shows_the_best_of_each_method_and_what_is_missing():
    def trial(method, rate, draws, validation):
        settings = {
            "training.epochs": 13,
            "training.transition.learning_rate": rate,
            **({"model.transition.draws": draws} if draws else {}),
        }
        scored = {"rmse": 0.2, "floor": [0.0478, 0.002]}
        found = {"method": method, "seed": 42, "commit": "abc", "validation": validation}
        return {**found, "settings": settings, "bounded": scored}

    ran = [("jld", 0.002, 8, 0.4), ("jld", 0.004, 2, 3e5), ("jld", 0.004, 8, 0.3)]
    ran += [("vamp", 0.004, None, 0.5)]
    provenance = {"device": "NVIDIA H200", "note": "Some are left out."}
    record = {"trials": [trial(*each) for each in ran], "provenance": provenance}
    training, model = {"transition": {"learning_rate": 0.004}}, {"transition": {"draws": 8}}
    recipe = SimpleNamespace(recipe={"training": training, "model": model})
    text = trials.write_effort(
        SimpleNamespace(load=lambda name: record, runs=lambda name: [recipe])
    )
    assert "JLD at rate 0.004 with 8 draws; VAMP at rate 0.004. The recipe has" in text
    assert "Some are left out. No trial of TAMPL, JLD-SIG" in text
    head = "|  | rate 0.002 with 8 draws | rate 0.004 | rate 0.004 with 2 draws |"
    assert f"{head} rate 0.004 with 8 draws |" in text
    assert "| JLD | 0.400 (0.2000) |  | over 100 (0.2000) | **0.300** (0.2000) |" in text
    assert "| VAMP |  | **0.500** (0.2000) |  |  |" in text


def test_trials_say_which_units_they_had_and_the_range_of_their_floor():
    def trial(name, commit, rmse, floor):
        scored = {"rmse": rmse, "mmd": 0.01, "floor": [floor, 0.002]}
        log = {"validation": 0.3, "latent": [{"std_mean": 1.0}], "settings": {}}
        return {"name": name, "commit": commit, "bounded": scored, "plain": scored, **log}

    old, new = trial("old", "4565386", 0.2, 0.1786), trial("new", "78aa8ef", 0.1, 0.1781)
    found = {"trials": [old, new], "provenance": {"device": "NVIDIA H200"}}
    text = trials.write_mixing(SimpleNamespace(load=lambda name: found))
    assert "In trials of 4565386 the units" in text and "Lowest RMSE: new, 0.1000." in text
    assert "| Simulation noise floor | 0.1781 to 0.1786 | 0.0020 |" in text
    found["trials"].remove(old)
    text = trials.write_mixing(SimpleNamespace(load=lambda name: found))
    assert "the units" not in text and "| Simulation noise floor | 0.1781 | 0.0020 |" in text
