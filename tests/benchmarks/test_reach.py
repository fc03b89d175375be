"""The benchmark of what encoders could know: its moves, its units, its record."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tampl.data import generate
from tampl.lab.recipes import read_recipe

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "tiny.toml"


@pytest.fixture(scope="module")
def reach():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield importlib.import_module("reach")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_moves_keep_neighbours_and_are_all_made(reach):
    """Of a lattice whose sites are numbered all differ; a product with its neighbour is kept."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 1, 4, 4, generator=generator, dtype=torch.float64)

    def pairs(x):
        return sum((x * torch.roll(x, 1, axis)).sum() for axis in (-2, -1))

    moved = [reach.move(x, generator) for _ in range(800)]
    for each in moved:
        torch.testing.assert_close(pairs(each), pairs(x))
    # Shifts, mirror images and transposes of a square: 16 x 2 x 2.
    assert len({tuple(each.flatten().tolist()) for each in moved}) == 64


def test_the_noise_of_an_ensemble_s_mean(reach):
    generator = np.random.default_rng(0)
    unit = SimpleNamespace(mean=np.array([1.0]), std=np.array([2.0]))
    train = SimpleNamespace(statistics=SimpleNamespace(y=unit))
    truth = SimpleNamespace(y=generator.normal(1.0, 6.0, size=(400, 50, 3, 1)))
    # A standard deviation of three units, fifty members.
    assert reach.noise(train, truth, [0, 2]) == pytest.approx([9 / 50, 9 / 50], rel=0.05)


def test_the_record_has_every_encoder(reach, tmp_path, monkeypatch, capsys):
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
