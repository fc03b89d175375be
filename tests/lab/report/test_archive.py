"""Measured runs: what is kept reads back whole, and experiments do not mix."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from command import call
from tampl.errors import InputError
from tampl.lab.comparisons import compare
from tampl.lab.pipeline import read_records, read_results, record_runs
from tampl.lab.recipes import read_recipe
from tampl.lab.report.archive import load_runs, save_run

TINY = Path(__file__).parents[2] / "tiny.toml"


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("archive")
    return compare(read_recipe(TINY), out, methods=["tampl", "vamp"], seeds=[1, 2])


@pytest.fixture
def runs(compared):
    return sorted((compared.out / "runs").iterdir())


def test_what_is_kept_reads_back_whole(runs, tmp_path):
    record_runs(runs, tmp_path / "tiny")
    for kept, run in zip(load_runs(tmp_path / "tiny"), read_records(runs), strict=True):
        same = {field.name for field in fields(kept)} - {"name", "cases"}
        assert {key: getattr(kept, key) for key in same} == {
            key: getattr(run, key) for key in same
        }
        assert kept.cases.twins == run.cases.twins


def test_results_are_those_of_the_comparison(compared, runs, tmp_path):
    record_runs(runs, tmp_path / "tiny")
    found = read_results(tmp_path)["tiny"]
    assert found.as_dict()["scores"] == compared.comparison.as_dict()["scores"]


def test_nothing_of_a_run_is_needed_afterwards_and_other_files_do_not_matter(runs, tmp_path):
    record_runs(runs[:1], tmp_path / "tiny")
    (tmp_path / "tiny" / "note.json").write_text("[1]")
    (tmp_path / "empty").mkdir()
    (tmp_path / "speed.json").write_text("{}")
    assert set(read_results(tmp_path)) == {"tiny"}


def test_runs_on_other_data_are_refused(runs, tmp_path):
    record_runs(runs[:1], tmp_path)
    other = replace(read_records(runs)[1], data="another identity")
    with pytest.raises(InputError, match="other data"):
        save_run(other, tmp_path)


def test_a_damaged_record_is_refused(runs, tmp_path):
    (path,) = record_runs(runs[:1], tmp_path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(InputError, match="is damaged"):
        load_runs(tmp_path)


def test_command_line(runs, tmp_path):
    kept = call("record", *runs, "--out", tmp_path / "tiny", "--json")
    assert kept.code == 0 and len(kept.json["kept"]) == 4
    scores = call("results", tmp_path, "--json").json["tiny"]
    assert set(scores["tampl"]["rmse"]) == {"mean", "std", "values"}
    assert {"floor", "pair", "mean_field", "mean_trajectory"} <= scores.keys()
    assert scores["vamp"]["mmd"] is None
    assert "TAMPL" in call("results", tmp_path).out
    nowhere = call("results", tmp_path / "nowhere")
    assert nowhere.code == 2 and "does not exist" in nowhere.err


def test_a_record_says_where_it_comes_from(runs, tmp_path):
    (path,) = record_runs(runs[:1], tmp_path)
    record = json.loads(path.read_text())
    assert record["system"] == "sirs" and record["seconds"] > 0
    assert {"commit", "command", "device", "packages"} <= record["provenance"].keys()
    assert record["training_provenance"].keys() == record["provenance"].keys()
    assert len(record["history"]) == record["recipe"]["training"]["epochs"]


def test_a_record_has_what_the_claims_need(runs, tmp_path):
    kept = {path.stem: json.loads(path.read_text()) for path in record_runs(runs, tmp_path)}
    assert set(kept["tampl-1"]["spread"]) == {"S", "I", "R"} and kept["vamp-1"]["spread"] == {}
    assert {"reference", "vamp", "mean_field", "pair"} == kept["vamp-1"]["peaks"].keys()
    for record in kept.values():
        assert all(epoch["latent"]["std_mean"] > 0 for epoch in record["history"])
