"""Campaigns: resources that are refused, deadlines, and the ledger."""

import json
import time

import pytest

from tampl.errors import InputError
from tampl.lab.campaign import Resources, estimate_times
from tampl.lab.runs import Run


def line(method="tampl", epochs=0, seconds=0.0, total=10):
    return {"method": method, "epochs": epochs, "total_epochs": total, "seconds": seconds}


def write_history(folder, epochs):
    folder.mkdir(exist_ok=True)
    log = [{"seconds": {"a": 1.0, "b": 0.5}} for _ in range(epochs)]
    (folder / "history.json").write_text(json.dumps(log))


def test_states_follow_the_files(tmp_path):
    folder = tmp_path / "run"
    stage = lambda: Run(folder).read_stage(total_epochs=4)
    assert stage() == "waiting"
    write_history(folder, 2)
    assert stage() == "begun"
    write_history(folder, 4)
    assert stage() == "begun"
    for name in ("best.safetensors", "last.safetensors"):
        (folder / name).touch()
    assert stage() == "trained"
    (folder / "evaluation.json").touch()
    assert stage() == "done"


def test_a_run_is_estimated_by_its_own_epochs_and_else_by_its_method_s():
    lines = [
        line(epochs=5, seconds=10.0),
        line(total=20),
        line("jld"),
        line(epochs=2, seconds=8.0),
    ]
    found = [each["estimated_s"] for each in estimate_times(lines)]
    assert found == [pytest.approx(20.0), pytest.approx(60.0), None, pytest.approx(40.0)]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"budget_s": -1.0}, "`budget_s` is -1.0"),
        ({"budget_s": float("nan")}, "`budget_s` is nan"),
        ({"side_by_side": 0}, "`side_by_side` is 0"),
    ],
)
def test_what_can_never_do_is_refused(bad, words):
    with pytest.raises(InputError, match=words):
        Resources(**bad)


def test_the_deadline_is_the_budget_from_now(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    assert Resources(budget_s=2.5).deadline() == 7.5
    assert Resources().deadline() is None
