"""The data sets of one's own are what they claim to be, and records of several runs are joined."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
for folder in ("benchmarks", "results"):
    sys.path.append(str(ROOT / folder))
own_data = importlib.import_module("own_data")
page = importlib.import_module("pages.own_data")
PARTS = ("train", "valid", "test")
Records = importlib.import_module("pages.records").Records


@pytest.fixture(scope="module", params=["kawasaki", "particles", "blob"])
def written(request, tmp_path_factory):
    """Name and microstates of a data set, as it was written."""
    folder = tmp_path_factory.mktemp(request.param)
    own_data.DATA[request.param](folder)
    return request.param, {part: np.load(folder / f"{part}.npz")["x"] for part in PARTS}


def test_test_states_alone_have_several_trajectories(written):
    _, parts = written
    starts = {part: np.unique(x[:, 0].reshape(len(x), -1), axis=0) for part, x in parts.items()}
    assert len(starts["train"]) == len(parts["train"])
    assert len(starts["valid"]) == len(parts["valid"])
    assert len(starts["test"]) * 16 == len(parts["test"])
    # The members of a state part from one another.
    assert len(np.unique(parts["test"][:16, -1].reshape(16, -1), axis=0)) == 16


def test_the_lattice_keeps_its_magnetisation_and_its_domains_grow(written):
    name, parts = written
    if name != "kawasaki":
        return
    x = parts["train"].astype(int)
    up = x.sum(axis=(2, 3))
    assert (up == up[:, :1]).all()
    ends = x[:, [0, -1]]
    walls = sum((ends != np.roll(ends, 1, axis)).mean(axis=(2, 3)) for axis in (2, 3))
    noisy = walls[:, 0] > 0.6
    assert noisy.any() and (walls[noisy, 1] < walls[noisy, 0]).all()


def write_record(path, rmse, *, data="blob", seed=42, commit="abc"):
    facts = {"microstates": "pictures", "observables": ["a"], "members": 16, "floor": 0.1}
    facts |= {"trajectories": {"train": 8, "valid": 2, "test": 3}, "persistence": 0.9}
    row = {"seed": seed, "rmse": rmse, "mmd": 0.0, "crps": 0.0, "seconds": 60.0}
    found = own_data.judge({**facts, "mean_trajectory": 0.6, "tampl+": [row]})
    provenance = {"commit": commit, "cpu": "two cores", "device": "cpu", "command": "x"}
    record = {"data": {data: found}, "epochs": None, "provenance": provenance}
    path.write_text(json.dumps(record))
    return path


def test_records_are_joined_and_shown(tmp_path):
    files = [write_record(tmp_path / f"{s}.json", 0.1 * (s - 40), seed=s) for s in (44, 42, 43)]
    files.append(write_record(tmp_path / "k.json", 0.14, data="kawasaki"))
    record = own_data.join(files)
    blob = record["data"]["blob"]
    assert [row["seed"] for row in blob["tampl+"]] == [42, 43, 44]
    # 0.3 is half of 0.6 and three floors: not good. 0.14 is within 1.5 floors.
    assert blob["rmse"] == pytest.approx(0.3) and not blob["good"]
    assert list(record["data"]) == ["kawasaki", "blob"] and record["data"]["kawasaki"]["good"]
    (tmp_path / page.RECORD).write_text(json.dumps(record))
    text = page.SECTIONS[0].text(Records(tmp_path))
    for words in ("1 of 2 are", "| 0.3000 ± 0.1000 |", "Training seeds 42, 43, 44"):
        assert words in text


def test_the_page_does_without_the_record(tmp_path):
    assert page.SECTIONS[0].text(Records(tmp_path)) == ""


@pytest.mark.parametrize("other", [{"seed": 42}, {"seed": 43, "commit": "def"}])
def test_other_runs_are_not_joined(other, tmp_path):
    files = [
        write_record(tmp_path / "a.json", 0.1),
        write_record(tmp_path / "b.json", 0.1, **other),
    ]
    with pytest.raises(SystemExit, match=r"b\.json has"):
        own_data.join(files)
