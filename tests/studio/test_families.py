"""Families: what their sliders say is what is drawn, and a seed is a draw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tampl.errors import InputError
from tampl.studio.families import find_families
from tampl.system import System
from tampl.systems import SIRS, Mixing, Polymer

EPIDEMIC = SIRS(size=12, frames=3)


@given(st.integers(1, 36), st.floats(0.01, 0.9), st.floats(0, 0.9), st.integers(0, 2**31 - 1))
def test_an_epidemic_has_the_fractions_of_its_sliders(clusters, infected, recovered, seed):
    family = find_families(EPIDEMIC)["clusters"]
    values = {"clusters": clusters, "infected": infected, "recovered": recovered}
    state = family.draw(values, seed)
    sites = state.size
    assert np.count_nonzero(state == 1) == max(1, round(infected * sites))
    left = sites - max(1, round(infected * sites))
    assert np.count_nonzero(state == 2) == min(round(recovered * sites), left)
    assert np.array_equal(state, family.draw(values, seed))
    EPIDEMIC.description.microstate.check(state, "state")


def test_a_mixture_keeps_its_places_when_it_is_scrambled_or_made_uneven():
    system = Mixing(particles=16, box=8.0, frames=3, equilibration=50)
    family = find_families(system)["half-plane"]
    plain, mixed = family.draw({}, 3), family.draw({"scrambled": 1.0}, 3)
    assert np.array_equal(plain[:, :2], mixed[:, :2])
    assert np.array_equal(np.sort(plain[:, 2]), np.sort(mixed[:, 2]))
    assert not np.array_equal(plain[:, 2], mixed[:, 2])
    uneven = family.draw({"share": 0.25}, 3)
    assert np.count_nonzero(uneven[:, 2] == 1) == 8
    assert np.array_equal(plain, family.draw({}, 3))  # what is kept was not changed
    assert len(find_families(system)) == len(system.patterns)


def test_the_polymer_has_coils_and_its_fixed_chains():
    short = Polymer(beads=12, flow=0.5, interval=0.1, frames=3, width=16, regimes=False)
    assert list(find_families(short)) == ["coil"]
    families = find_families(Polymer(frames=2))
    assert [name.split()[0] for name in families] == ["coil", "fast", "medium", "slow"]
    assert families["slow to unfold"].draw({}, 1).shape == (300, 3)
    assert not families["slow to unfold"].random


def test_any_other_system_draws_its_own_initial_states():
    class Other(SIRS):
        @property
        def description(self):
            return super().description.model_copy(update={"system": "other"})

    (family,) = find_families(Other(size=8)).values()
    assert family.draw({}, 1).shape == (8, 8)
    assert find_families(None) == {}
    assert issubclass(Other, System)


def test_values_that_no_slider_has_are_refused():
    family = find_families(EPIDEMIC)["clusters"]
    with pytest.raises(InputError, match="`clusters` is 99; it must be from 1 to 36"):
        family.draw({"clusters": 99}, 0)
    with pytest.raises(InputError, match="`immune` is no slider"):
        family.draw({"immune": 0.5}, 0)
    with pytest.raises(InputError, match="it must be from"):
        family.draw({"infected": float("nan")}, 0)
