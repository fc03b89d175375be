"""The verbs that look: advice on a store, the card of a model."""

import json
from pathlib import Path

import pytest

from command import call
from tampl.advice import study as studies
from tampl.lab.runs import Run
from tampl.models import load_model

RECIPE = (Path(__file__).parents[2] / "tiny.toml").read_text()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("looks")


@pytest.fixture(scope="module")
def data(home):
    (home / "tiny.toml").write_text(RECIPE)
    assert call("simulate", home / "tiny.toml", "--out", home / "data").code == 0
    return home / "data"


@pytest.fixture(scope="module")
def run(home, data):
    options = ("--data", data, "--out", home / "run", "--method", "tampl")
    assert call("train", home / "tiny.toml", *options).code == 0
    return home / "run"


def test_advice_is_printed_and_becomes_plain_data(data):
    said = call("advise", data)
    assert said.code == 0 and "Initial states" in said.out and said.err == ""
    plain = call("advise", data, "--json").json
    assert plain["trajectories"] == 6 and [s["symbol"] for s in plain["series"]] == list("SIR")


def test_advice_is_a_page_with_pictures(data, tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "STEPS", (5, 5))
    monkeypatch.setattr(studies, "MEMBERS", 2)
    out = tmp_path / "advice"
    said = call("advise", data, "--out", out, "--full", "--budget-s", 0, "--device", "cpu")
    assert said.code == 0 and said.out.endswith(f"page: {out / 'advice.html'}\n"), said
    page = (out / "advice.html").read_text()
    assert page.count("data:image/png;base64,") == 2 and "Macro-only" in page
    plain = json.loads((out / "advice.json").read_text())
    assert [t["method"] for t in plain["study"]["trainings"]] == ["tampl+", "macro-only"]
    assert plain["provenance"]["data"] and (out / "figures" / "series.png").is_file()


def test_wrong_calls_for_advice_are_one_line(data, tmp_path):
    call("advise", tmp_path / "nowhere").refused("does not exist or is no folder")
    (tmp_path / "file").write_text("")
    call("advise", data, "--out", tmp_path / "file").refused("`out` is", "give a folder")
    call("advise", data, "--full", "--error", -1).refused("`error` is -1.0")


def test_the_card_of_a_run_has_its_recipe_and_after_an_evaluation_its_scores(run, data):
    before = call("card", run)
    assert before.code == 0 and "Not evaluated on a test set yet." in before.out
    origin = load_model(run / "best.safetensors").origin
    assert origin.identity in before.out and len(origin.identity) == 64
    assert origin.recipe["system"]["name"] == "sirs" and origin.method == "tampl"
    assert call("evaluate", run, "--data", data).code == 0
    after = call("card", run, "--json").json["origin"]
    record = Run.open(run).read_record()
    assert after["scores"]["tampl"]["rmse"] == record.scores["tampl"].rmse
    assert after["coverage"].keys() == {"0.5", "0.8", "0.95"}
    assert "| floor |" in call("card", run).out
    # The file itself is as it was: scores belong to a model and a test set.
    assert load_model(run / "best.safetensors").origin == origin


def test_a_file_and_an_ensemble_have_cards(run, tmp_path):
    path = run / "best.safetensors"
    assert call("card", path).out.startswith("# Model card: sirs")
    (tmp_path / "pair").mkdir()
    for number in (0, 1):
        (tmp_path / "pair" / f"model-00{number}.safetensors").write_bytes(path.read_bytes())
    assert call("card", tmp_path / "pair").out.count("# Model card: sirs") == 2
    assert len(call("card", tmp_path / "pair", "--json").json["models"]) == 2


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "text").write_text("no model")
    call("card", tmp_path / "text").refused("is damaged")
    call("card", tmp_path / "nothing").refused("does not exist")
    call("card", tmp_path).refused("holds no run")
