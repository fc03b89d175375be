"""The benchmark of what encoders could know: its units and its record."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tampl.data import generate
from tampl.lab.recipes import read_recipe

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "tiny.toml"


sys.path.append(str(ROOT / "benchmarks"))
reach = importlib.import_module("reach")


def test_the_noise_of_an_ensemble_s_mean():
    generator = np.random.default_rng(0)
    unit = SimpleNamespace(mean=np.array([1.0]), std=np.array([2.0]))
    train = SimpleNamespace(statistics=SimpleNamespace(y=unit))
    truth = SimpleNamespace(y=generator.normal(1.0, 6.0, size=(400, 50, 3, 1)))
    # A standard deviation of three units, fifty members.
    assert reach.describe_noise(train, truth, [0, 2]) == pytest.approx([9 / 50, 9 / 50], rel=0.05)


def test_the_record_has_every_encoder(tmp_path, monkeypatch, capsys):
    system, plan = read_recipe(TINY).find_plan()
    generate(system, plan, tmp_path / "data")
    options = ["--data", str(tmp_path / "data"), "--truth", str(tmp_path / "data"), "--json"]
    shape = ["--widths", "4", "4,4", "--ahead", "1", "2", "--first", "1", "--epochs", "2"]
    monkeypatch.setattr(
        sys, "argv", ["reach.py", str(TINY), *options, *shape, "--batch-size", "4"]
    )
    reach.main()
    found = json.loads(capsys.readouterr().out)
    assert [each["sites_across"] for each in found["encoders"]] == [3, 7]
    assert all(len(each["squared_errors"]) == 2 for each in found["encoders"])
    assert found["ahead"] == [1, 2] and found["provenance"]["commit"]
