import numpy as np

from tampl.evaluate import Case, Curve
from tampl.evaluate.snapshots import take_snapshots
from tampl.systems import SIRS

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
