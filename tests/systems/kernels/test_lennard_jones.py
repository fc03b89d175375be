"""Molecular dynamics against a slow twin, closed forms, conservation laws and LAMMPS."""

import json
from pathlib import Path

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.seeding import kernel_words
from tampl.systems.kernels.equilibration import ANY, Bath, equilibrate, minimise
from tampl.systems.kernels.lennard_jones import Schedule, draw_velocities, run_trajectories
from tampl.systems.kernels.pair_forces import Fluid, forces, pair_table

LAMMPS = json.loads(Path(__file__).with_name("lammps_reference.json").read_text())
CUTOFF = 2.5
PAIRS = pair_table(LAMMPS["epsilon"], LAMMPS["sigma"], CUTOFF)
NONE = pair_table([[0.0]], [[1.0]], CUTOFF)


def lattice(count, box, seed=0):
    """Particles on a jittered square lattice, (count, 2), and random types."""
    generator = np.random.default_rng(seed)
    edge = int(np.ceil(np.sqrt(count)))
    grid = np.stack(np.meshgrid(*2 * [np.arange(edge)]), axis=-1).reshape(-1, 2)[:count]
    positions = (grid + 0.5 + generator.uniform(-0.1, 0.1, grid.shape)) * box / edge
    return positions, generator.integers(0, 2, count).astype(np.uint8)


def words_of(runs, seed=0):
    return np.stack([kernel_words(seed, "run", n) for n in range(runs)])


def run(
    positions, types, words, *, box, frames=3, every=10, dt=0.002, temperature=1.0, pairs=PAIRS
):
    """Frames (n, F, N, 2) and energies (n, F) of one run for each row of words."""
    starts = np.broadcast_to(positions, (len(words), *np.shape(positions)[-2:]))
    kinds = np.broadcast_to(types, starts.shape[:2])
    out, energies = (
        np.full((len(words), frames, *starts.shape[1:]), np.nan),
        np.empty((len(words), frames)),
    )
    fluid, schedule = Fluid(pairs, CUTOFF, box), Schedule(temperature, dt, every)
    run_trajectories(starts, kinds, words, fluid, schedule, out, energies)
    return out, energies


def velocities_of(words, n, temperature=1.0):
    velocities = np.empty((n, 2))
    draw_velocities(words.copy(), temperature, velocities)
    return velocities


def slow_run(positions, velocities, types, *, box, dt, steps):
    """Velocity Verlet in NumPy over all pairs, with kicks of their own before and after a wall."""
    x, v = positions.copy(), velocities.copy()
    i, j = np.triu_indices(len(x), 1)
    epsilon, sigma = (np.array(LAMMPS[key])[types[i], types[j]] for key in ("epsilon", "sigma"))

    def force(x):
        d = x[i] - x[j]
        r = np.hypot(*d.T)
        size = 24 * epsilon / r * (2 * (sigma / r) ** 12 - (sigma / r) ** 6) * (r < CUTOFF)
        f = np.zeros_like(x)
        np.add.at(f, i, (size / r)[:, None] * d)
        np.add.at(f, j, -(size / r)[:, None] * d)
        return f

    f = force(x)
    for _ in range(steps):
        v += dt / 2 * f
        wall = np.where(v < 0, 0.0, box)
        part = (wall - x) / (dt * v)
        hit = (part >= 0) & (part < 1)
        inwards = v + (part - 0.5) * dt * f
        x = np.where(hit, wall - (1 - part) * dt * v, x + dt * v)
        v = np.where(hit, -inwards + (0.5 - part) * dt * f, v)
        f = force(x)
        v += dt / 2 * f
    return x, v


def test_trajectory_equals_a_slow_twin():
    # At temperature 4 in a small box the run has dozens of bounces and several new lists.
    (positions, types), words = lattice(20, 6.0), words_of(1)
    out, _ = run(positions, types, words, box=6.0, frames=2, every=300, temperature=4.0)
    start = velocities_of(words[0], 20, 4.0)
    slow, _ = slow_run(positions, start, types, box=6.0, dt=0.002, steps=300)
    assert np.abs(out[0, 1] - slow).max() < 1e-9
    assert np.abs(out[0, 1] - positions).max() > 0.5


def test_free_particles_move_straight_and_fold_at_the_walls():
    (positions, _), words = lattice(30, 5.0), words_of(2)
    types, times = np.zeros(30, np.uint8), 0.7 * np.arange(20)[:, None, None]
    out, energies = run(
        positions, types, words, box=5.0, frames=20, every=70, dt=0.01, pairs=NONE, temperature=9.0
    )
    for n in range(2):
        straight = positions + times * velocities_of(words[n], 30, 9.0)
        folded = 5.0 - np.abs(straight % 10.0 - 5.0)
        assert np.allclose(out[n], folded, rtol=0, atol=1e-10)
    assert np.allclose(energies, energies[:, :1], rtol=1e-12)


def test_energy_per_particle_holds_to_2e_3_over_10_000_steps_and_better_at_smaller_ones():
    positions, types = lattice(512, 32.0)
    change = {}
    for dt in (0.002, 0.001):
        frames = 1 + round(20 / (200 * dt))
        _, energies = run(positions, types, words_of(2), box=32.0, frames=frames, every=200, dt=dt)
        change[dt] = np.abs(energies - energies[:, :1]).max(axis=1) / 512
    assert change[0.002].max() < 2e-3
    assert change[0.001].max() < change[0.002].min()


