"""Comparisons on the tiny recipe: what is written, what is kept, resumed and refused."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch

from command import call
from tampl.errors import InputError
from tampl.lab import campaign
from tampl.lab.campaign import Resources
from tampl.lab.comparisons import compare
from tampl.lab.recipes import read_recipe
from tampl.methods import METHODS
from tampl.training import DivergenceError

TINY = Path(__file__).parents[1] / "tiny.toml"
METHODS_COMPARED = ["tampl", "jld", "vamp"]
SEEDS = [1, 2]
SIMPLE = ["mean_trajectory", "persistence"]
TABLES = ("scores.json", "scores.md", "scores.tex", "scores.csv")


@pytest.fixture(scope="module")
def recipe():
    return read_recipe(TINY)


@pytest.fixture(scope="module")
def compared(recipe, tmp_path_factory):
    """A whole comparison; no test may write to its folder."""
    out = tmp_path_factory.mktemp("compare")
    return compare(recipe, out, methods=METHODS_COMPARED, seeds=SEEDS)


@pytest.fixture
def copy(compared, tmp_path):
    """A copy of the comparison's folder, to be damaged."""
    return Path(shutil.copytree(compared.out, tmp_path / "copy"))


@pytest.fixture
def ticking(monkeypatch):
    """A clock that goes one second ahead whenever somebody looks at it."""
    ticks = count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))


@pytest.fixture
def trained(monkeypatch):
    """The runs that are trained from now on, as the names of their folders."""
    names, train = [], campaign.train

    def watched(recipe, data, out, **options):
        names.append(Path(out).name)
        return train(recipe, data, out, **options)

    monkeypatch.setattr(campaign, "train", watched)
    return names


def run_files(out):
    """The files of all runs that the same seeds must make alike."""
    kept = ("best.safetensors", "last.safetensors", "run.json", "cases.npz")
    return {
        path.relative_to(out): path.read_bytes()
        for path in sorted((out / "runs").rglob("*"))
        if path.name in kept
    }


def tables(out):
    return {name: (out / name).read_bytes() for name in TABLES}


def evaluation(out, method, seed):
    path = out / "runs" / f"{method}-{seed}" / "evaluation.json"
    return json.loads(path.read_text())["scores"][method]


# What is written


def test_the_record_holds_the_scores_of_the_runs(compared):
    record = json.loads((compared.out / "scores.json").read_text())
    assert record["seeds"] == SEEDS
    for method in METHODS_COMPARED:
        values = [evaluation(compared.out, method, seed) for seed in SEEDS]
        row = record["scores"][method]
        assert row["rmse"]["values"] == [value["rmse"] for value in values]
        assert row["rmse"]["mean"] == pytest.approx(sum(row["rmse"]["values"]) / 2)
        difference = row["rmse"]["values"][0] - row["rmse"]["values"][1]
        assert row["rmse"]["std"] == pytest.approx(abs(difference) / 2**0.5)
    assert record["scores"]["vamp"]["mmd"] is None
    assert record["paired"].keys() == {"jld", "vamp"}


def test_baselines_have_one_value(compared):
    scores = compared.record["scores"]
    assert list(scores)[3:] == ["floor", "mean_field", "pair", *SIMPLE]
    for key in list(scores)[3:]:
        assert len(scores[key]["rmse"]["values"]) == 1
        assert scores[key]["rmse"]["std"] is None
        assert scores[key]["latent_std"] is None
    assert scores["floor"]["mmd"]["mean"] > 0
    assert scores["pair"]["mmd"] is None


def test_latent_std_is_that_of_the_best_epochs(compared):
    scales = []
    for seed in SEEDS:
        log = json.loads((compared.out / "runs" / f"tampl-{seed}" / "history.json").read_text())
        validated = [epoch for epoch in log if epoch["validation"] is not None]
        best = min(validated, key=lambda epoch: epoch["validation"])
        scales.append(best["latent"]["std_mean"])
    assert compared.record["scores"]["tampl"]["latent_std"] == pytest.approx(sum(scales) / 2)


