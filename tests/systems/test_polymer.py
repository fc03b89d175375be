"""Polymer extension: coils at equilibrium, rods that are kept, regimes, what is refused."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tampl.data import DataPlan, check_store, generate
from tampl.errors import InputError
from tampl.seeding import kernel_words, numpy_generator
from tampl.systems import Polymer, regimes
from tampl.systems.kernels.coils import sample_coils

SMALL = Polymer(
    beads=12, flow=0.4, dt=1e-3, interval=0.5, frames=4, height=16, width=16, regimes=False
)


def words(*shape):
    flat = [kernel_words(5, i) for i in range(int(np.prod(shape)))]
    return np.array(flat).reshape(*shape, 4)


def draw(count, split="train", start=0, system=SMALL):
    generators = [numpy_generator(1, i) for i in range(start, start + count)]
    return system.initial_states(split, generators, start=start)


@pytest.fixture(scope="module")
def initial():
    return np.stack([state.microstate for state in draw(6)])


@pytest.fixture(scope="module")
def runs(initial):
    return SMALL.simulate(initial, words(6))


def rod_lengths(x):
    return np.linalg.norm(np.diff(x.astype(float), axis=-2), axis=-1)


def test_defaults_are_the_papers():
    description = Polymer().description
    assert description.microstate.shape == (300, 3) and description.frames == 1001
    assert (description.microstate.height, description.microstate.width) == (100, 500)
    assert description.times[-1] == 10_000
    assert [o.name for o in description.observables] == ["extension"]


def test_coils_are_centred_chains_of_touching_beads_that_do_not_overlap(initial):
    assert initial.dtype == np.float32 and initial.shape == (6, 12, 3)
    assert np.abs(initial.mean(axis=1)).max() < 1e-6
    assert np.abs(rod_lengths(initial) - 1).max() < 1e-5
    distances = np.linalg.norm(initial[:, :, None] - initial[:, None], axis=-1)
    assert distances[:, ~np.eye(12, dtype=bool)].min() > 1 - 1e-5
    assert {state.label for state in draw(2)} == {"coil"}


def test_coils_are_those_of_the_sampler():
    word = numpy_generator(1, 0).integers(0, 2**64, (1, 4), dtype=np.uint64)
    rods = sample_coils(word, 12)[0]
    np.testing.assert_allclose(np.diff(draw(1)[0].microstate, axis=0), rods, atol=1e-6)


def test_rods_are_kept_and_the_centre_stays(runs, initial):
    np.testing.assert_array_equal(runs.microstates[:, 0], initial)
    assert np.abs(rod_lengths(runs.microstates) - 1).max() < 1e-5
    assert np.abs(runs.microstates.mean(axis=2)).max() < 1e-5


def test_the_extension_is_the_range_along_the_flow(runs):
    expected = np.ptp(runs.microstates[..., 0].astype(float), axis=-1)
    np.testing.assert_array_equal(runs.macrostates[..., 0], expected)
    np.testing.assert_array_equal(SMALL.observe(runs.microstates), runs.macrostates)
    assert SMALL.faults(runs.macrostates) is None
    upside_down = runs.microstates * np.float32([1, -1, -1])
    np.testing.assert_array_equal(SMALL.observe(upside_down), runs.macrostates)


def test_a_strong_flow_stretches_and_none_does_not(initial):
    strong = SMALL.model_copy(update={"flow": 2.0, "interval": 1.0})
    still = SMALL.model_copy(update={"flow": 0.0, "interval": 1.0})
    stretched = strong.simulate(initial, words(6)).macrostates[:, -1]
    assert (stretched > 9.5).all() and (stretched <= 11).all()
    assert still.simulate(initial, words(6)).macrostates[:, -1].mean() < 7


def test_an_ensemble_is_made_of_the_same_runs(initial):
    one = SMALL.ensemble(initial[:2], words(2, 3))
    assert one.shape == (2, 3, 4, 1)
    again = SMALL.simulate(np.repeat(initial[:2], 3, axis=0), words(6))
    np.testing.assert_array_equal(again.macrostates.reshape(one.shape), one)
    assert len(np.unique(one[0, :, -1])) == 3


def test_a_store_is_content(tmp_path):
    plan = DataPlan(train=3, valid=2, test=2, members=3)
    store = generate(SMALL, plan, tmp_path / "store", workers=2, progress=False)
    report = check_store(store.path, SMALL, progress=False)
    assert report.ok and report.notes == () and report.trajectories == 5


# The three regimes


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A file of three configurations in place of the shipped one."""
    path = tmp_path / "regimes.npy"
    coils = [state.microstate for state in draw(3, system=Polymer(regimes=False))]
    chains = dict(zip(regimes.NAMES, coils, strict=True))
    regimes.save_regimes(chains, path)
    monkeypatch.setattr(regimes.load_regimes, "__defaults__", (path,))
    return chains


def test_the_test_split_has_the_regimes_in_order(shipped):
    states = draw(3, "test", system=Polymer())
    assert [state.label for state in states] == ["fast", "medium", "slow"]
    for state in states:
        np.testing.assert_array_equal(state.microstate, shipped[state.label])
    [last] = draw(1, "test", start=2, system=Polymer())
    assert last.label == "slow"
    Polymer()._check_stack(np.stack([state.microstate for state in states]))


