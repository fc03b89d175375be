"""The exponents of the scaling benchmark are those of the times it was given."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
scaling = importlib.import_module("scaling")


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_a_power_law_has_its_exponent(power):
    seconds = {str(side): 3e-3 * (side**2) ** power for side in (32, 64, 128)}
    curve = scaling.describe(seconds, lambda side: side**2)
    assert curve["exponent"] == pytest.approx(power, abs=1e-12)
    assert curve["between_neighbours"] == pytest.approx([power, power], abs=1e-12)


def test_a_call_is_timed_at_its_least(monkeypatch):
    clock = iter([0.0, 0.0, 1.0, 1.0, 10.0, 10.0, 10.5, 10.5])
    monkeypatch.setattr(scaling.time, "perf_counter", lambda: next(clock))
    assert scaling.least({5: lambda: None}, rounds=2) == {"5": 0.5}