def test_the_page_and_its_figures_are_there(compared):
    text = compared.page.read_text()
    assert text.count("<table>") == 3
    assert "The methods side by side" in text
    figures = {path.name for path in (compared.out / "figures").iterdir()}
    assert {"comparison.png", "comparison.pdf", "latent-scales.png"} <= figures


def test_collapsed_runs_have_a_line_each(compared):
    collapsed = compared.record["scores"]["tampl"]["collapsed"]
    for seed in SEEDS:
        line = f"TAMPL, seed {seed}: the latent scale collapsed in epoch"
        assert (line in compared.page.read_text()) == (seed in collapsed)
        assert (line in compared.table) == (seed in collapsed)


# What is kept and resumed


def test_the_same_again_does_nothing(compared, copy, recipe, trained, monkeypatch):
    monkeypatch.setattr(campaign, "evaluate_run", None)
    again = compare(recipe, copy, methods=METHODS_COMPARED, seeds=SEEDS)
    assert trained == []
    assert again.record == compared.record


def test_all_methods_of_the_first_seed_come_first(recipe, compared, tmp_path, trained):
    resources = Resources(data=compared.out / "data")
    compare(recipe, tmp_path, methods=["jld", "vamp"], seeds=[2, 1], resources=resources)
    assert trained == ["jld-2", "vamp-2", "jld-1", "vamp-1"]
    assert not (tmp_path / "data").exists()


def test_without_a_budget_the_next_call_trains_the_same_bytes(recipe, compared, tmp_path):
    options = {"methods": METHODS_COMPARED, "seeds": SEEDS}
    nothing = compare(recipe, tmp_path, **options, resources=Resources(budget_s=0))
    assert nothing.record["scores"] == {}
    assert len(nothing.record["waiting"]) == 6
    assert "6 of 6 runs are still to be trained" in nothing.table
    compare(recipe, tmp_path, **options)
    assert tables(tmp_path) == tables(compared.out)
    assert run_files(tmp_path) == run_files(compared.out)


def test_interrupted_in_the_middle_of_a_run_equals_uninterrupted(
    recipe, compared, tmp_path, ticking
):
    """By this clock a small budget ends between two epochs of the first run."""
    options = {"methods": METHODS_COMPARED, "seeds": SEEDS}
    log = tmp_path / "runs" / "tampl-1" / "history.json"
    for budget_s in range(1, 20):
        partial = compare(recipe, tmp_path, **options, resources=Resources(budget_s=budget_s))
        if log.exists():
            break
    assert 0 < len(json.loads(log.read_text())) < 4
    assert len(partial.comparison.waiting) == 6
    compare(recipe, tmp_path, **options, resources=Resources(budget_s=18))
    compare(recipe, tmp_path, **options)
    assert tables(tmp_path) == tables(compared.out)
    assert run_files(tmp_path) == run_files(compared.out)


def test_a_spent_budget_still_shows_what_is_done(recipe, copy, compared):
    shutil.rmtree(copy / "runs" / "jld-2")
    spent = Resources(budget_s=0)
    partial = compare(recipe, copy, methods=METHODS_COMPARED, seeds=SEEDS, resources=spent)
    assert partial.comparison.waiting == (("jld", 2),)
    assert partial.comparison.scores["jld"].seeds == (1,)
    assert "(n = 1)" in partial.table
    assert partial.record["scores"]["tampl"] == compared.record["scores"]["tampl"]


def test_scores_of_another_model_are_made_again(recipe, copy, trained):
    stale = copy / "runs" / "tampl-1" / "evaluation.json"
    record = json.loads(stale.read_text())
    stale.write_text(json.dumps({**record, "model": "another"}))
    compare(recipe, copy, methods=METHODS_COMPARED, seeds=SEEDS)
    assert trained == []
    assert json.loads(stale.read_text())["model"] == record["model"]


