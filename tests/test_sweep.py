"""Sweeps on the tiny recipe: keys and values, rows, resuming, refusals."""

import json
import re
import shutil
from pathlib import Path

import pytest

from command import call
from tampl import campaign
from tampl.config import read_recipe
from tampl.errors import InputError
from tampl.sweep import Axis, parse_setting, sweep

TINY = Path(__file__).parent / "tiny.toml"


@pytest.fixture(scope="module")
def recipe():
    return read_recipe(TINY)


@pytest.fixture(scope="module")
def swept(recipe, tmp_path_factory):
    """A whole sweep and its folder; no test may write to it."""
    out = tmp_path_factory.mktemp("sweep")
    axis = Axis.find(recipe, "jld", "lambda_tr", values=[0.1, 1.0])
    return sweep(recipe, out, axis, seeds=[1, 2]), out


# Keys and values


@pytest.mark.parametrize(
    ("method", "key", "path"),
    [
        ("jld", "lambda_tr", "methods.jld.lambda_tr"),
        ("jld", "methods.jld.lambda_tr", "methods.jld.lambda_tr"),
        ("jld-sig", "penalty.weight", "methods.jld-sig.penalty.weight"),
        ("tampl", "latent_dim", "model.latent_dim"),
        ("tampl", "model.latent_dim", "model.latent_dim"),
        ("tampl", "batch_size", "training.batch_size"),
        ("tampl", "transition.steps", "model.transition.steps"),
        ("tampl", "transition.learning_rate", "training.transition.learning_rate"),
    ],
)
def test_a_key_is_found_in_the_method_then_the_model_then_training(recipe, method, key, path):
    assert Axis.find(recipe, method, key, values=[3]).path == path


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        ("lambda", [1.0], "unknown key `lambda`"),
        ("penalty.weight", [1.0], "unknown key `penalty.weight`"),
        ("methods.tampl.lambda_tr", [1.0], "unknown key `methods.tampl.lambda_tr`"),
        ("model.latent", [1], "unknown key `model.latent`"),
        ("system.beta", [1.0], "unknown key `system.beta`"),
        ("seed", [1], "`training.seed` is no setting"),
        ("lambda_tr", [1.0, -1.0], "`methods.jld.lambda_tr` is -1.0"),
        ("latent_dim", [4, 2.5], "`model.latent_dim` is 2.5"),
        ("latent_dim.x", [4], "unknown key `latent_dim.x`"),
        ("model.latent_dim.x", [4], "`model.latent_dim` is 3; it must be a section"),
        ("lambda_tr", [], "no values"),
        ("lambda_tr", [1.0, 2.0, 1.0], "1.0 twice"),
    ],
)
def test_bad_keys_and_values_are_refused(recipe, key, values, words):
    with pytest.raises(InputError, match=re.escape(words)):
        Axis.find(recipe, "jld", key, values=values)


def test_unknown_method(recipe):
    with pytest.raises(InputError, match="magic"):
        Axis.find(recipe, "magic", "lambda_tr", values=[1.0])


def test_values_are_toml():
    assert parse_setting("a.b=1, 2.5,true") == ("a.b", [1, 2.5, True])
    assert parse_setting('solver="euler","midpoint"')[1] == ["euler", "midpoint"]
    assert parse_setting("hidden=[8,8],[16]")[1] == [[8, 8], [16]]
    assert parse_setting("lambda_tr") == ("lambda_tr", [])
    for text in ("solver=euler", "a=1,,2", "a=[1", "a=1]"):
        with pytest.raises(InputError, match="`set`"):
            parse_setting(text)


# What is written and kept


