"""The probe: what it can explain it explains, and no more than chance leaves."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from tampl.data import DataPlan, generate
from tampl.systems import Polymer

ROOT = Path(__file__).parents[2]

sys.path.append(str(ROOT / "benchmarks"))
probe = importlib.import_module("probe")


def make_samples(count, runs, *, seed, noise):
    """The target is a function of one of three features, and noise."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 1, 3))
    known = np.sin(2 * x[:, 0, 0])
    target = known[:, None] + noise * generator.normal(size=(count, runs))
    target = target[:, 0] if runs == 1 else target
    return probe.Samples(x, x[:, 0, 1], target, np.arange(count))


def test_the_features_that_decide_reach_the_ceiling():
    train = make_samples(400, 1, seed=0, noise=0.3)
    valid = make_samples(200, 8, seed=1, noise=0.3)
    variance = np.sin(2 * np.random.default_rng(2).normal(size=10**6)).var()
    ceiling = probe.find_ceiling(valid.target)
    assert ceiling == pytest.approx(variance / (variance + 0.3**2), abs=0.03)
    all_three = probe.probe(lambda x, y: x[:, 0], train, valid)
    nothing = probe.probe(lambda x, y: y[:, None], train, valid)
    assert 0.85 * ceiling < all_three["r2"] < ceiling + 0.02
    assert abs(nothing["r2"]) < 0.05


def test_units_and_mixtures_of_features_do_not_matter():
    train, valid = (make_samples(200, k, seed=k, noise=0.1) for k in (1, 8))
    mixture = np.array([[1.0, 0.5, 0.0], [0.0, 0.1, 0.0], [0.3, 0.0, 50.0]])
    plain = probe.probe(lambda x, y: x[:, 0], train, valid)
    mixed = probe.probe(lambda x, y: x[:, 0] @ mixture, train, valid)
    assert mixed["r2"] == pytest.approx(plain["r2"], abs=1e-4)


def test_strands_are_counted_where_they_cross():
    """A hairpin has two strands at each place along x, a straight chain one."""
    straight = np.zeros((1, 24, 3))
    straight[0, :, 0] = np.arange(24)
    hairpin = straight.copy()
    hairpin[0, 12:, 0] = 11.5 - np.arange(12)
    hairpin[0, 12:, 1] = 1.0
    one, two = (probe.measure_strands(x, np.ptp(x[..., 0], axis=1)) for x in (straight, hairpin))
    assert (one[0, 1:13] == 1).all() and (two[0, 2:12] == 2).all()
    # Mirrored in x, a chain has the same modes.
    assert np.allclose(
        probe.measure_modes(hairpin, np.zeros(1)), probe.measure_modes(-hairpin, np.zeros(1))
    )


def test_a_record_of_short_chains(tmp_path):
    system = Polymer(
        beads=12, flow=0.8, interval=0.5, frames=21, height=12, width=16, regimes=False
    )
    plan = DataPlan(seed=0, train=24, valid=1, test=6, members=3)
    store = generate(system, plan, tmp_path / "store")
    record = probe.measure(store.dataset("train"), store.references("test"), {}, every=5)
    assert record["validation_states"] == 6 and record["simulations_of_each"] == 3
    assert set(record["probes"]) == {"extension", "strands", "chain"}
    assert probe.describe(record).startswith("ceiling")