def test_a_run_that_diverges_does_not_stop_the_others(recipe, compared, tmp_path, monkeypatch):
    train = campaign.train

    def diverging(recipe, data, out, *, method, **options):
        if method == "jld":
            raise DivergenceError("training diverged in epoch 1")
        return train(recipe, data, out, method=method, **options)

    monkeypatch.setattr(campaign, "train", diverging)
    resources = Resources(data=compared.out / "data")
    found = compare(recipe, tmp_path, methods=METHODS_COMPARED, seeds=[1], resources=resources)
    assert found.record["failed"] == [
        {"method": "jld", "seed": 1, "reason": "training diverged in epoch 1"}
    ]
    assert found.record["waiting"] == []
    assert found.record["scores"].keys() >= {"tampl", "vamp"}
    assert "JLD, seed 1: failed; training diverged in epoch 1" in found.table


def test_data_of_another_size_may_be_given(recipe, compared, tmp_path):
    """A store elsewhere is used as it is, as in `tampl train`."""
    small, resources = recipe.with_value("data.train", 4), Resources(data=compared.out / "data")
    found = compare(small, tmp_path, methods=["vamp"], seeds=[1], resources=resources)
    assert found.record["data"] == compared.record["data"]
    assert found.comparison.scores["vamp"].rmse.mean == evaluation(compared.out, "vamp", 1)["rmse"]


def test_data_are_made_where_they_are_given_and_absent(recipe, compared, tmp_path):
    resources = Resources(data=tmp_path / "data", budget_s=0)
    found = compare(recipe, tmp_path / "out", resources=resources)
    assert (tmp_path / "data" / "manifest.json").exists()
    assert found.record["data"] == compared.record["data"]
    assert found.comparison.choices == tuple(METHODS)
    assert found.comparison.seeds == (recipe.training.seed,)


# What is refused


def test_other_runs_are_refused_before_anything_is_trained(recipe, copy, trained):
    longer = recipe.with_value("training.epochs", 5)
    with pytest.raises(InputError, match=r"holds another run.*training\.epochs"):
        compare(longer, copy, methods=["next-macro", "tampl"], seeds=SEEDS)
    assert trained == []


