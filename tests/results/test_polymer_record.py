"""The kept references of the polymer: what they say of the facts, computed again."""

import json
from pathlib import Path

import numpy as np
import pytest

from tampl.systems import Polymer
from tampl.systems.extension import unfolding_time
from tampl.systems.kernels.rods import MOST_REFUSED
from tampl.systems.regimes import NAMES

RESULTS = Path(__file__).parents[2] / "results"
MODES = {"fast": 2100, "medium": 3600, "slow": 5000}


@pytest.fixture(scope="module")
def record():
    return json.loads((RESULTS / "polymer_calibration.json").read_text())


@pytest.fixture(scope="module")
def extensions():
    kept = np.load(RESULTS / "polymer_references.npz")
    assert tuple(kept["regimes"]) == NAMES
    return dict(zip(NAMES, kept["extension_hundredths"] / 100, strict=True))


def beyond(x):
    """The last 2,000 time units of chains that have been beyond 240."""
    return x[(x[:, :-200] > 240).any(axis=1), -200:]


def mode(times):
    counts, edges = np.histogram(times, np.arange(0, 10_401, 200))
    return edges[counts.argmax()] + 100


def test_references_are_the_test_split(extensions):
    system = Polymer()
    for x in extensions.values():
        assert x.shape == (500, system.frames)
        assert np.ptp(x[:, 0]) == 0 and len(np.unique(x[:, -1])) > 100


def test_stretched_chains_are_as_long_as_the_published(extensions):
    for x in extensions.values():
        assert 246 <= beyond(x).mean() <= 248
        assert 2.5 <= beyond(x).std() <= 4


def test_regimes_unfold_in_their_order_and_time(extensions, record):
    modes = {}
    for name, x in extensions.items():
        times = unfolding_time(x, beyond(x).mean(), interval=10.0)
        modes[name] = mode(times)
        assert abs(modes[name] / MODES[name] - 1) <= 0.25
        expected = {
            "mode": modes[name],
            "shortest": times.min(),
            "longest": min(times.max(), 10_000),
            "initial_extension": x[0, 0],
            "stretched_mean": beyond(x).mean(),
            "stretched_std": beyond(x).std(),
        }
        found = {key: record["references"][name][key] for key in expected}
        assert found == pytest.approx(expected, abs=0.01)
    assert modes["fast"] < modes["medium"] < modes["slow"]


def test_the_chosen_flow_and_step_are_those_of_the_facts(record):
    flow = record["flow"]["stretched"]
    means = [flow[strength]["mean"] for strength in ("0.0012", "0.00124", "0.00128")]
    assert means == sorted(means) and 246 <= means[1] <= 248
    for part in flow.values():
        assert part["failed_chains"] == 0
        assert part["refused_steps"] <= MOST_REFUSED * part["chain_steps"]
    fine, chosen = record["step"]["steps"]["0.0005"], record["step"]["steps"]["0.001"]
    assert abs(fine["stretched_mean"] - chosen["stretched_mean"]) < 0.5
    assert chosen["failed_chains"] == 0
