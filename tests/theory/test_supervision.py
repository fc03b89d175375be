"""Macrostates through a horizon do not determine the next one; closed latent states do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_systems import SEEDS, draw_system, pairs

from tampl.errors import InputError
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    Weights,
    macro_loss,
    norm2,
    rollout_error,
)
from tampl.theory.realisability import is_exact, realise
from tampl.theory.supervision import (
    cyclic_system,
    diagonal_system,
    find_obstruction,
    make_counterexample,
    split_transition_error,
)

a, b, c = 0.9, 0.4, 0.6


def with_exact_readout(system, r):
    return LinearSystem(system.A, r.D @ r.B, system.Sigma)


def test_the_paper_s_example():
    found = make_counterexample(diagonal_system([a, b], [c]), 1)
    np.testing.assert_array_equal(found.wrong.B, [[1, 1, 0], [a, b, 0]])
    np.testing.assert_array_equal(found.wrong.K, [[0, 1], [0, 0]])
    np.testing.assert_array_equal(found.wrong.D, [[1, 0]])
    assert found.holds
    assert macro_loss(found.system, found.wrong, Weights(cur=0.3, next=5.0)) == 0
    for h in (2, 3, 7):
        np.testing.assert_array_equal(found.wrong.macro(h), np.zeros((1, 3)))
    np.testing.assert_allclose(found.errors, [0, 0, a**4 + b**4])
    assert (found.rank_encoder, found.rank_predicted) == (2, 1)
    assert is_exact(found.system, found.exact)
    stated = Realisation(np.eye(2, 3), [[1.0, 1.0]], np.diag([a, b]))
    assert is_exact(found.system, stated)


@pytest.mark.parametrize("horizon", [0, 1, 2, 3, 5, 10, 40])
def test_a_counterexample_for_any_horizon_at_a_dimension_that_suffices(horizon):
    found = make_counterexample(cyclic_system(horizon), horizon)
    assert found.holds
    assert found.exact.latent_dim == found.wrong.latent_dim == horizon + 1
    assert is_exact(found.system, found.exact)
    np.testing.assert_allclose(
        rollout_error(found.system, found.exact, 3 * horizon), 0, atol=1e-18
    )
    np.testing.assert_array_equal(found.errors[:-1], 0)
    np.testing.assert_allclose(found.errors[-1], 0.9 ** (2 * (horizon + 1)))
    assert (found.rank_encoder, found.rank_predicted) == (horizon + 1, horizon)


@given(SEEDS, st.integers(0, 3), st.integers(1, 2), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_any_system_has_one_where_its_outputs_fit(seed, horizon, m, extra):
    system = draw_system(np.random.default_rng(seed), m * (horizon + 1) + extra, m)
    found = make_counterexample(system, horizon)
    assert found.holds
    truth = system.C @ np.linalg.matrix_power(system.A, horizon + 1)
    np.testing.assert_allclose(found.errors[-1], norm2(truth, system.Sigma))
    # All of a generic system is needed, so nothing smaller than n is exact.
    assert (found.exact is None) == (extra > 0)


def test_outputs_that_decay_fast_still_make_one():
    found = make_counterexample(cyclic_system(3, decay=1e-3), 3)
    assert found.holds and found.errors[-1] == pytest.approx(1e-24)


def test_outputs_that_end_with_the_horizon_make_no_counterexample():
    system = LinearSystem(np.eye(3, k=1), np.eye(1, 3), np.eye(3))
    assert make_counterexample(system, 1).holds
    ended = make_counterexample(system, 2)
    assert not ended.holds
    assert ended.errors[-1] == 0


@given(SEEDS, st.integers(1, 5), st.integers(1, 2))
@settings(max_examples=30, deadline=None)
def test_closed_latent_states_with_an_exact_readout_are_right_for_ever(seed, n, m):
    system = draw_system(np.random.default_rng(seed), n, m)
    model = realise(system)
    truth = [norm2(system.C @ np.linalg.matrix_power(system.A, h), system.Sigma) for h in (0, 30)]
    assert np.max(rollout_error(system, model, 30)) <= 1e-16 * (1 + max(truth))


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_one_step_sees_d_delta_and_two_see_d_k_delta(pair):
    system, r, _ = pair
    system = with_exact_readout(system, r)
    split = split_transition_error(system, r)
    one = r.macro(1) - system.C @ system.A
    two = r.macro(2) - system.C @ system.A @ system.A
    np.testing.assert_allclose(split.D_Delta, one, atol=1e-10)
    np.testing.assert_allclose(split.D_K_Delta + split.D_Delta @ system.A, two, atol=1e-9)
    np.testing.assert_allclose(split.seen, norm2(one, system.Sigma), atol=1e-9)
    # What is unseen is in ker D, and what is left of Delta is orthogonal to it.
    projector = np.linalg.pinv(r.D) @ r.D
    visible = norm2(projector @ split.Delta, system.Sigma)
    np.testing.assert_allclose(split.total, split.unseen + visible, rtol=1e-6)
    assert split.free_dim == max(r.latent_dim - system.m, 0)
    if split.free_dim == 0:
        np.testing.assert_allclose(split.unseen, 0, atol=1e-9 * (1 + split.total))


@given(pairs())
@settings(max_examples=40, deadline=None)
def test_an_error_in_the_kernel_of_the_readout_is_free_for_one_step(pair):
    system, r, rng = pair
    system = with_exact_readout(system, r)
    exact_step = Realisation(r.B, r.D, r.K)
    rest = np.eye(r.latent_dim) - np.linalg.pinv(r.D) @ r.D
    change = rest @ rng.standard_normal((r.latent_dim, r.latent_dim))
    moved = split_transition_error(system, Realisation(r.B, r.D, r.K + change))
    before = split_transition_error(system, exact_step)
    np.testing.assert_allclose(moved.seen, before.seen, rtol=1e-7, atol=1e-9)


def test_the_error_of_the_paper_s_example_shows_at_the_second_step():
    found = make_counterexample(diagonal_system([a, b], [c]), 1)
    split = split_transition_error(found.system, found.wrong)
    assert split.seen == 0
    assert split.total == split.unseen == pytest.approx(a**4 + b**4)
    np.testing.assert_allclose(split.D_K_Delta, [[-(a**2), -(b**2), 0]])
    assert split.later == pytest.approx(found.errors[2])
    assert split.free_dim == 1


def test_the_paper_s_example_is_obstructed_from_the_second_step_on():
    found = make_counterexample(diagonal_system([a, b], [c]), 1)
    one, two = (find_obstruction(found.system, found.wrong, H) for H in (1, 2))
    assert (one.by_rank, one.by_row_space, len(one.missing)) == (False, False, 0)
    assert (two.required_rank, two.available_rank) == (2, 1)
    assert two.by_rank and two.by_row_space
    # Orthogonal to row(K B) = span (a, b, 0) and within the span of the outputs.
    expected = np.array([b, -a, 0]) / np.hypot(a, b)
    assert abs(two.missing[0] @ expected) == pytest.approx(1)


def test_rows_can_be_missing_where_the_rank_suffices():
    system = diagonal_system([a, b], [c])
    r = Realisation(np.eye(3)[[0, 2]], [[1.0, 0.0]], np.diag([a, c]))
    found = find_obstruction(system, r, 2)
    assert not found.by_rank and found.by_row_space
    np.testing.assert_allclose(np.abs(found.missing), [[0, 1, 0]], atol=1e-12)


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_what_predicts_through_a_horizon_is_not_obstructed_there_and_the_shift_is_after(horizon):
    found = make_counterexample(cyclic_system(horizon), horizon)
    for r, limit in ((found.wrong, horizon), (found.exact, 3 * horizon)):
        for h in range(1, limit + 1):
            assert not find_obstruction(found.system, r, h).by_row_space
    assert find_obstruction(found.system, found.wrong, horizon + 1).by_rank


def test_refusals():
    system = diagonal_system([a, b], [c])
    with pytest.raises(InputError, match=r"`horizon` = 3 stores m \(H \+ 1\) = 4 .* n = 3"):
        make_counterexample(system, 3)
    with pytest.raises(InputError, match="`horizon` = -1 must be a whole number of at least 0"):
        cyclic_system(-1)
    r = Realisation(np.eye(2, 3), [[1.0, 0.5]], np.eye(2))
    with pytest.raises(InputError, match=r"`r` must have an exact readout.* = 0.5$"):
        split_transition_error(system, r)
    with pytest.raises(InputError, match="`horizon` = 0 must be a whole number of at least 1"):
        find_obstruction(system, r, 0)
