"""Closures against closed forms and a fourth-order integration of all nine pair equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from tampl.systems.closures import mean_field, pair_approximation, pair_fractions

S, I, R = 0, 1, 2
TIMES = 0.5 * np.arange(21)
RATES = {"beta": 8.0, "gamma": 1.0, "mu": 0.15}


def lattice(size, p, seed=0):
    return np.random.default_rng(seed).choice(3, (1, size, size), p=p).astype(np.uint8)


def sites_of(lattices):
    return np.stack([(lattices == a).mean(axis=(1, 2)) for a in range(3)], axis=-1)


def solve(name, lattices, times, **rates):
    if name == "mean_field":
        return mean_field(sites_of(lattices), times, **rates)
    return pair_approximation(pair_fractions(lattices), times, **rates)


def runge_kutta(velocity, y, times, substeps):
    """Classical fourth-order steps."""
    path = [y]
    for h in np.repeat(np.diff(times) / substeps, substeps):
        k_1 = velocity(y)
        k_2 = velocity(y + h / 2 * k_1)
        k_3 = velocity(y + h / 2 * k_2)
        k_4 = velocity(y + h * k_3)
        y = y + h / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4)
        path.append(y)
    return np.array(path[::substeps])


def nine_pairs(p, beta, gamma, mu):
    """The pair approximation from its definition: each site of a pair steps S to I to R to S.

    A susceptible site is infected by its partner at beta/4 and by its three other neighbours at
    3 beta/4 times the probability that a neighbour of a susceptible site is infected.
    """
    others = 0.75 * beta * p[S, I] / p[S].sum()
    infection = np.array([others, others + beta / 4, others])
    flow = p * np.stack([infection, np.full(3, gamma), np.full(3, mu)])
    change = np.roll(flow, 1, axis=0) - flow
    return change + change.T


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 9), st.integers(0, 2**32))
def test_pair_fractions_are_symmetric_with_the_site_fractions_as_sums(size, seed):
    lattices = np.random.default_rng(seed).integers(0, 3, (2, size, size), dtype=np.uint8)
    pairs = pair_fractions(lattices)
    assert np.array_equal(pairs, pairs.transpose(0, 2, 1))
    np.testing.assert_allclose(pairs.sum(axis=-1), sites_of(lattices), atol=1e-14)


def test_pair_fractions_count_every_ordered_pair():
    x = lattice(5, [0.4, 0.3, 0.3])[0]
    counted = np.zeros((3, 3))
    for i in range(5):
        for j in range(5):
            for di, dj in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
                counted[x[i, j], x[(i + di) % 5, (j + dj) % 5]] += 1
    np.testing.assert_allclose(pair_fractions(x[None])[0], counted / 100, atol=1e-15)


def test_mean_field_is_logistic_without_recovery():
    I_0 = np.array([0.01, 0.5, 1.0])
    sites = np.stack([1 - I_0, I_0, 0 * I_0], axis=-1)
    growth = I_0[:, None] * np.exp(1.5 * TIMES)
    infected = mean_field(sites, TIMES, beta=1.5, gamma=0, mu=0)[..., I]
    np.testing.assert_allclose(infected, growth / (1 - I_0[:, None] + growth), atol=1e-8)


def test_mean_field_equals_an_independent_integration():
    def velocity(y):
        infection = 8.0 * y[S] * y[I]
        return np.array([0.15 * y[R] - infection, infection - y[I], y[I] - 0.15 * y[R]])

    y = np.array([0.9, 0.05, 0.05])
    expected = runge_kutta(velocity, y, TIMES, 200)
    np.testing.assert_allclose(mean_field(y[None], TIMES, **RATES)[0], expected, atol=1e-8)


def test_mean_field_reaches_the_endemic_state():
    end = mean_field(np.array([[0.95, 0.05, 0.0]]), np.array([0.0, 400.0]), **RATES)[0, -1]
    infected = (1 - 1 / 8) * 0.15 / 1.15
    np.testing.assert_allclose(end, [1 / 8, infected, infected / 0.15], atol=1e-8)


@pytest.mark.parametrize("p", [[0.95, 0.05, 0.0], [0.3, 0.3, 0.4]])
def test_pair_approximation_equals_all_nine_pair_equations(p):
    pairs = pair_fractions(lattice(20, p))
    expected = runge_kutta(lambda p: nine_pairs(p, **RATES), pairs[0], TIMES, 200)
    # The twin keeps what the five equations leave out: p(S,S) = S - p(S,I) - p(S,R) and the like.
    assert expected.min() > -1e-12
    np.testing.assert_allclose(expected.sum(axis=(1, 2)), 1, atol=1e-12)
    np.testing.assert_allclose(expected, expected.transpose(0, 2, 1), atol=1e-12)
    solved = pair_approximation(pairs, TIMES, **RATES)[0]
    np.testing.assert_allclose(solved, expected.sum(axis=-1), atol=1e-8)


@pytest.mark.parametrize("name", ["mean_field", "pair"])
def test_decay_without_infection_has_its_closed_form(name):
    x, gamma, mu = lattice(12, [0.2, 0.5, 0.3]), 1.3, 0.4
    y_0 = sites_of(x)[0]
    y = solve(name, x, TIMES, beta=0.0, gamma=gamma, mu=mu)[0]
    fed = gamma / (gamma - mu) * (np.exp(-mu * TIMES) - np.exp(-gamma * TIMES))
    np.testing.assert_allclose(y[:, I], y_0[I] * np.exp(-gamma * TIMES), atol=1e-8)
    np.testing.assert_allclose(y[:, R], y_0[I] * fed + y_0[R] * np.exp(-mu * TIMES), atol=1e-8)


@pytest.mark.parametrize("name", ["mean_field", "pair"])
@settings(max_examples=15, deadline=None)
@given(beta=st.floats(0, 50), gamma=st.floats(0, 5), mu=st.floats(0, 5), seed=st.integers(0, 1000))
def test_fractions_stay_fractions(name, beta, gamma, mu, seed):
    x = np.random.default_rng(seed).integers(0, 3, (2, 4, 4), dtype=np.uint8)
    y = solve(name, x, TIMES, beta=beta, gamma=gamma, mu=mu)
    assert y.shape == (2, 21, 3)
    np.testing.assert_allclose(y[:, 0], sites_of(x), atol=1e-14)
    np.testing.assert_allclose(y.sum(axis=-1), 1, atol=1e-12)
    assert y.min() > -1e-8
    assert y.max() < 1 + 1e-8


@pytest.mark.parametrize("name", ["mean_field", "pair"])
@pytest.mark.parametrize("state", [S, I, R])
@pytest.mark.parametrize("mu", [0.0, 0.15])
def test_uniform_lattices_are_no_exception(name, state, mu):
    y = solve(name, np.full((1, 4, 4), state, np.uint8), TIMES, beta=8.0, gamma=1.0, mu=mu)[0]
    assert np.isfinite(y).all()
    assert y.min() > -1e-9
    if state == S or (state == R and mu == 0):
        np.testing.assert_allclose(y, np.tile(y[0], (21, 1)), atol=1e-12)
    if state == I and mu == 0:
        np.testing.assert_allclose(y[:, I], np.exp(-TIMES), atol=1e-8)


def test_stiff_mean_field_has_almost_no_susceptible_sites():
    y = mean_field(np.array([[0.9, 0.1, 0.0]]), 20 * TIMES, beta=1e5, gamma=1.0, mu=0.15)[0, -1]
    np.testing.assert_allclose(y, [1e-5, 0.15 / 1.15, 1 / 1.15], atol=2e-5)


def test_stiff_pair_approximation_equals_all_nine_pair_equations():
    rates = {"beta": 1e4, "gamma": 1.0, "mu": 0.15}
    pairs = pair_fractions(lattice(10, [0.9, 0.1, 0.0]))
    expected = solve_ivp(
        lambda _, y: nine_pairs(y.reshape(3, 3), **rates).ravel(),
        (TIMES[0], TIMES[-1]),
        pairs.ravel(),
        "Radau",
        t_eval=TIMES,
        rtol=1e-7,
        atol=1e-10,
    ).y.T.reshape(-1, 3, 3)
    solved = pair_approximation(pairs, TIMES, **rates)[0]
    np.testing.assert_allclose(solved, expected.sum(axis=-1), atol=1e-6)


def test_no_initial_states_give_no_trajectories():
    assert mean_field(np.empty((0, 3)), TIMES, **RATES).shape == (0, 21, 3)
    pairs = pair_fractions(np.empty((0, 4, 4), np.uint8))
    assert pair_approximation(pairs, TIMES, **RATES).shape == (0, 21, 3)
