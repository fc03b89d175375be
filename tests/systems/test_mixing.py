"""Binary mixing: patterns kept, observables by another way, conservation, what is refused."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from tampl.data import DataPlan, check_store, generate, read_shard
from tampl.data.shards import write_shard
from tampl.errors import InputError
from tampl.seeding import kernel_words, numpy_generator
from tampl.systems import Mixing
from tampl.systems.kernels.pair_forces import forces
from tampl.systems.patterns import FAMILIES, GRID, draw_owner

SMALL = Mixing(particles=24, box=10.0, frames=4, equilibration=400)
KIND = SMALL.description.microstate


def words(*shape):
    flat = [kernel_words(5, i) for i in range(int(np.prod(shape)))]
    return np.array(flat).reshape(*shape, 4)


def draw(count, start=0, system=SMALL):
    generators = [numpy_generator(1, i) for i in range(start, start + count)]
    return system.initial_states("train", generators, start=start)


@pytest.fixture(scope="module")
def states():
    return draw(6)


@pytest.fixture(scope="module")
def initial(states):
    return np.stack([state.microstate for state in states])


@pytest.fixture(scope="module")
def runs(initial):
    return SMALL.simulate(initial, words(6))


def observed_by_scipy(microstate, system=SMALL):
    positions, types = system.description.microstate.decode(microstate)
    largest = clusters = 0
    for kind in (1, 2):
        own = positions[types == kind]
        if len(own):
            number, labels = connected_components(cdist(own, own) <= system.reach)
            largest, clusters = largest + np.bincount(labels).max(), clusters + number
    return [largest / (types > 0).sum(), clusters / (types > 0).sum()]


def test_defaults_are_the_papers():
    system = Mixing()
    assert system.description.microstate.shape == (512, 3) and system.description.frames == 501
    assert system.description.times[-1] == 200 and system.box == 32
    assert [o.symbol for o in system.description.observables] == ["S", "K"]
    assert len(system.patterns) == 6


@pytest.mark.parametrize("index, family", list(enumerate(FAMILIES)))
def test_every_particle_is_in_its_own_region(states, index, family):
    owner = draw_owner(family, numpy_generator(1, index))
    positions, types = KIND.decode(states[index].microstate)
    cells = np.floor(positions / SMALL.box * GRID).astype(int)
    assert states[index].label == family
    np.testing.assert_array_equal(owner[cells[:, 0], cells[:, 1]] + 1, types)
    assert np.bincount(types).tolist() == [0, 24, 24]


def test_families_have_equal_shares_by_index(states):
    assert [state.label for state in states] == list(FAMILIES)
    later = draw(3, start=5)
    assert [state.label for state in later] == ["wavy-interface", "half-plane", "centred-slab"]
    np.testing.assert_array_equal(later[0].microstate, states[5].microstate)
    chosen = Mixing(particles=4, box=6.0, equilibration=10, patterns=("central-disk",))
    assert {state.label for state in draw(2, system=chosen)} == {"central-disk"}


def test_equilibration_takes_the_order_of_the_placement_away():
    still = SMALL.model_copy(update={"equilibration": 0})
    energies = []
    for system in (still, SMALL):
        microstate = system.arrange("half-plane", numpy_generator(1, 0))
        positions, types = KIND.decode(microstate)
        kinds = (types - 1).astype(np.uint8)
        energies.append(forces(positions, kinds, SMALL._fluid.pairs, SMALL.cutoff)[0] / len(types))
    assert energies[0] < energies[1] < 1.0


def test_macrostates_are_scipys(runs):
    flat = runs.microstates.reshape(-1, *KIND.shape)
    expected = np.array([observed_by_scipy(x) for x in flat]).reshape(runs.macrostates.shape)
    np.testing.assert_array_equal(runs.macrostates, expected)
    np.testing.assert_array_equal(SMALL.observe(runs.microstates), runs.macrostates)
    assert SMALL.faults(runs.macrostates) is None


def test_observables_know_no_order_and_any_number(initial):
    x = initial[0]
    shuffled = x[np.random.default_rng(0).permutation(len(x))]
    np.testing.assert_array_equal(SMALL.observe(shuffled), SMALL.observe(x))
    padded = np.concatenate([x, np.full((5, 3), 0, np.uint16)])
    np.testing.assert_array_equal(SMALL.observe(padded), SMALL.observe(x))
    np.testing.assert_array_equal(SMALL.observe(x[:10]), observed_by_scipy(x[:10]))


def test_lines_and_loners_are_counted():
    positions = np.array([[1, 1], [3, 1], [5, 1], [5, 8], [1, 5], [9, 9]], float)
    x = KIND.encode(positions, np.array([1, 1, 1, 1, 2, 2]))
    np.testing.assert_allclose(SMALL.observe(x), [(3 + 1) / 6, (2 + 2) / 6])


def test_particles_are_kept_and_move(runs, initial):
    assert (runs.microstates[..., -1] == initial[:, None, :, -1]).all()
    np.testing.assert_array_equal(runs.microstates[:, 0], initial)
    positions, _ = KIND.decode(runs.microstates)
    steps = np.abs(np.diff(positions, axis=1))
    # At unit temperature a particle goes about 0.4 in an interval of 0.4.
    assert 0.1 < steps.mean() < 0.5 and steps.max() < 3


def test_velocities_are_the_only_randomness(initial):
    one = SMALL.ensemble(initial[:1], words(1, 3))
    np.testing.assert_array_equal(one[0], SMALL.ensemble(initial[:1], words(1, 3))[0])
    several = SMALL.simulate(np.repeat(initial[:1], 3, axis=0), words(3))
    np.testing.assert_array_equal(several.macrostates, one[0])
    assert len({x.tobytes() for x in several.microstates[:, 1]}) == 3


def test_a_store_of_several_runs_is_content(tmp_path):
    system = Mixing(particles=8, box=6.0, frames=3, equilibration=50)
    plan = DataPlan(train=6, valid=3, test=2, members=3, train_runs=2, valid_runs=2)
    store = generate(system, plan, tmp_path / "store", workers=2, progress=False)
    report = check_store(store.path, system, progress=False)
    assert report.ok and report.notes == () and report.trajectories == 18
    labels = store.dataset("train").labels
    assert labels.tolist() == [family for family in FAMILIES for _ in range(2)]


def test_check_finds_what_a_store_of_particles_must_not_hold(tmp_path):
    system = Mixing(particles=8, box=6.0, frames=3, equilibration=50)
    plan = DataPlan(train=2, valid=1, test=2, members=2)
    store = generate(system, plan, tmp_path / "store", progress=False)
    shard = store.manifest.shards[0]
    arrays = read_shard(store.path / shard.file, manifest=store.manifest, shard=shard)

    def problems(name, value):
        wrong = {**arrays, name: arrays[name].copy()}
        wrong[name][0, 1, ..., -1] = value
        write_shard(store.path / shard.file, wrong, manifest=store.manifest, shard=shard)
        return " ".join(check_store(store.path, system, progress=False).problems)

    assert "particle of type 3" in problems("microstates", 3)
    assert "without particles" in problems("microstates", 0)
    assert "NaN" in problems("macrostates", np.nan)
    assert "differ from the observed" in problems("macrostates", 0.9)


# Wrong input


@pytest.mark.parametrize(
    ("wrong", "words_of_it"),
    [
        ({"particles": 10_000}, "`particles` is 10000.*density of.*at most 0.8 fit"),
        ({"box": 4.0}, "density"),
        ({"interval": 0.4015}, "`interval` is 0.4015 and `dt` is 0.002"),
        ({"dt": 1.0}, "`interval` is 0.4 and `dt` is 1.0"),
        ({"patterns": ("spiral",)}, "`patterns` is 'spiral'; choose from half-plane"),
        ({"patterns": ()}, "`patterns` is empty"),
        ({"sigma": (1.0, 1.0)}, "sigma"),
        ({"temperature": 0.0}, "temperature"),
        ({"friction": float("nan")}, "friction"),
    ],
)
def test_impossible_parameters_are_refused(wrong, words_of_it):
    with pytest.raises(ValueError, match=words_of_it):
        Mixing(**wrong)


def test_the_densest_box_can_be_arranged():
    with pytest.raises(ValueError, match="density"):
        Mixing(particles=29, box=8.0)
    dense = Mixing(particles=28, box=8.0, equilibration=50, frames=2)
    for state in draw(6, system=dense):
        dense.simulate(state.microstate[None], words(1))


def test_a_step_that_is_too_long_is_reported(initial):
    fast = SMALL.model_copy(update={"dt": 0.05})
    with pytest.raises(
        InputError, match=r"run 0 blew up at step \d+: its energy went from .* to .*`dt`"
    ):
        fast.simulate(initial, words(6))


def test_a_blow_up_names_its_run(initial):
    # Runs 0 and 1 start from a lattice; run 2 has a pair too close for this step.
    fast = SMALL.model_copy(update={"dt": 0.008, "interval": 0.4})
    positions, types = KIND.decode(initial[:3])
    spread = np.stack(np.meshgrid(*2 * [np.linspace(0.6, 9.4, 7)]), -1).reshape(-1, 2)[:48]
    positions[:2] = spread
    close = KIND.encode(positions, types)
    close[2, 1, :2] = close[2, 0, :2] + [int(0.52 / 10 * 2**16), 0]
    with pytest.raises(InputError, match="run 2 blew up"):
        fast.simulate(close, words(3))


def test_overlapping_particles_are_refused(initial):
    x = initial[:2].copy()
    x[1, 3, :2] = x[1, 4, :2] + 1
    with pytest.raises(InputError, match=r"particles 3 and 4 of configuration 1 at"):
        SMALL.simulate(x, words(2))


@pytest.mark.parametrize("method", ["simulate", "ensemble"])
def test_other_shapes_and_absent_particles_are_refused(initial, method):
    seeds = {"simulate": words(1), "ensemble": words(1, 2)}[method]
    absent = initial[:1].copy()
    absent[0, 0, -1] = 0
    for x in (initial[0], initial[:1, :-1], absent, initial[None, :1]):
        with pytest.raises(InputError, match="starts from 48 particles, none absent"):
            getattr(SMALL, method)(x, seeds)
    with pytest.raises(InputError, match="`words`"):
        getattr(SMALL, method)(initial[:1], seeds[..., :3])


@pytest.mark.parametrize(
    ("macrostate", "fault"),
    [
        ([np.nan, 0.5], "not finite"),
        ([1.1, 0.1], "outside of"),
        ([0.5, 0.01], "outside of"),
        ([0.9, 0.5], r"S \+ K is 1.4"),
    ],
)
def test_faults_of_macrostates(macrostate, fault):
    assert re.search(fault, SMALL.faults(np.array([[0.5, 0.1], macrostate])))


# Devices


def test_devices_share_the_physics_and_not_the_kernel():
    assert SMALL.on("cpu") == SMALL and SMALL.kernel == "mixing-numba-1" and SMALL.batch == 1
    with pytest.raises(InputError, match="`device` is 'tpu'; mixing has kernels for cpu and cuda"):
        SMALL.on("tpu")


GPU = """
import numpy as np
from tampl.seeding import kernel_words
from tampl.systems import Mixing

here = Mixing(particles=3, box=8.0, dt=0.01, interval=0.03, frames=3, equilibration=20)
there = here.on("cuda")
assert there.description == here.description and there.kernel == "mixing-cuda-1"
assert there.batch > 100
x = np.stack([here.arrange("half-plane", np.random.default_rng(i)) for i in range(2)])
words = np.stack([kernel_words(0, i) for i in range(2)])
one, other = here.simulate(x, words), there.simulate(x, words)
apart = np.abs(one.microstates.astype(int) - other.microstates.astype(int))
assert apart.max() <= 1 and (apart[:, 0] == 0).all(), apart.max()
np.testing.assert_array_equal(there.observe(other.microstates), other.macrostates)
"""


def test_the_gpu_follows_the_same_trajectories():
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-c", GPU], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
