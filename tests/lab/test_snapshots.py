import numpy as np

from tampl.evaluation import Case, Curve
from tampl.lab.snapshots import take_snapshots
from tampl.systems import SIRS, Mixing

SYSTEM = SIRS(size=8, frames=11, clusters=(1,))


def make_case(index=3):
    state = SYSTEM.initial(np.random.default_rng(0))
    return Case(index, state.label, state.microstate, Curve(np.zeros((11, 3)), None), {})


def test_from_the_first_frame_to_the_last():
    case = make_case()
    found = take_snapshots(case, SYSTEM)
    np.testing.assert_array_equal(found.times, [0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(found.microstates[0], case.microstate)
    assert found.microstates.shape == (6, 8, 8)


def test_same_case_same_trajectory():
    first, again = (take_snapshots(make_case(), SYSTEM).microstates for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = take_snapshots(make_case(), SYSTEM, seed=1).microstates
    assert (first[1:] != other[1:]).any()


def test_few_frames_are_not_repeated():
    short = SIRS(size=8, frames=3, clusters=(1,))
    assert len(take_snapshots(make_case(), short).times) == 3


def test_without_a_system_there_is_the_initial_microstate():
    found = take_snapshots(make_case(), None)
    np.testing.assert_array_equal(found.times, [0])
    assert found.microstates.shape == (1, 8, 8)


def test_particles_are_simulated_from_their_stored_form():
    system = Mixing(particles=8, box=7.0, frames=5, equilibration=20)
    state = system.initial(np.random.default_rng(0))
    case = Case(0, state.label, state.microstate, Curve(np.zeros((5, 2)), None), {})
    found = take_snapshots(case, system, count=3)
    np.testing.assert_allclose(found.times, [0, 0.8, 1.6])
    np.testing.assert_array_equal(found.microstates[0], state.microstate)
    assert found.microstates.shape == (3, 16, 3)
