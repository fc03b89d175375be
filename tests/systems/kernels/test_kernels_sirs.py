"""The compiled SIRS chain against closed forms and a slow Gillespie simulation in NumPy."""

import numpy as np
import pytest

from tampl.systems.kernels.sirs import count_sites, run_chains


def run(lattice, rates, interval, frames, runs, *, keep=False, seed=0):
    """`runs` trajectories from one lattice: counts (M, F, 3), lattices (M, F, L, L), events."""
    words = np.random.default_rng(seed).integers(1, 2**64, (1, runs, 4), np.uint64)
    counts = np.full((1, runs, frames, 3), -1)
    kept = np.full((1, runs, frames if keep else 0, lattice.size), 255, np.uint8)
    flat = lattice.astype(np.uint8).reshape(1, -1)
    events = run_chains(flat, words, np.array(rates, float), interval, counts, kept)
    return counts[0], kept[0].reshape(runs, -1, *lattice.shape), events


def random_lattice(size, seed=0, p=(0.5, 0.3, 0.2)):
    return np.random.default_rng(seed).choice(3, (size, size), p=p).astype(np.uint8)


def slow_run(lattice, rates, times, generator):
    """Gillespie's direct method: a rate for every site, an event drawn from all of them."""
    beta, gamma, mu = rates
    x, t, counts = lattice.astype(int), 0.0, []
    while True:
        near = sum(np.roll(x == 1, shift, axis) for shift in (1, -1) for axis in (0, 1))
        rate = np.choose(x, [beta * near / 4, gamma, mu]).ravel().cumsum()
        t = t + generator.exponential(1 / rate[-1]) if rate[-1] > 0 else np.inf
        while len(counts) < len(times) and times[len(counts)] < t:
            counts.append(np.bincount(x.ravel(), minlength=3))
        if len(counts) == len(times):
            return counts
        site = np.searchsorted(rate, generator.random() * rate[-1], side="right")
        x.flat[site] = (x.flat[site] + 1) % 3


def assert_same_mean(a, b):
    """Means over the first axis agree within four standard errors."""
    error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
    assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 4 * error + 1e-12)


def assert_probability(hits, p):
    """A mean of zeros and ones agrees with its probability within four standard errors."""
    assert np.all(np.abs(hits.mean(axis=0) - p) <= 4 * np.sqrt(p * (1 - p) / len(hits)))


@pytest.mark.parametrize(
    ("size", "rates"),
    [(4, (3.0, 1.0, 0.5)), (5, (8.0, 1.0, 0.15)), (3, (4.0, 0.0, 1.0)), (4, (4.0, 1.0, 0.0))],
)
def test_first_two_moments_equal_a_slow_gillespie_simulation(size, rates):
    lattice, interval, frames = random_lattice(size, seed=2), 0.4, 6
    generator = np.random.default_rng(3)
    times = interval * np.arange(frames)
    slow = np.array([slow_run(lattice, rates, times, generator) for _ in range(500)])
    fast, _, _ = run(lattice, rates, interval, frames, 20_000)
    assert_same_mean(fast, slow)
    assert_same_mean(fast**2, slow**2)


def test_decay_without_infection_has_its_closed_form():
    lattice, gamma, mu = random_lattice(30, p=(0.2, 0.5, 0.3)), 1.3, 0.4
    counts, _, _ = run(lattice, (0.0, gamma, mu), 0.5, 8, 400)
    t = 0.5 * np.arange(8)
    I_0, R_0 = (lattice == 1).sum(), (lattice == 2).sum()
    fed = gamma / (gamma - mu) * (np.exp(-mu * t) - np.exp(-gamma * t))
    expected = np.stack([I_0 * np.exp(-gamma * t), I_0 * fed + R_0 * np.exp(-mu * t)], axis=-1)
    error = counts[..., 1:].std(axis=0) / np.sqrt(len(counts))
    assert np.all(np.abs(counts[..., 1:].mean(axis=0) - expected) <= 4 * error + 1e-9)


