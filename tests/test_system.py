"""What every system has by default: ensembles, finite macrostates, own initial states."""

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.seeding import kernel_words
from tampl.system import System
from tampl.systems import SIRS, check_system


class Bare(SIRS):
    """SIRS with the defaults in place of its own methods."""

    ensemble = System.ensemble
    faults = System.faults


SYSTEM = SIRS(size=8, frames=4, coverage=0.2, clusters=(1, 2))


def test_the_defaults_meet_the_contract_and_agree_with_a_system_of_its_own():
    bare = Bare(**SYSTEM.model_dump())
    check_system(bare)
    x = np.stack([SYSTEM.initial(np.random.default_rng(n)).microstate for n in range(3)])
    words = np.stack([[kernel_words(0, n, k) for k in range(2)] for n in range(3)])
    np.testing.assert_array_equal(bare.ensemble(x, words), SYSTEM.ensemble(x, words))


def test_own_initial_states_are_simulated_by_one_call():
    x0 = np.zeros((2, 8, 8), np.uint8)
    x0[0, :2], x0[1, 3, 3] = 1, 1
    found = SYSTEM.simulate_from(x0, members=3, seed=1)
    assert found.microstates.shape == (6, 4, 8, 8) and found.macrostates.shape == (6, 4, 3)
    np.testing.assert_array_equal(found.microstates[3:, 0], np.repeat(x0[1:], 3, axis=0))
    again = SYSTEM.simulate_from(x0[0], members=3, seed=1)
    np.testing.assert_array_equal(again.microstates, found.microstates[:3])
    assert not np.array_equal(found.microstates[0], found.microstates[1])
    with pytest.raises(InputError, match="`x0` has shape"):
        SYSTEM.simulate_from(np.zeros((7, 7)))
    with pytest.raises(InputError, match="`members` is 0"):
        SYSTEM.simulate_from(x0, members=0)
