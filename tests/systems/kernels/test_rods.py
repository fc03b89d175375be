"""Chains of beads and rods against closed forms of polymer physics and a slow twin."""

from itertools import pairwise

import numpy as np
import pytest
from rods_twin import (
    assert_mean,
    centred,
    gram,
    leads_to,
    make_words,
    random_rods,
    rigid_rods,
    step,
    string,
)

from tampl.errors import InputError
from tampl.systems.kernels.coils import sample_coils
from tampl.systems.kernels.constraints import TOLERANCE
from tampl.systems.kernels.random import draw_word
from tampl.systems.kernels.rods import (
    MOST_REFUSED,
    PARTS,
    Motion,
    StepCounts,
    advance,
    check_steps,
    run_chains,
)


def run(rods, motion, every, frames, seed=1):
    """Runs the chains to the end; frames (n, F, B, 3) and the rods in them, (n, F, R, 3)."""
    out = np.empty((len(rods), frames, rods.shape[1] + 1, 3))
    counts = run_chains(rods.copy(), make_words(len(rods), seed), motion, every, out)
    check_steps(counts, every * (frames - 1), motion.dt)
    return out, np.diff(out, axis=2)


@pytest.mark.parametrize("beads", [2, 3, 8, 11])
@pytest.mark.parametrize("excluded", [True, False])
def test_steps_equal_those_of_the_slow_twin(beads, excluded):
    # Strong compression across the flow drives beads into each other.
    motion = Motion(flow=3.0, dt=2e-3, temperature=1.0, excluded=excluded)
    words = make_words(1, seed=beads)
    rods = sample_coils(words, beads)
    slow, state, steps = rods[0].copy(), words[0].copy(), 60
    for _ in range(steps):
        noise = centred([draw_word(state) for _ in range(beads)])
        slow = step(slow, noise, motion)
    out = np.empty((1, 2, beads, 3))
    counts = run_chains(rods, words, motion, steps, out)
    assert (counts.done[0], counts.refused[0]) == (steps, 0)
    np.testing.assert_allclose(rods[0], slow, atol=1e-4)
    np.testing.assert_allclose(out[0, 1], string(slow), atol=1e-4)


def test_rods_keep_their_length_and_the_centre_stays_at_the_origin():
    rods = sample_coils(make_words(3), 60)
    out, kept = run(rods, Motion(flow=0.02, dt=1e-3), every=200, frames=21)
    assert np.abs(np.linalg.norm(kept, axis=-1) - 1).max() < TOLERANCE
    assert np.abs(out.mean(axis=2)).max() < 1e-12


def test_centre_of_mass_diffuses_with_all_beads_friction():
    n, beads, dt, steps = 4000, 6, 2e-3, 50
    rods, words = random_rods(n, beads - 1), make_words(n)
    centres = np.empty((n, 3))
    for k in range(n):
        positions = np.ascontiguousarray(string(rods[k]).T)
        assert advance(positions, words[k], Motion(0.0, dt, 1.0, False), steps) == (steps, 0)
        centres[k] = positions.mean(axis=1)
    assert_mean(centres, 0)
    assert_mean(centres**2, 2 * steps * dt / beads)


def test_a_rod_turns_with_its_rotational_diffusion():
    # Two beads of friction one at distance one: D = 2 kT, and <u(t) u(0)> = exp(-2 D t).
    dt, every = 5e-4, 125
    _, u = run(random_rods(8000, 1), Motion(0.0, dt), every, frames=4)
    along = (u[:, :, 0] * u[:, :1, 0]).sum(axis=-1)
    assert_mean(along, np.exp(-4 * dt * every * np.arange(4)), slack=1e-3)


def test_a_rod_in_the_flow_has_its_stationary_distribution():
    # The density on the sphere is exp(e (x^2 - y^2) / 4): flow against rotational diffusion.
    flow = 6.0
    _, u = run(random_rods(10_000, 1), Motion(flow, 1e-3), every=500, frames=2)
    sphere = random_rods(200_000, 1, seed=7)[:, 0] ** 2
    weight = np.exp(flow / 4 * (sphere[:, 0] - sphere[:, 1]))
    expected = (weight[:, None] * sphere).sum(axis=0) / weight.sum()
    assert_mean(u[:, 1, 0] ** 2, expected, slack=4e-3)


