"""Observables of lattices: by hand, by slow loops, and by what a symmetry leaves as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tampl import InputError, Lattice
from tampl.observables import find_observable

BY_HAND = np.array([[0, 1, 1], [0, 2, 1], [2, 2, 0]])


def observe(text, sites, states=None):
    kind = Lattice(height=sites.shape[-2], width=sites.shape[-1], states=states or 2)
    return find_observable(text).observe(sites.reshape(-1, *sites.shape[-2:]), kind)


def lattices(states):
    """Random frames of a small lattice."""
    return st.tuples(
        st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1)
    ).map(lambda t: np.random.default_rng(t[2]).integers(states, size=(2, *t[:2])))  # fmt: skip


def bonds(sites, periodic):
    """Pairs of neighbours, each once, one after another."""
    height, width = sites.shape
    found = set()
    for i in range(height):
        for j in range(width):
            for a, b in ((i + 1, j), (i, j + 1)):
                if periodic:
                    a, b = a % height, b % width
                if a < height and b < width and (a, b) != (i, j):
                    found.add(frozenset([(i, j), (a, b)]))
    return [tuple(pair) for pair in found]


def test_fractions_by_hand():
    assert observe("fractions", BY_HAND, 3).tolist() == [[3 / 9, 3 / 9, 3 / 9]]
    assert observe("fraction:state=2", BY_HAND[:2], 3).tolist() == [[1 / 6]]
    assert observe("fraction", BY_HAND[:2], 3).tolist() == [[3 / 6]]


@given(lattices(2))
def test_the_magnetisation_is_the_mean_spin_and_its_size_the_order(sites):
    spins = np.where(sites == 1, 1.0, -1.0)
    found = observe("magnetisation", sites)
    np.testing.assert_allclose(found[:, 0], spins.mean(axis=(1, 2)))
    np.testing.assert_allclose(observe("potts-order", sites), np.abs(found))


def test_the_potts_order_is_none_where_states_are_equally_frequent_and_one_in_a_pure_state():
    assert observe("potts-order", BY_HAND, 3).tolist() == [[0.0]]
    assert observe("potts-order", np.full((4, 5), 2), 3).tolist() == [[1.0]]


@pytest.mark.parametrize("periodic", [True, False])
@given(sites=lattices(3))
def test_energies_are_sums_over_bonds(sites, periodic):
    said = f"periodic={'yes' if periodic else 'no'}"
    potts = observe(f"potts-energy:coupling=0.5,{said}", sites, 3)
    ising = observe(f"ising-energy:coupling=0.5,field=0.25,{said}", sites % 2)
    for frame, e_potts, e_ising in zip(sites, potts[:, 0], ising[:, 0], strict=True):
        pairs, spins = bonds(frame, periodic), 2 * (frame % 2) - 1
        same = sum(frame[a] == frame[b] for a, b in pairs)
        product = sum(spins[a] * spins[b] for a, b in pairs)
        assert e_potts == pytest.approx(-0.5 * same / frame.size)
        assert e_ising == pytest.approx((-0.5 * product - 0.25 * spins.sum()) / frame.size)


def test_ground_states_have_the_known_energies():
    board = np.indices((4, 6)).sum(axis=0) % 2
    assert observe("ising-energy", board).tolist() == [[2.0]]
    assert observe("ising-energy", np.ones((4, 6), int)).tolist() == [[-2.0]]
    assert observe("potts-energy", np.ones((4, 6), int)).tolist() == [[-2.0]]
    assert observe("potts-energy", board).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("magnetisation", "needs a lattice of two states, and this one has 3"),
        ("ising-energy", "needs a lattice of two states"),
        ("fraction:state=3", "`state` is 3; states of the lattice are 0 to 2"),
        ("largest-cluster:state=7", "`state` is 7"),
        ("structure-factor-peak:state=7", "`state` is 7"),
    ],
)
def test_states_that_are_not_there_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        observe(text, BY_HAND, 3)
