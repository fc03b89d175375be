"""Records of evaluated runs: one JSON for all uses, and experiments do not mix."""

import json
import shutil
from dataclasses import fields, replace
from math import isnan
from pathlib import Path

import pytest

from command import call
from tampl.errors import InputError
from tampl.lab.comparisons import compare
from tampl.lab.pipeline import read_results, record_runs
from tampl.lab.recipes import read_recipe
from tampl.lab.runs import Run, RunRecord, load_records, read_records

TINY = Path(__file__).parents[1] / "tiny.toml"


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("archive")
    return compare(read_recipe(TINY), out, methods=["tampl", "vamp"], seeds=[1, 2])


@pytest.fixture
def runs(compared):
    return sorted((compared.out / "runs").iterdir())


def read(runs):
    return read_records([Run.open(path) for path in runs])


def test_a_record_reads_back_whole(runs, tmp_path):
    record_runs(runs, tmp_path / "tiny")
    for kept, run in zip(load_records(tmp_path / "tiny"), read(runs), strict=True):
        assert kept.as_dict() == run.as_dict()
        same = {field.name for field in fields(kept)} - {"cases", "trust"}
        assert {key: getattr(kept, key) for key in same} == {
            key: getattr(run, key) for key in same
        }
        assert kept.cases.twins == run.cases.twins


def test_a_run_s_evaluation_is_its_record_and_the_digest_of_its_model(runs, tmp_path):
    (kept,) = record_runs(runs[:1], tmp_path)
    evaluation = json.loads((runs[0] / "evaluation.json").read_text())
    assert len(evaluation.pop("model")) == len(evaluation.pop("checksum")) == 64
    assert evaluation == {**json.loads(kept.read_text()), "format": "tampl-run-2"}
    assert (runs[0] / "cases.npz").read_bytes() == kept.with_suffix(".npz").read_bytes()


def test_committed_records_are_read_and_written_as_they_are(tmp_path):
    committed = TINY.parents[1] / "results" / "sirs" / "tampl-42.json"
    RunRecord.load(committed).save(tmp_path / committed.name)
    assert (tmp_path / committed.name).read_text() == committed.read_text()


def test_a_score_that_is_not_finite_is_null_in_a_record(runs, tmp_path):
    (record, *_) = read(runs)
    score = replace(record.scores[record.method], rmse=float("inf"))
    replace(record, scores={**record.scores, record.method: score}).save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["scores"]["tampl"]["rmse"] is None
    assert isnan(RunRecord.load(tmp_path / "a.json").scores["tampl"].rmse)


def test_a_run_that_was_trained_further_is_evaluated_again(runs, tmp_path):
    run = Run.open(shutil.copytree(runs[0], tmp_path / "run"))
    log = run.read_history()
    data = run.read_record().data
    assert run.is_evaluated(data) and not run.is_evaluated("another identity")
    run.history_file.write_text(json.dumps([*log, log[-1]]))
    with pytest.raises(InputError, match="trained further"):
        run.read_record()
    assert not run.is_evaluated(data)


def test_an_evaluation_of_an_older_version_is_refused(runs, tmp_path):
    run = Run.open(shutil.copytree(runs[0], tmp_path / "run"))
    run.evaluation_file.write_text(json.dumps({"scores": {}, "data": "identity"}))
    with pytest.raises(InputError, match="`tampl evaluate`"):
        run.read_record()


def test_results_are_those_of_the_comparison(compared, runs, tmp_path):
    record_runs(runs, tmp_path / "tiny")
    found = read_results(tmp_path)["tiny"]
    assert found.comparison.as_dict() == compared.comparison.as_dict()
    tampl = found.as_dict()["tampl"]
    assert tampl["rmse"] == compared.comparison.as_dict()["scores"]["tampl"]["rmse"]
    assert len(tampl["held"]) == len(tampl["plain"]["rmse"]["values"]) == 2


def test_nothing_of_a_run_is_needed_afterwards_and_other_files_do_not_matter(runs, tmp_path):
    record_runs(runs[:1], tmp_path / "tiny")
    (tmp_path / "tiny" / "note.json").write_text("[1]")
    (tmp_path / "empty").mkdir()
    (tmp_path / "speed.json").write_text("{}")
    assert set(read_results(tmp_path)) == {"tiny"}


def test_runs_on_other_data_are_refused(runs, tmp_path):
    replace(read(runs)[1], data="another identity").save(tmp_path / "vamp-1.json")
    with pytest.raises(InputError, match="other data"):
        record_runs(runs[:1], tmp_path)
    assert not (tmp_path / "tampl-1.json").exists()


def test_a_damaged_record_is_refused(runs, tmp_path):
    (path,) = record_runs(runs[:1], tmp_path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(InputError, match="is damaged"):
        load_records(tmp_path)


def test_command_line(runs, tmp_path):
    kept = call("record", *runs, "--out", tmp_path / "tiny", "--json")
    assert kept.code == 0 and len(kept.json["kept"]) == 4
    scores = call("results", tmp_path, "--json").json["tiny"]
    assert set(scores["tampl"]["rmse"]) == {"mean", "std", "values"}
    assert {"floor", "pair", "mean_field", "mean_trajectory", "persistence"} <= scores.keys()
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


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("recipe",), value) for value in (None, [], "x", {})),
        *((("recipe", "training"), value) for value in (None, {}, 3)),
        *((("recipe", "training", "seed"), value) for value in ("../x", None, 1.5, True)),
        *((("recipe", "system"), value) for value in (None, {}, {"name": None})),
        *((("recipe", section), None) for section in ("model", "methods", "data")),
        *((("method",), value) for value in (None, 5, "", "x" * 300)),
    ],
)
def test_a_run_file_of_other_types_is_one_line(runs, tmp_path, path, value):
    run = shutil.copytree(runs[0], tmp_path / "run")
    identity = json.loads((run / "run.json").read_text())
    *outer, last = path
    table = identity
    for key in outer:
        table = table[key]
    table[last] = value
    (run / "run.json").write_text(json.dumps(identity))
    call("report", run, "--out", tmp_path / "page").refused("run.json", "damaged")


@pytest.mark.parametrize(
    "value", [None, [], 3, "x", {"extended": 3}, {"extended": [3]}, {"extended": [{}]}]
)
def test_a_provenance_of_other_types_is_one_line(runs, compared, tmp_path, value):
    run = shutil.copytree(runs[0], tmp_path / "run")
    (run / "provenance.json").write_text(json.dumps(value))
    data = compared.out / "data"
    call("evaluate", run, "--data", data, "--device", "cpu").refused("provenance.json", "damaged")


@pytest.mark.parametrize("value", [None, [], "x"])
@pytest.mark.parametrize("key", ["provenance", "training_provenance", "recipe"])
def test_a_record_without_checksum_and_of_other_types_is_one_line(runs, tmp_path, key, value):
    run = shutil.copytree(runs[0], tmp_path / "run")
    record = json.loads((run / "evaluation.json").read_text())
    del record["checksum"]
    record |= {key: value, "format": "tampl-run-1"}
    (run / "evaluation.json").write_text(json.dumps(record))
    call("report", run, "--out", tmp_path / "page").refused("evaluation.json", "damaged")
