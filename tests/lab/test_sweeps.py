"""Sweeps on the tiny recipe: rows, resuming, refusals."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from command import call
from tampl.lab import campaign
from tampl.lab.campaign import Resources
from tampl.lab.comparisons import sweep
from tampl.lab.recipes import Axis, read_recipe

TINY = Path(__file__).parents[1] / "tiny.toml"


@pytest.fixture(scope="module")
def recipe():
    return read_recipe(TINY)


@pytest.fixture(scope="module")
def swept(recipe, tmp_path_factory):
    """A whole sweep; no test may write to its folder."""
    out = tmp_path_factory.mktemp("sweep")
    axis = Axis.find(recipe, "jld", "lambda_tr", values=[0.1, 1.0])
    return sweep(recipe, out, axis, seeds=[1, 2])


@pytest.fixture
def there(swept):
    """The sweep's data."""
    return Resources(data=swept.out / "data")


# What is written and kept


def test_rows_hold_the_runs(swept):
    assert swept.record["key"] == "methods.jld.lambda_tr"
    assert [row["value"] for row in swept.record["rows"]] == [0.1, 1.0]
    run = swept.out / "runs" / "jld-lambda_tr-0.1-2"
    log = json.loads((run / "history.json").read_text())
    validation = min(epoch["validation"] for epoch in log if epoch["validation"] is not None)
    score = json.loads((run / "evaluation.json").read_text())["scores"]["jld"]
    row = swept.comparison.scores["0.1"]
    assert row.validation.values[1] == validation
    assert (row.rmse.values[1], row.mmd.values[1]) == (score["rmse"], score["mmd"])
    assert (
        json.loads((run / "run.json").read_text())["recipe"]["methods"]["jld"]["lambda_tr"] == 0.1
    )


def test_files(swept):
    record = json.loads((swept.out / "sweep.json").read_text())
    assert record == json.loads(json.dumps(swept.record))
    assert {"method", "key", "seeds", "test", "rows", "failed", "waiting"} <= record.keys()
    for row, shown in zip(record["rows"], swept.comparison.scores.values(), strict=True):
        assert row["latent_std"]["values"] == list(shown.latent_std.values)
    assert record["recipe"] == "tiny" and record["provenance"]["command"]
    assert swept.table == (swept.out / "sweep.md").read_text()
    assert swept.table.startswith("| JLD, methods.jld.lambda_tr |")
    assert {path.name for path in (swept.out / "figures").iterdir()} == {"sweep.png", "sweep.pdf"}


def test_validation_alone_leaves_the_test_split_unseen(
    recipe, swept, there, tmp_path, monkeypatch
):
    monkeypatch.setattr(campaign, "evaluate_run", None)
    axis = Axis.find(recipe, "jld", "lambda_tr", values=[1.0])
    found = sweep(recipe, tmp_path, axis, seeds=[1], test=False, resources=there)
    row = found.comparison.scores["1.0"]
    assert row.rmse is None and found.record["rows"][0]["rmse"] is None
    assert row.validation.values == swept.comparison.scores["1.0"].validation.values[:1]
    assert "test" not in (tmp_path / "sweep.md").read_text()


def test_resumed_equals_uninterrupted(recipe, swept, there, tmp_path):
    axis = Axis.find(recipe, "jld", "lambda_tr", values=[0.1, 1.0])
    spent = replace(there, budget_s=0)
    nothing = sweep(recipe, tmp_path, axis, seeds=[1, 2], resources=spent)
    assert nothing.record["waiting"] == 4
    assert [row["seeds"] for row in nothing.record["rows"]] == [(), ()]
    again = sweep(recipe, tmp_path, axis, seeds=[1, 2], resources=there)
    assert again.record == swept.record
    for name in ("sweep.json", "sweep.md"):
        assert (tmp_path / name).read_bytes() == (swept.out / name).read_bytes()


def test_another_value_keeps_the_others(recipe, swept, tmp_path, monkeypatch):
    out = Path(shutil.copytree(swept.out, tmp_path / "copy"))
    trained, train = [], campaign.train

    def watched(recipe, data, out, **options):
        trained.append(Path(out).name)
        return train(recipe, data, out, **options)

    monkeypatch.setattr(campaign, "train", watched)
    axis = Axis.find(recipe, "jld", "lambda_tr", values=[0.1, 0.5, 1.0])
    found = sweep(recipe, out, axis, seeds=[1, 2])
    assert trained == ["jld-lambda_tr-0.5-1", "jld-lambda_tr-0.5-2"]
    assert found.record["rows"][0] == swept.record["rows"][0]


def test_a_value_that_diverges_is_named(recipe, there, tmp_path):
    key = "training.representation.learning_rate"
    axis = Axis.find(recipe, "jld", key, values=[1e-3, 1e38])
    found = sweep(recipe, tmp_path, axis, test=False, resources=there)
    (failed,) = found.record["failed"]
    assert (failed["value"], failed["seed"]) == (1e38, 42)
    assert "training diverged" in failed["reason"]
    assert found.comparison.scores["0.001"].seeds == (42,)
    assert f"{key} = 1e+38, seed 42: failed; training diverged" in found.table


def test_lists_are_values_too(recipe, there, tmp_path):
    axis = Axis.find(recipe, "next-macro", "transition.hidden", values=[[4], [4, 4]])
    found = sweep(recipe, tmp_path, axis, test=False, resources=there)
    assert [row["value"] for row in found.record["rows"]] == [[4], [4, 4]]
    assert "| [4, 4] |" in found.table


# On the command line


def command(out, *options):
    return call("sweep", TINY, "--out", out, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--method", "magic", "--set", "lambda_tr=1.0"), ["magic"]),
        (("--method", "jld", "--set", "lambda=1.0"), ["unknown key", "lambda"]),
        (("--method", "jld", "--set", "lambda_tr"), ["no values"]),
        (("--method", "jld", "--set", "lambda_tr=0.1,-1.0"), ["methods.jld.lambda_tr", "-1.0"]),
        (("--method", "jld", "--set", "lambda_tr=soft"), ["set", "lambda_tr=soft"]),
        (("--method", "jld", "--set", "lambda_tr=1.0", "--seeds", "1,1"), ["once"]),
        (("--method", "jld", "--set", "lambda_tr=1.0", "--epochs", "0"), ["training.epochs"]),
        (("--method", "jld"), ["set"]),
    ],
)
def test_bad_input_is_one_line_before_anything_runs(options, words, tmp_path):
    command(tmp_path / "out", *options).refused(*words)
    assert not (tmp_path / "out").exists()


def test_the_command_prints_the_record(swept, tmp_path):
    options = ("--method", "next-macro", "--set", "latent_dim=2,3", "--epochs", 2, "--no-test")
    data = ("--data", swept.out / "data")
    outcome = command(tmp_path, *options, *data, "--seeds", "5", "--json")
    assert outcome.code == 0
    assert outcome.json == json.loads((tmp_path / "sweep.json").read_text())
    assert [row["value"] for row in outcome.json["rows"]] == [2, 3]
    log = tmp_path / "runs" / "next-macro-model.latent_dim-2-5" / "history.json"
    assert len(json.loads(log.read_text())) == 2
    shown = command(tmp_path, *options, *data, "--seeds", "5")
    assert "| 3 |" in shown.out


def test_without_a_folder_recipe_method_and_key_name_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call("sweep", TINY, "--method", "jld", "--set", "lambda_tr=1.0", "--budget-s", "0")
    assert (tmp_path / "runs" / "sweep-tiny-jld-lambda_tr" / "sweep.json").is_file()