@pytest.mark.parametrize("n_infected", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [3, 6])
def test_infection_rate_is_proportional_to_infected_neighbours(n_infected, size):
    # Frozen recovered sites all around leave one susceptible site with `n_infected` neighbours;
    # it lies in a corner, so that the neighbours are found across the edges.
    lattice = np.full((size, size), 2)
    lattice[0, 0] = 0
    for row, column in [(0, 1), (-1, 0), (0, -1), (1, 0)][:n_infected]:
        lattice[row, column] = 1
    counts, _, _ = run(lattice, (2.0, 0.0, 0.0), 0.25, 5, 10_000)
    t = 0.25 * np.arange(5)
    assert_probability(counts[..., 0] == 1, np.exp(-2.0 * n_infected / 4 * t))


def test_product_of_uniforms_survives_thousands_of_rejections():
    # One susceptible site among 1,599 infected: about 1,600 attempts for each that counts, whose
    # uniforms multiply to e^-1600 and would underflow.
    lattice = np.ones((40, 40))
    lattice[7, 9] = 0
    counts, _, events = run(lattice, (1.0, 0.0, 0.0), 0.5, 6, 2_000)
    assert_probability(counts[..., 0] == 1, np.exp(-0.5 * np.arange(6)))
    assert events == (counts[:, -1, 0] == 0).sum()


@pytest.mark.parametrize("rates", [(8.0, 1.0, 0.15), (5.0, 1.0, 0.0), (0.0, 0.0, 2.0)])
def test_sites_are_conserved_and_only_step_forward(rates):
    lattice = random_lattice(12)
    counts, frames, _ = run(lattice, rates, 0.001, 60, 3, keep=True)
    assert np.all(counts.sum(axis=-1) == lattice.size)
    assert np.array_equal(frames[:, 0], np.broadcast_to(lattice, (3, 12, 12)))
    assert np.array_equal(count_sites(frames.reshape(-1, 144)), counts.reshape(-1, 3))
    # Frames are short against all waiting times: a site takes one step, S to I to R to S, or none.
    assert np.isin((frames[:, 1:].astype(int) - frames[:, :-1]) % 3, (0, 1)).all()


def test_without_loss_of_immunity_the_epidemic_is_monotone_and_ends():
    counts, frames, events = run(random_lattice(16), (4.0, 1.0, 0.0), 0.5, 80, 20, keep=True)
    S, I, R = np.moveaxis(counts, -1, 0)
    assert np.all(np.diff(S) <= 0)
    assert np.all(np.diff(R) >= 0)
    assert np.all(I[:, -1] == 0)
    assert events == (S[:, 0] - S[:, -1] + R[:, -1] - R[:, 0]).sum()
    assert np.array_equal(frames[:, -1], frames[:, -2])


@pytest.mark.parametrize(
    ("state", "rates"),
    [(0, (8.0, 1.0, 0.15)), (1, (8.0, 0.0, 0.15)), (2, (8.0, 1.0, 0.0)), (1, (0.0, 0.0, 0.0))],
    ids=["all susceptible", "all infected for ever", "all immune for ever", "no rates"],
)
def test_absorbing_states_fill_every_frame(state, rates):
    lattice = np.full((5, 5), state)
    counts, frames, events = run(lattice, rates, 0.5, 7, 2, keep=True)
    assert events == 0
    assert np.all(frames == state)
    assert np.all(counts == 25 * np.eye(3, dtype=int)[state])


def test_infected_walled_in_for_ever_terminate():
    lattice = np.full((5, 5), 2)
    lattice[2, 2], lattice[0, 0] = 1, 0
    counts, _, events = run(lattice, (8.0, 0.0, 0.0), 100.0, 4, 2)
    assert events == 0
    assert np.all(counts == [1, 1, 23])


def test_frames_do_not_disturb_the_chain():
    lattice = random_lattice(10)
    coarse, coarse_frames, _ = run(lattice, (8.0, 1.0, 0.15), 0.5, 9, 4, keep=True)
    fine, fine_frames, _ = run(lattice, (8.0, 1.0, 0.15), 0.125, 33, 4, keep=True)
    assert np.array_equal(coarse, fine[:, ::4])
    assert np.array_equal(coarse_frames, fine_frames[:, ::4])


def test_counts_are_the_same_whether_or_not_lattices_are_kept():
    with_frames = run(random_lattice(10), (8.0, 1.0, 0.15), 0.5, 9, 4, keep=True)
    without = run(random_lattice(10), (8.0, 1.0, 0.15), 0.5, 9, 4)
    assert np.array_equal(with_frames[0], without[0])
    assert with_frames[2] == without[2] > 0
