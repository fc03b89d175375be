"""Simulations in pieces: whole trajectories, in order, with the right law."""

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.studio import live
from tampl.studio.live import simulate_live
from tampl.systems import SIRS, Mixing, Polymer


def collect(system, state, **settings):
    """Macrostates (N, F, m) and the microstates that were watched, put together."""
    members, watched = {}, {}
    for piece in simulate_live(system, state, **settings):
        for k, path in enumerate(piece.macrostates):
            for t, y in enumerate(path, piece.first):
                assert t not in members.setdefault(piece.member + k, {})
                members[piece.member + k][t] = y
        if piece.microstates is not None:
            assert piece.member == 0
            watched |= dict(enumerate(piece.microstates, piece.first))
    frames = range(system.description.frames)
    y = np.array([[members[n][t] for t in frames] for n in sorted(members)])
    return y, np.array([watched[t] for t in frames])


@pytest.mark.parametrize("piece_s", [0.0, 10.0])
def test_every_frame_of_every_member_comes_once(piece_s, monkeypatch):
    monkeypatch.setattr(live, "_PIECE_S", piece_s)
    system = SIRS(size=8, frames=12, coverage=0.2)
    state = system.pattern(2, np.random.default_rng(0))
    y, x = collect(system, state, members=9, seed=3)
    assert y.shape == (9, 12, 3)
    assert np.array_equal(y[0], system.observe(x))
    assert np.array_equal(x[0], state)
    assert np.allclose(y.sum(axis=-1), 1)
    assert len(np.unique(y[:, -1], axis=0)) > 1


@pytest.mark.parametrize("piece_s", [0.0, 10.0])
def test_a_chain_in_pieces_decays_as_the_whole_one_does(piece_s, monkeypatch):
    # Without infection and loss of immunity, each infected site recovers at rate gamma.
    monkeypatch.setattr(live, "_PIECE_S", piece_s)
    system = SIRS(size=64, frames=9, beta=0.0, mu=0.0, gamma=0.7, interval=0.5)
    state = np.ones((64, 64), np.uint8)
    y, _ = collect(system, state, members=4, seed=1)
    expected = np.exp(-0.7 * system.description.times)
    error = np.sqrt(expected * (1 - expected) / (4 * 64 * 64))
    assert (np.abs(y[..., 1].mean(axis=0) - expected) <= 4 * error + 1e-12).all()


def test_a_chain_of_beads_goes_on_from_where_it_was(monkeypatch):
    monkeypatch.setattr(live, "_PIECE_S", 0.0)
    system = Polymer(beads=10, flow=0.5, interval=0.05, frames=6, width=16, regimes=False)
    state = system.initial(np.random.default_rng(0)).microstate
    y, x = collect(system, state, members=2, seed=0)
    assert np.array_equal(y[0], system.observe(x))
    # No bead moves farther in one interval than diffusion and flow let it.
    assert np.abs(np.diff(x, axis=0)).max() < 3


def test_particles_with_velocities_are_simulated_in_one_go():
    system = Mixing(particles=16, box=8.0, frames=5, equilibration=50)
    state = system.arrange("half-plane", np.random.default_rng(0))
    pieces = list(simulate_live(system, state, members=3, seed=0))
    assert pieces[0].macrostates.shape == (1, 5, 2)
    assert pieces[0].microstates.shape == (5, 32, 3)
    assert sum(len(piece.macrostates) for piece in pieces) == 3


def test_what_would_take_too_long_and_cannot_be_cut_is_refused(monkeypatch):
    monkeypatch.setattr(live, "LONGEST_S", 0.0)
    system = Mixing(particles=16, box=8.0, frames=5, equilibration=50)
    state = system.arrange("half-plane", np.random.default_rng(0))
    with pytest.raises(InputError, match="cannot be shown before it is complete"):
        next(simulate_live(system, state, members=1, seed=0))


def test_the_same_seed_gives_the_same_trajectories():
    system = SIRS(size=8, frames=6)
    state = system.pattern(1, np.random.default_rng(0))
    whole = [piece for piece in simulate_live(system, state, members=1, seed=5)]
    again = [piece for piece in simulate_live(system, state, members=1, seed=5)]
    assert np.array_equal(whole[0].macrostates, again[0].macrostates)
