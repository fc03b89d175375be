"""The envelope: training states are inside, states far away are held, inside nothing changes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tampl
from tampl.errors import ForecastWarning
from tampl.models.envelope import Envelope
from tampl.seeding import torch_generator

RING = torch.linspace(0, 2 * torch.pi, 400)
STATES = torch.stack([RING.cos(), 3 * RING.sin(), 0.01 * RING.cos()], dim=1)
TRAJECTORY = torch.arange(400) % 8


@pytest.fixture(scope="module")
def envelope():
    return Envelope.fit(STATES, TRAJECTORY)


def test_training_states_are_inside_and_the_hollow_of_their_ring_is_not(envelope):
    """An ellipsoid or a box around the ring would hold its middle too."""
    assert (envelope.distance(STATES) <= 1).all()
    assert envelope.distance(torch.zeros(1, 3)) > 1


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 1000), size=st.floats(0.1, 1e6))
def test_held_states_are_inside_and_inside_states_keep_their_bits(seed, size):
    envelope = Envelope.fit(STATES, TRAJECTORY)
    states = size * torch.randn(20, 3, generator=torch_generator(seed))
    states = torch.cat([states, STATES[:5]])
    held = envelope.hold(states)
    inside = held.inside
    assert torch.equal(held.states[inside], states[inside]) and inside[-5:].all()
    assert torch.equal(inside, envelope.distance(states) <= 1)
    assert (envelope.distance(held.states) <= 1 + 1e-3).all()
    # Whichever landmarks are tried first, the same states are inside and the same are held.
    near = torch.randint(len(envelope.landmarks), (len(states),), generator=torch_generator(seed))
    again = envelope.hold(states, near)
    assert torch.equal(again.inside, inside) and torch.equal(again.states, held.states)


def test_states_that_are_not_finite_are_held_too(envelope):
    wild = torch.tensor([[float("nan"), 0, 0], [float("inf"), 0, 0], [1e38, -1e38, 1e38]])
    held = envelope.hold(wild)
    assert not held.inside.any() and torch.isfinite(held.states).all()


class Runaway(torch.nn.Module):
    """A transition that doubles its state in every step."""

    def forward(self, z, noise):
        return 2 * z + 0.1 * noise


def test_a_runaway_is_held_said_and_plain_without_limits(make_model, lattices, monkeypatch):
    model = make_model()
    x, y = lattices[:, None].repeat(2, axis=1), np.tile([0.6, 0.3, 0.1], (5, 2, 1))
    model.enclose(tampl.Dataset(x, y))
    monkeypatch.setattr(model.transition, "forward", Runaway().forward)
    with pytest.warns(ForecastWarning, match="more than 5% of the members ran out"):
        held = model.forecast(lattices, horizon=30, members=4, progress=False)
    plain = model.forecast(lattices, horizon=30, members=4, limits=False, progress=False)
    assert np.abs(plain.samples).max() > 1e3 * np.abs(held.samples).max()
    assert held.held > 0.5 and plain.held is None
    assert held.inside.shape == (5, 4, 31) and held.inside[:, :, 0].all()


def test_limits_totals_and_conserved_quantities_hold_in_every_member():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 6, 3))
    y = rng.dirichlet([1, 1, 1], size=(20, 6))
    y[..., 2] = y[:, :1, 2]  # conserved along each trajectory
    y[..., :2] *= ((1 - y[..., 2]) / y[..., :2].sum(axis=-1))[..., None]
    observables = [tampl.Observable(name=s, symbol=s, lower=0, upper=1) for s in "abc"]
    data = tampl.Dataset(x, y, observables=observables, microstate=tampl.Vector(size=3))
    total = tampl.Total(symbols=("a", "b", "c"), value=1.0)
    data.description = data.description.model_copy(update={"totals": (total,)})
    model = tampl.Tampl(latent_dim=2).fit(data, epochs=2, progress=False, device="cpu")
    assert [o.conserved for o in model.description.observables] == [False, False, True]
    ahead = model.forecast(x[:4, 0], y0=y[:4, 0], horizon=9, members=8, progress=False)
    for values in (ahead.samples, ahead.mean[:, None]):
        assert values.min() >= 0 and values.max() <= 1
        np.testing.assert_allclose(values.sum(axis=-1), 1, atol=1e-12)
        expected = np.broadcast_to(y[:4, None, :1, 2], values[..., 2].shape)
        np.testing.assert_allclose(values[..., 2], expected, atol=1e-12)


def test_states_of_the_same_system_are_inside():
    """A random split of one data set: the envelope of one part holds nearly all of the other."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(80, 1, 12)), 0.3 * rng.normal(size=(80, 12, 12))], axis=1)
    x = x.cumsum(axis=1)
    data = tampl.Dataset(x, x[..., 0], microstate=tampl.Vector(size=12))
    train, test = data.split(0.8, 0.2, seed=0)
    model = tampl.Tampl().fit(train, epochs=3, progress=False, device="cpu")
    states = torch.cat([model.start_arrays(test.x[:, t], None) for t in range(13)])
    outside = (model.envelope.distance(states) > 1).double().mean()
    assert outside < 0.02


def test_the_envelope_is_of_all_times_whatever_the_number_of_frames():
    """Every k-th of all frames would be the first of each trajectory for some k."""
    x = np.arange(10.0)[None, :, None] + np.random.default_rng(0).normal(size=(4096, 10, 1))
    data = tampl.Dataset(x, x[..., 0], microstate=tampl.Vector(size=1))
    model = tampl.Tampl(latent_dim=1).fit(
        data.select(np.arange(20)), epochs=1, encoder="linear", progress=False, device="cpu"
    )
    model.enclose(data)
    for t in (0, 5, 9):
        states = model.start_arrays(data.x[:50, t], None)
        assert (model.envelope.distance(states) <= 1).all()


def test_an_initial_state_far_from_the_data_is_warned_of():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 5, 3)).cumsum(axis=1)
    data = tampl.Dataset(x, x[..., 0], microstate=tampl.Vector(size=3))
    model = tampl.Tampl(latent_dim=2).fit(
        data, epochs=2, encoder="linear", progress=False, device="cpu"
    )
    with pytest.warns(ForecastWarning, match="1 of 1 initial states lie outside"):
        model.forecast(np.full(3, 1e3), members=2, progress=False)
