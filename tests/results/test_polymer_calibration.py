"""The calibration: what it says of known times, and every part on chains of eight beads."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tampl.systems import Polymer

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(RESULTS))
    try:
        path = RESULTS / "polymer_calibration.py"
        spec = importlib.util.spec_from_file_location("polymer_calibration", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(RESULTS))


@pytest.fixture(scope="module")
def unfolding(script):
    return sys.modules["polymer_unfolding"]


def test_the_mode_is_the_fullest_bin(unfolding):
    times = np.array([2050.0] * 5 + [2150.0] * 4 + [3700.0] * 7 + [10_000.0] * 3)
    assert unfolding.mode_of(times) == 2100
    assert unfolding.mode_of(times[5:]) == 3700
    spread = np.array([2100.0] * 3 + [3500.0, 3700.0, 3900.0, 4100.0])
    assert unfolding.mode_of(spread) == 2100
    assert unfolding.mode_of(spread, smooth=5) in (3700, 3900)


def test_a_distribution_like_the_facts_fits_best(unfolding):
    rng = np.random.default_rng(0)
    for name, regime in unfolding.FACTS.items():
        times = rng.triangular(regime.shortest, regime.mode, regime.longest, 400)
        fits = {key: unfolding.misfit(times, other) for key, other in unfolding.FACTS.items()}
        assert min(fits, key=fits.get) == name and fits[name] < 0.3
    assert np.isfinite(unfolding.misfit(np.full(8, np.inf), regime))


def test_snapshots_have_the_extension_and_the_time_that_is_left(unfolding):
    regime = unfolding.Regime(50.0, 100, 300, 500)
    x = np.full((3, 101), 10.0)
    x[:, 80:] = 100.0  # unfolded at t = 800
    x[0, [20, 49, 75]] = 50.2  # 310 are left at frame 49
    x[1, [10]] = 49.9  # 700 are left
    found = unfolding.find_snapshots(x, regime, full=100.0, interval=10.0, count=5)
    assert found == [(0, 49), (1, 10)]


def test_a_summary_of_runs(unfolding):
    x = np.full((4, 11), 5.0)
    x[:, 6:], x[0, 3:] = 100.0, 100.0
    found = unfolding.summary(x, 100.0, interval=10.0)
    assert (found["shortest"], found["longest"], found["runs"]) == (30, 60, 4)
    assert found["time_of_largest_variance"] == 30 and found["largest_mean"] == 100


def test_stretched_chains_are_those_that_were_beyond_before(unfolding):
    x = np.full((3, 10), 100.0)
    x[0, 2:] = [250, 230, 250, 250, 246, 248, 246, 248]
    x[1, 7:] = 250.0
    assert unfolding.stretched(x, 300, last=4) == (247, 1)
    with pytest.raises(SystemExit, match="no chain is stretched"):
        unfolding.stretched(x[1:], 300, last=4)


def test_every_part_runs_and_adds_to_the_record(script, unfolding, tmp_path, monkeypatch):
    # Chains of eight beads in a strong flow; facts that they can meet.
    settings = {"beads": 8, "flow": 1.5, "interval": 0.05, "frames": 231, "regimes": False}
    monkeypatch.setattr(script, "Polymer", lambda: Polymer(**settings))
    monkeypatch.setattr(unfolding, "STRETCHED", 0.1)
    monkeypatch.setattr(script, "FLOWS", (1.0, 1.5))
    monkeypatch.setattr(script, "STEPS", (2e-3,))
    monkeypatch.setattr(script, "STEPS_INTERVAL", 0.1)
    facts = {name: unfolding.Regime(4.5, 0.1, 1.0, 5.0) for name in unfolding.FACTS}
    monkeypatch.setattr(script, "FACTS", facts)
    record, regimes = tmp_path / "record.json", tmp_path / "regimes.npy"
    load = lambda path: dict(zip(facts, np.load(path), strict=True))
    monkeypatch.setattr(script, "load_regimes", load)
    options = {
        "--record": record,
        "--regimes": regimes,
        "--references": tmp_path / "references.npz",
        "--device": "cpu",
        "--chains": 24,
        "--units": 6,
        "--members": 3,
    }
    for part in script.PARTS:
        argv = [
            "polymer_calibration.py",
            part,
            *(str(v) for pair in options.items() for v in pair),
        ]
        monkeypatch.setattr(sys, "argv", argv)
        script.main()
    found = json.loads(record.read_text())
    assert found.keys() == {*script.PARTS, "provenance"}
    assert found["flow"]["stretched"]["1.5"]["failed_chains"] == 0
    assert found["flow"]["stretched"]["1.5"]["refused_steps"] == 0
    assert found["flow"]["stretched"]["1.0"]["mean"] < found["flow"]["stretched"]["1.5"]["mean"]
    assert np.load(regimes).shape == (3, 8, 3)
    assert found["regimes"]["chosen"]["fast"]["initial_extension"] == pytest.approx(4.5, abs=1)
    with np.load(tmp_path / "references.npz") as kept:
        assert kept["extension_hundredths"].shape == (3, 3, 231)
