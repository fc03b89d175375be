"""The ledger: states read from folders, and times from what was measured."""

import json

import pytest

from tampl.lab.campaign import Entry, estimate, read_entry, write_ledger

ORIGIN = {"system": "sirs", "method": "tampl", "seed": 1}


def entry(method="tampl", epochs=0, seconds=0.0, total=10):
    return Entry("sirs", method, 1, "folder", "begun", epochs, total, seconds)


def history(folder, epochs):
    folder.mkdir(exist_ok=True)
    log = [{"seconds": {"a": 1.0, "b": 0.5}} for _ in range(epochs)]
    (folder / "history.json").write_text(json.dumps(log))


def test_states_follow_the_files(tmp_path):
    folder = tmp_path / "run"
    state = lambda: read_entry(folder, ORIGIN, total_epochs=4).state
    assert state() == "waiting"
    history(folder, 2)
    assert state() == "begun"
    history(folder, 4)
    assert state() == "begun"
    for name in ("best.safetensors", "last.safetensors"):
        (folder / name).touch()
    assert state() == "trained"
    (folder / "evaluation.json").touch()
    assert state() == "done"
    found = read_entry(folder, ORIGIN, total_epochs=4)
    assert (found.epochs, found.seconds, found.folder) == (4, 6.0, "run")


def test_a_run_is_estimated_by_its_own_epochs_and_else_by_its_method_s():
    entries = [
        entry(epochs=5, seconds=10.0),
        entry(total=20),
        entry("jld"),
        entry(epochs=2, seconds=8.0),
    ]
    found = [each.estimated_s for each in estimate(entries)]
    assert found == [20.0, 60.0, None, 40.0]


def test_the_file_is_plain(tmp_path):
    write_ledger([entry(epochs=1, seconds=3.0)], tmp_path / "plan.json")
    (line,) = json.loads((tmp_path / "plan.json").read_text())
    assert line["estimated_s"] == pytest.approx(30.0) and line["state"] == "begun"