def test_a_model_that_lacks_a_part_is_refused_before_data_are_made(tmp_path):
    text = TINY.read_text()
    start, end = text.index("[model.decoder]"), text.index("[training]")
    (tmp_path / "bare.toml").write_text(text[:start] + text[end:])
    with pytest.raises(InputError, match="decoder"):
        compare(read_recipe(tmp_path / "bare.toml"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_symmetries_that_do_not_hold_are_refused_before_data_are_made(tmp_path):
    mixing = read_recipe(TINY.with_name("tiny_mixing.toml"))
    bad = mixing.with_value("training.symmetries", ["shift"])
    with pytest.raises(InputError, match=r"`training\.symmetries` has 'shift'"):
        compare(bad, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_data_of_another_system_are_refused(recipe, compared, tmp_path):
    other, resources = recipe.with_value("system.beta", 9.0), Resources(compared.out / "data")
    with pytest.raises(InputError, match="beta"):
        compare(other, tmp_path, methods=["tampl"], resources=resources)


# On the command line


def command(out, *options):
    return call("compare", TINY, "--out", out, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--methods", "magic"), ["magic", "tampl"]),
        (("--methods", "tampl,tampl"), ["tampl", "once"]),
        (("--methods", ""), ["choose one of"]),
        (("--seeds", "1,x"), ["seeds", "1,x"]),
        (("--seeds", "1,2,1"), ["seeds", "once"]),
        (("--seeds", ""), ["seeds"]),
        (("--seeds=-1",), ["-1"]),
        (("--budget-s", "-5"), ["budget_s", "-5"]),
        (("--budget-s", "nan"), ["budget_s"]),
        (("--device", "abacus"), ["abacus"]),
    ],
)
def test_bad_input_is_one_line_before_anything_runs(options, words, tmp_path):
    command(tmp_path / "out", *options).refused(*words)
    assert not (tmp_path / "out").exists()


def test_the_command_prints_the_record(compared, copy):
    options = ("--methods", ",".join(METHODS_COMPARED), "--seeds", "1,2")
    outcome = command(copy, *options, "--json")
    assert outcome.code == 0
    assert outcome.json == json.loads((compared.out / "scores.json").read_text())
    assert outcome.err == ""
    shown = command(copy, *options)
    assert compared.table in shown.out
    assert str(copy / "report.html") in shown.out


def test_a_spent_budget_is_no_error(compared, tmp_path):
    options = ("--methods", "tampl", "--data", compared.out / "data", "--budget-s", "0")
    outcome = command(tmp_path, *options, "--json")
    assert outcome.code == 0
    assert outcome.json["waiting"] == [{"method": "tampl", "seed": 42}]
    (line,) = outcome.err.splitlines()
    assert "the same command resumes" in line


def test_runs_side_by_side_are_the_runs_one_by_one(recipe, compared, tmp_path):
    """Two processes at once, one thread each as here: the same bytes."""
    two = Resources(side_by_side=2)
    side = compare(recipe, tmp_path, methods=METHODS_COMPARED, seeds=SEEDS, resources=two)
    assert side.comparison == compared.comparison
    for method in METHODS_COMPARED:
        best = [
            (out / "runs" / f"{method}-1" / "best.safetensors").read_bytes()
            for out in (compared.out, tmp_path)
        ]
        assert best[0] == best[1]


def test_a_run_that_found_the_device_full_is_trained_alone(
    recipe, compared, tmp_path, monkeypatch, capsys
):
    """The workers are threads here, so that one of them can be made to fail."""
    monkeypatch.setattr(campaign, "ProcessPoolExecutor", lambda *_: ThreadPoolExecutor(1))
    train, full = campaign.train, {"jld-1"}

    def crowded(recipe, data, out, **options):
        if out.name in full:
            full.remove(out.name)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 26.00 MiB.")
        return train(recipe, data, out, **options)

    monkeypatch.setattr(campaign, "train", crowded)
    resources = Resources(data=compared.out / "data", side_by_side=2)
    found = compare(recipe, tmp_path, methods=["jld", "vamp"], seeds=[1], resources=resources)
    assert not found.comparison.waiting and not found.comparison.failed and not full
    assert "jld-1: the device was too full beside other runs" in capsys.readouterr().err


def test_the_ledger_says_how_far_every_run_is(compared):
    ledger = json.loads((compared.out / "plan.json").read_text())
    assert len(ledger) == len(METHODS_COMPARED) * len(SEEDS)
    assert {entry["state"] for entry in ledger} == {"done"}
    by_method = {entry["method"]: entry for entry in ledger}
    assert by_method["vamp"]["total_epochs"] == 2 * by_method["tampl"]["total_epochs"]
    assert all(entry["estimated_s"] == pytest.approx(entry["seconds"]) for entry in ledger)


def test_without_a_folder_the_recipe_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call("compare", TINY, "--methods", "macro-only", "--budget-s", "0", "--json")
    assert (tmp_path / "runs" / "compare-tiny" / "scores.json").is_file()


def test_a_method_is_trained_by_what_was_chosen_for_it(recipe, compared, tmp_path):
    own = {"training": {"transition": {"learning_rate": 3e-3}}}
    ours = replace(recipe, chosen={"jld": own})
    compare(
        ours,
        tmp_path,
        methods=["tampl", "jld"],
        seeds=[1],
        resources=Resources(data=compared.out / "data"),
    )
    rates = {}
    for method in ("tampl", "jld"):
        kept = json.loads((tmp_path / "runs" / f"{method}-1" / "evaluation.json").read_text())
        rates[method] = kept["recipe"]["training"]["transition"]["learning_rate"]
        assert "chosen" not in kept["recipe"]
    assert rates == {"tampl": recipe.training.transition.learning_rate, "jld": 3e-3}
    assert "Chosen" in (tmp_path / "report.html").read_text()