@pytest.fixture(scope="module")
def trimers():
    _, u = run(random_rods(6000, 2), Motion(0.0, 2e-3, 1.0, False), every=150, frames=7)
    return u[:, 1:].reshape(-1, 2, 3)


def test_the_angle_of_three_beads_has_the_rigid_measure(trimers):
    # Rigid rods weigh cos(angle) by sqrt(4 - c^2), so <c^2> = 0.3210; a random walk has 1/3.
    c = np.linspace(-1, 1, 20_001)
    weight = np.sqrt(4 - c**2)
    rigid = (c**2 * weight).sum() / weight.sum()
    cosines = (trimers[:, 0] * trimers[:, 1]).sum(axis=-1)
    assert_mean(cosines, 0)
    assert_mean(cosines**2, rigid)
    assert rigid == pytest.approx(0.3210, abs=1e-4)
    assert np.mean(cosines**2) < 1 / 3 - 4 * np.std(cosines**2) / np.sqrt(len(cosines))


def test_ideal_chains_have_the_random_walks_end_to_end_distance():
    # det G holds squares of cosines only, so turning round a part of the chain leaves the measure
    # as it is: all products of different rods vanish, and <R^2> is the number of rods.
    count = 5
    _, u = run(random_rods(4000, count), Motion(0.0, 4e-3, 1.0, False), every=400, frames=2)
    last = u[:, 1]
    assert_mean((last.sum(axis=1) ** 2).sum(axis=-1), count)
    rigid = rigid_rods(50_000, count)
    expected = ((rigid[:, 1:] * rigid[:, :-1]).sum(axis=-1) ** 2).mean(axis=0)
    cosines = (last[:, 1:] * last[:, :-1]).sum(axis=-1)
    assert_mean(cosines**2, expected, slack=4 * 0.3 / np.sqrt(50_000))


def test_end_to_end_vector_relaxes_at_the_projected_rate():
    # At equilibrium <|R(t) - R(0)|^2> = 2 t sum_a <|P grad R_a|^2> + O(t^2), where P projects on
    # what the constraints leave free. R is the last bead less the first, so its gradient has the
    # square 2, and the product u_k with the gradient of constraint k if k is an end of the chain.
    count, dt, steps = 3, 2.5e-4, 20
    rods = rigid_rods(20_000, count)
    ends = np.zeros_like(rods)
    ends[:, [0, -1]] = rods[:, [0, -1]]
    rate = 6 - np.einsum("nka,nkl,nla->n", ends, np.linalg.inv(gram(rods)), ends)
    _, later = run(rods, Motion(0.0, dt, 1.0, False), every=steps, frames=2)
    R = later.sum(axis=2)
    change = ((R[:, 1] - R[:, 0]) ** 2).sum(axis=-1) / (2 * dt * steps)
    assert_mean(change, rate.mean(), slack=0.02 * rate.mean())


def test_excluded_volume_swells_a_chain_and_keeps_beads_apart():
    # From the same coils, for twice the longest relaxation time of eight beads.
    rods, count = sample_coils(make_words(300), 8), 7
    (excluded, u), (ideal, v) = (
        run(rods, Motion(0.0, 2e-3, 1.0, flag), every=2000, frames=2) for flag in (True, False)
    )
    i, j = np.triu_indices(8, 2)
    nearest = [np.linalg.norm(x[:, 1, i] - x[:, 1, j], axis=-1).min() for x in (excluded, ideal)]
    assert nearest[0] > 0.7 > nearest[1]
    swollen, random_walk = ((rods[:, 1].sum(axis=1) ** 2).sum(axis=-1) for rods in (u, v))
    assert_mean(random_walk, count)
    assert swollen.mean() - 4 * swollen.std() / np.sqrt(len(swollen)) > count