def test_walls_keep_the_second_order_of_verlet():
    # Dozens of bounces in each run; with the mirror alone the error would be of first order.
    positions, types = lattice(25, 6.0)

    def error(dt):
        steps = round(0.4 / dt)
        _, energies = run(positions, types, words_of(40), box=6.0, frames=11, every=steps, dt=dt)
        return np.sqrt(np.mean((energies[:, -1] - energies[:, 0]) ** 2))

    assert error(0.004) / error(0.001) > 10


def test_velocities_are_maxwells_at_the_temperature():
    n = 20_000
    velocities = velocities_of(words_of(1)[0], n, 2.5)
    assert np.all(np.abs(velocities.mean(axis=0)) < 4 * np.sqrt(2.5 / n))
    covariance = np.cov(velocities.T)
    assert np.all(np.abs(covariance - 2.5 * np.eye(2)) < 4 * 2.5 * np.sqrt(2 / n))
    # Energies of a particle in two dimensions are exponential: their variance is T^2.
    assert abs((velocities**2).sum(axis=1).var() / 4 - 2.5**2) < 4 * 2.5**2 * np.sqrt(8 / n)


def test_energies_are_kinetic_and_potential_energy():
    (positions, types), words = lattice(25, 6.0), words_of(1)
    _, energies = run(positions, types, words, box=6.0)
    kinetic = (velocities_of(words[0], 25) ** 2).sum() / 2
    potential, _ = forces(positions, types, PAIRS, CUTOFF)
    assert energies[0, 0] == pytest.approx(kinetic + potential, rel=1e-12)


def test_same_words_give_the_same_bytes_in_any_batch_and_at_any_frames():
    (positions, types), words = lattice(25, 6.0), words_of(3)
    together, energies = run(positions, types, words, box=6.0, frames=5, every=20)
    alone, energy = run(positions, types, words[1:2], box=6.0, frames=2, every=80)
    assert np.array_equal(together[1, ::4], alone[0])
    assert np.array_equal(energies[1, ::4], energy[0])
    assert not np.array_equal(together[0, -1], together[1, -1])


def test_arguments_are_left_as_they_were():
    (positions, types), words = lattice(25, 6.0), words_of(1)
    copies = positions.copy(), types.copy(), words.copy()
    run(positions, types, words, box=6.0)
    assert all(map(np.array_equal, (positions, types, words), copies))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, t: (np.vstack([x[1:], x[1] + 0.3]), t), "0 and 24.*0.5.*minimise"),
        (lambda x, t: (np.where(x == x[3], np.nan, x), t), "particle 3.*inside the box"),
        (lambda x, t: (np.where(x == x[3], -0.1, x), t), "particle 3.*inside the box"),
        (lambda x, t: (x, t + np.uint8(1)), "`types` has a 2"),
        (lambda x, t: (x, t[1:]), "shapes"),
    ],
    ids=["overlap", "NaN", "outside", "unknown type", "shapes"],
)
def test_wrong_starts_are_refused(change, message):
    positions, types = change(*lattice(25, 6.0))
    out, energies = np.empty((1, 2, 25, 2)), np.empty((1, 2))
    fluid, schedule = Fluid(PAIRS, CUTOFF, 6.0), Schedule(1.0, 0.002, 10)
    start = (positions[None], types[None], words_of(1))
    with pytest.raises(InputError, match=message):
        run_trajectories(*start, fluid, schedule, out, energies)


@pytest.mark.parametrize("dt", [0.05, 1.0, 1e200])
def test_a_blow_up_is_reported_with_run_step_and_energy(dt):
    positions, types = lattice(25, 6.0)
    with pytest.raises(InputError, match=r"run 0 blew up at step \d+: its energy went from [-\d]"):
        run(positions, types, words_of(2), box=6.0, frames=20, dt=dt)


def virial_pressure(positions, types, box):
    _, force = forces(positions, types, PAIRS, CUTOFF)
    return (positions * force).sum() / (2 * box**2)


def pair_distribution(positions, box, edges):
    i, j = np.triu_indices(len(positions), 1)
    counts, _ = np.histogram(np.hypot(*(positions[i] - positions[j]).T), edges)
    return counts / (np.pi * np.diff(edges**2) * len(positions) ** 2 / (2 * box**2))


def test_equilibrium_is_that_of_lammps():
    reference, runs = LAMMPS["averages"], 32
    n, box, edges = reference["count"], reference["box"], np.array(reference["edges"])
    types, owner = (np.arange(n) % 2).astype(np.uint8), np.full((1, 1), ANY)
    fluid, rows = Fluid(PAIRS, CUTOFF, box), []
    for seed in range(runs):
        start = np.random.default_rng(seed).uniform(0, box, (n, 2))
        start = minimise(start, types, fluid, owner)
        words = kernel_words(seed, "equilibrate")
        start = equilibrate(start, types, words, fluid, owner, Bath(1.0, 0.002, 4000, 1.0))
        out, energies = run(start, types, words_of(1, seed), box=box, frames=21, every=250)
        samples = [
            [
                (energy - forces(x, types, PAIRS, CUTOFF)[0]) / n,
                forces(x, types, PAIRS, CUTOFF)[0] / n,
                virial_pressure(x, types, box),
                *pair_distribution(x, box, edges),
            ]
            for x, energy in zip(out[0], energies[0], strict=True)
        ]
        rows.append(np.mean(samples, axis=0))
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(runs)
    scalars = np.array([reference[key] for key in ("temperature", "energy", "virial_pressure")])
    expected, uncertain = np.hstack([scalars.T, reference["pair_distribution"]])
    assert np.all(np.abs(mean - expected) < 4 * np.hypot(error, uncertain))
    # Error bars are small enough to say something.
    assert error[1] < 0.01
    assert error[3:].max() < 0.03