def test_rows_hold_the_runs(swept):
    found, out = swept
    assert found.key == "methods.jld.lambda_tr"
    assert [row.value for row in found.rows] == [0.1, 1.0]
    run = out / "runs" / "jld-lambda_tr-0.1-2"
    log = json.loads((run / "history.json").read_text())
    validation = min(epoch["validation"] for epoch in log if epoch["validation"] is not None)
    score = json.loads((run / "evaluation.json").read_text())["scores"]["jld"]
    row = found.rows[0]
    assert row.validation.values[1] == validation
    assert (row.rmse.values[1], row.mmd.values[1]) == (score["rmse"], score["mmd"])
    assert (
        json.loads((run / "run.json").read_text())["recipe"]["methods"]["jld"]["lambda_tr"] == 0.1
    )


def test_files(swept):
    found, out = swept
    record = json.loads((out / "sweep.json").read_text())
    origin = {key: record.pop(key) for key in ("recipe", "data", "provenance")}
    assert record == json.loads(json.dumps(found.as_dict()))
    assert origin["recipe"] == "tiny" and origin["provenance"]["command"]
    assert (out / "sweep.md").read_text().startswith("| JLD, methods.jld.lambda_tr |")
    assert {path.name for path in (out / "figures").iterdir()} == {"sweep.png", "sweep.pdf"}


def test_validation_alone_leaves_the_test_split_unseen(recipe, swept, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "evaluate_run", None)
    axis = Axis.find(recipe, "jld", "lambda_tr", values=[1.0])
    found = sweep(recipe, tmp_path, axis, seeds=[1], data=swept[1] / "data", test=False)
    assert found.rows[0].rmse is None
    assert found.rows[0].validation.values == (swept[0].rows[1].validation.values[0],)
    assert "test" not in (tmp_path / "sweep.md").read_text()


def test_resumed_equals_uninterrupted(recipe, swept, tmp_path):
    axis = Axis.find(recipe, "jld", "lambda_tr", values=[0.1, 1.0])
    options = {"seeds": [1, 2], "data": swept[1] / "data"}
    nothing = sweep(recipe, tmp_path, axis, **options, budget_s=0)
    assert nothing.waiting == 4
    sweep(recipe, tmp_path, axis, **options)
    for name in ("sweep.json", "sweep.md"):
        assert (tmp_path / name).read_bytes() == (swept[1] / name).read_bytes()


def test_another_value_keeps_the_others(recipe, swept, tmp_path, monkeypatch):
    out = Path(shutil.copytree(swept[1], tmp_path / "copy"))
    trained, train = [], campaign.train

    def watched(recipe, data, out, **options):
        trained.append(Path(out).name)
        return train(recipe, data, out, **options)

    monkeypatch.setattr(campaign, "train", watched)
    axis = Axis.find(recipe, "jld", "lambda_tr", values=[0.1, 0.5, 1.0])
    found = sweep(recipe, out, axis, seeds=[1, 2])
    assert trained == ["jld-lambda_tr-0.5-1", "jld-lambda_tr-0.5-2"]
    assert found.rows[0] == swept[0].rows[0]


def test_a_value_that_diverges_is_named(recipe, swept, tmp_path):
    key = "training.representation.learning_rate"
    axis = Axis.find(recipe, "jld", key, values=[1e-3, 1e38])
    found = sweep(recipe, tmp_path, axis, data=swept[1] / "data", test=False)
    assert [(run.value, run.seed) for run in found.failed] == [(1e38, 42)]
    assert "training diverged" in found.failed[0].reason
    assert found.rows[0].seeds == (42,)
    assert (
        f"{key} = 1e+38, seed 42: failed; training diverged" in (tmp_path / "sweep.md").read_text()
    )


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
    data = ("--data", swept[1] / "data")
    outcome = command(tmp_path, *options, *data, "--seeds", "5", "--json")
    assert outcome.code == 0
    assert outcome.json == json.loads((tmp_path / "sweep.json").read_text())
    assert [row["value"] for row in outcome.json["rows"]] == [2, 3]
    log = tmp_path / "runs" / "next-macro-model.latent_dim-2-5" / "history.json"
    assert len(json.loads(log.read_text())) == 2
    shown = command(tmp_path, *options, *data, "--seeds", "5")
    assert "| 3 |" in shown.out