def test_a_step_that_cannot_be_solved_stops_the_chain_and_is_reported():
    rods = sample_coils(make_words(4), 12)
    motion, every = Motion(0.0, 0.1), 10
    out = np.empty((4, 30, 12, 3))
    counts = run_chains(rods, make_words(4), motion, every, out)
    done = counts.done
    assert done.min() < 290
    assert (counts.refused[done < 290] > 0).all()
    for chain, frames in enumerate(1 + done // every):
        assert np.isfinite(out[chain, :frames]).all()
        assert np.isnan(out[chain, frames:]).all()
    assert np.abs(np.linalg.norm(rods, axis=-1) - 1).max() < TOLERANCE
    first = np.flatnonzero(done < 290)[0]
    with pytest.raises(InputError, match=f"chain {first} after {done[first]} of 290 steps"):
        check_steps(counts, 290, motion.dt)


REFUSING = Motion(flow=0.5, dt=0.02)


def test_a_refused_step_is_taken_again_in_parts_with_new_noise():
    rods, words, frames = sample_coils(make_words(1), 8), make_words(1, seed=1), 401
    out = np.empty((1, frames, 8, 3))
    counts = run_chains(rods, words.copy(), REFUSING, 1, out)
    states, state, refused = np.diff(out[0], axis=1), words[0], 0
    part = REFUSING._replace(dt=REFUSING.dt / PARTS)
    draw = lambda: centred([draw_word(state) for _ in range(8)])
    for before, after in pairwise(states):
        if not leads_to(after, before, [draw()], REFUSING):
            assert leads_to(after, before, [draw() for _ in range(PARTS)], part)
            refused += 1
    assert (counts.done[0], counts.refused[0]) == (frames - 1, refused) and refused > 0
    assert np.abs(np.linalg.norm(states, axis=-1) - 1).max() < TOLERANCE
    with pytest.raises(InputError, match=rf"{refused} of 400 steps were refused.*smaller `dt`$"):
        check_steps(counts, frames - 1, REFUSING.dt)


def test_the_centre_of_mass_diffuses_alike_where_steps_are_refused():
    n, beads, dt, steps = 20_000, 6, 0.025, 10
    rods, words = random_rods(n, beads - 1), make_words(n)
    centres, refused = np.empty((n, 3)), np.empty(n, int)
    for k in range(n):
        positions = np.ascontiguousarray(string(rods[k]).T)
        done, refused[k] = advance(positions, words[k], Motion(0.0, dt, 1.0, False), steps)
        assert done == steps
        centres[k] = positions.mean(axis=1)
    assert refused.mean() > 0.02 * steps
    assert_mean(centres, 0)
    assert_mean(centres**2, 2 * steps * dt / beads)


@pytest.mark.parametrize(("steps", "most"), [(10**7, round(3e7 * MOST_REFUSED)), (10**4, 5)])
def test_one_step_in_a_million_may_be_refused_and_a_few_in_any_case(steps, most):
    done = np.full(3, steps)
    check_steps(StepCounts(done, np.array([most, 0, 0])), steps, 1e-3)
    message = rf"^`dt` is 0.001; {most + 1} of {3 * steps} steps were refused"
    with pytest.raises(InputError, match=message):
        check_steps(StepCounts(done, np.array([most, 1, 0])), steps, 1e-3)


def test_a_chain_depends_on_its_own_words_alone():
    rods, motion = sample_coils(make_words(3), 10), Motion(0.1, 1e-3)
    together, _ = run(rods, motion, 20, 3)
    again, _ = run(rods, motion, 20, 3)
    alone = np.empty((1, 3, 10, 3))
    run_chains(rods[1:2].copy(), make_words(3, seed=1)[1:2], motion, 20, alone)
    assert np.array_equal(together, again)
    assert np.array_equal(together[1], alone[0])
    assert not np.allclose(together[0, 1], together[1, 1])


def test_without_noise_the_ends_of_a_chain_are_alike():
    rods, motion = sample_coils(make_words(2), 9), Motion(2.0, 2e-3, 0.0)
    out, _ = run(rods, motion, 50, 3)
    back, _ = run(-rods[:, ::-1], motion, 50, 3)
    np.testing.assert_allclose(back[:, :, ::-1], out, atol=1e-5)