def test_other_splits_and_other_polymers_have_coils(shipped):
    assert {state.label for state in draw(2, "valid", system=Polymer())} == {"coil"}
    assert {state.label for state in draw(4, "test")} == {"coil"}


def test_there_are_three_regimes(shipped):
    with pytest.raises(InputError, match=r"`data.test` is 4 or more; the fixed .* are 3, fast"):
        draw(4, "test", system=Polymer())


@pytest.mark.parametrize("split", ["train", "test"])
def test_missing_regimes_are_refused_before_a_coil_is_drawn(split, tmp_path, monkeypatch):
    monkeypatch.setattr(regimes.load_regimes, "__defaults__", (tmp_path / "regimes.npy",))
    monkeypatch.setattr("tampl.systems.polymer.sample_coils", lambda *_: pytest.fail("drawn"))
    with pytest.raises(InputError, match=r"is missing.*system.regimes = false"):
        draw(2, split, system=Polymer())


def test_missing_and_damaged_regimes(tmp_path):
    path = tmp_path / "regimes.npy"
    with pytest.raises(InputError, match=r"is missing.*polymer_calibration.py regimes.*or "):
        regimes.load_regimes(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="is damaged"):
        regimes.load_regimes(path)
    np.save(path, np.zeros((3, 12, 3)))
    with pytest.raises(InputError, match=r"is damaged \(an array of shape \(3, 12, 3\)\)"):
        regimes.load_regimes(path)


def test_shipped_regimes_are_chains_of_the_stated_extensions():
    chains = np.stack(list(regimes.load_regimes().values()))
    extensions = Polymer().observe(Polymer()._check_stack(chains))[:, 0]
    np.testing.assert_allclose(extensions, [56, 18, 74], atol=2)


# Wrong input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"interval": 0.4005}, "`interval` is 0.4005 and `dt` is 0.001"),
        ({"dt": 1.0}, "`interval` is 0.5 and `dt` is 1.0"),
        ({"width": 11}, "`width` is 11; a stretched chain of 12 beads needs as many"),
        ({"regimes": True}, "`regimes` is true and `beads` is 12"),
        ({"beads": 2}, "beads"),
        ({"flow": -1.0}, "flow"),
        ({"frames": 1}, "frames"),
    ],
)
def test_impossible_parameters_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Polymer(**{**SMALL.model_dump(), **wrong})


def test_chains_that_are_none_are_refused(initial):
    with pytest.raises(InputError, match=r"stack chains along one axis, \(n, 12, 3\)"):
        SMALL.simulate(initial[0], words(1))
    with pytest.raises(InputError, match="has shape"):
        SMALL.simulate(initial[:, :-1], words(6))
    with pytest.raises(InputError, match=r"a rod whose length is off by 0\.1"):
        SMALL.simulate(1.1 * initial, words(6))
    with pytest.raises(InputError, match="`words`"):
        SMALL.ensemble(initial, words(6))


def test_a_step_that_is_too_long_is_reported(initial):
    coarse = SMALL.model_copy(update={"dt": 0.05})
    with pytest.raises(InputError, match=r"trajectories from \d+ on: `dt` is 0.05.*smaller `dt`"):
        coarse.simulate(initial, words(6))


@pytest.mark.parametrize(
    ("extension", "fault"),
    [(np.nan, "not finite"), (-1.0, "outside of"), (11.5, r"outside of \[0, 11\]")],
)
def test_faults_of_macrostates(extension, fault):
    assert re.search(fault, SMALL.faults(np.array([[5.0], [extension]])))


# Devices


def test_devices_share_the_physics_and_not_the_kernel():
    assert SMALL.on("cpu") == SMALL and SMALL.kernel == "polymer-numba-1" and SMALL.batch == 1
    with pytest.raises(InputError, match="`device` is 'tpu'; polymer has kernels for cpu and"):
        SMALL.on("tpu")


GPU = """
import numpy as np
from tampl.errors import InputError
from tampl.seeding import kernel_words
from tampl.systems import Polymer

here = Polymer(beads=3, flow=0.4, dt=1e-3, interval=0.002, frames=2, width=8, regimes=False)
there = here.on("cuda")
assert there.description == here.description and there.kernel == "polymer-cuda-1"
assert there.batch > 100
x = here.initial(np.random.default_rng(0)).microstate[None]
words = kernel_words(0)[None]
one, other = here.simulate(x, words), there.simulate(x, words)
np.testing.assert_array_equal(other.microstates[:, 0], x)
lengths = np.linalg.norm(np.diff(other.microstates, axis=2), axis=-1)
assert np.abs(lengths - 1).max() < 1e-5
# The noise is another one; two steps of it move a bead by some 0.1.
assert 0 < np.abs(one.microstates - other.microstates).max() < 0.4
np.testing.assert_array_equal(there.observe(other.microstates), other.macrostates)
try:
    there.model_copy(update={"dt": 10.0, "interval": 10.0}).simulate(x, words)
except InputError as error:
    assert "`dt` is 10.0" in str(error), error
else:
    raise AssertionError("a step that is too long was not reported")
"""


def test_the_gpu_follows_the_same_physics():
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-c", GPU], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
