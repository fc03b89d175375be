"""Exact realisations exist where the invariant row spaces say, and are exact where they exist."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_systems import SEEDS, draw_change, draw_system, pairs
from scipy import linalg, optimize

from tampl.errors import InputError
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    norm2,
    rollout_error,
    transition_residual,
)
from tampl.theory.realisability import (
    NoRealisationError,
    closure_misfit,
    is_exact,
    latent_covariance,
    observable_row_space,
    realise,
    require_exact,
    require_full_rank,
    shift_model,
)


def rotation(angle, size=1.0):
    return size * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def hide(rng, observed, rest, m=1):
    """A dense system of which y sees `observed` and nothing of `rest`, and the rows it sees."""
    r, n = len(observed), len(observed) + len(rest)
    A = linalg.block_diag(observed, rest)
    A[r:, :r] = 0.3 * rng.standard_normal((len(rest), r))
    C = np.concatenate([rng.uniform(0.5, 1.5, (m, r)), np.zeros((m, n - r))], axis=1)
    S = draw_change(rng, n)
    inverse = np.linalg.inv(S)
    Sigma = draw_system(rng, n, 1).Sigma
    return LinearSystem(S @ A @ inverse, C @ inverse, Sigma), inverse[:r]


def angle(rows, others):
    return np.max(linalg.subspace_angles(rows.T, others.T))


@given(SEEDS, st.integers(1, 4), st.integers(0, 3), st.integers(1, 2))
@settings(max_examples=60, deadline=None)
def test_the_row_space_is_the_one_that_the_output_sees(seed, r, hidden, m):
    rng = np.random.default_rng(seed)
    observed = np.diag(np.linspace(-0.8, 0.9, r) if r > 1 else [0.7])
    system, rows = hide(rng, observed, np.diag(rng.uniform(-1, 1, hidden)), m)
    basis = observable_row_space(system)
    assert basis.shape == (r, r + hidden)
    np.testing.assert_allclose(basis @ basis.T, np.eye(r), atol=1e-12)
    assert angle(basis, rows) < 1e-6
    stack = [system.C @ np.linalg.matrix_power(system.A, h) for h in range(system.n)]
    assert np.linalg.matrix_rank(np.concatenate(stack), tol=1e-9) == r


@given(SEEDS, st.integers(1, 3), st.integers(0, 3), st.integers(0, 2))
@settings(max_examples=80, deadline=None)
def test_every_dimension_is_realised_exactly_or_refused_for_parity(seed, r, singles, pairs):
    rng = np.random.default_rng(seed)
    blocks = [rotation(rng.uniform(0.5, 2.5), rng.uniform(0.3, 1)) for _ in range(pairs)]
    rest = linalg.block_diag(*blocks, np.diag(rng.uniform(-1, 1, singles)))
    rest = rest.reshape(2 * pairs + singles, -1) if rest.size else np.empty((0, 0))
    system, rows = hide(rng, np.diag(rng.permutation([0.9, 0.4, -0.6])[:r]), rest)
    for d in range(r, system.n + 1):
        if (d - r) % 2 and not singles:
            with pytest.raises(NoRealisationError, match="by an even number: no exact realis"):
                realise(system, d)
            continue
        model = realise(system, d)
        assert model.latent_dim == d
        require_exact(system, model)
        require_full_rank(system, model.B)
        np.testing.assert_allclose(model.B @ model.B.T, np.eye(d), atol=1e-10)
        np.testing.assert_allclose(rollout_error(system, model, 20), 0, atol=1e-18)
        # The rows that the output sees are among those of every realisation.
        np.testing.assert_allclose(rows @ model.B.T @ model.B, rows, atol=1e-7)


def test_the_paper_s_example_needs_two_dimensions():
    system = LinearSystem(np.diag([0.9, 0.5, 0.3]), [[1.0, 1.0, 0.0]], np.eye(3))
    model = realise(system)
    assert model.latent_dim == 2
    assert angle(model.B, np.eye(2, 3)) < 1e-12
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(model.K)), [0.5, 0.9])


def test_an_output_of_too_small_a_model_stays_wrong():
    """Brute force: no model with one latent coordinate fits the outputs that need two."""
    system = LinearSystem(np.diag([0.9, 0.5, 0.3]), [[1.0, 1.0, 0.0]], np.eye(3))

    def error(flat, d):
        B, D, K = np.split(flat, [3 * d, 4 * d])
        model = Realisation(B.reshape(d, 3), D.reshape(1, d), K.reshape(d, d))
        return np.sum(rollout_error(system, model, 3))

    def best(d):
        rng = np.random.default_rng(0)
        starts = rng.standard_normal((6, 4 * d + d * d))
        return min(optimize.minimize(error, start, args=(d,)).fun for start in starts)

    assert best(1) > 1e-2
    assert best(2) < 1e-9


def test_the_longest_lived_directions_are_added_first():
    system = LinearSystem(np.diag([0.5, 0.2, -0.95, 0.8]), [[1.0, 0, 0, 0]], np.eye(4))
    for d, added in ((2, [-0.95]), (3, [-0.95, 0.8]), (4, [-0.95, 0.8, 0.2])):
        eigenvalues = np.linalg.eigvals(realise(system, d).K)
        np.testing.assert_allclose(np.sort(eigenvalues), np.sort([0.5, *added]))


def test_a_pair_takes_the_place_of_a_single_where_only_that_fits():
    A = linalg.block_diag(0.5, 0.9, rotation(1.0, 0.4), rotation(2.0, 0.3))
    system = LinearSystem(A, np.eye(1, 6), np.eye(6))
    assert sorted(np.abs(np.linalg.eigvals(realise(system, 2).K))) == pytest.approx([0.5, 0.9])
    # Two more places: 0.9 and half a pair cannot be, so one of the pairs comes without 0.9.
    assert sorted(np.abs(np.linalg.eigvals(realise(system, 3).K))) == pytest.approx(
        [0.4, 0.4, 0.5]
    )


@given(SEEDS, st.integers(2, 3))
@settings(max_examples=40, deadline=None)
def test_a_defective_eigenvalue_is_not_taken_for_a_complex_pair(seed, multiplicity):
    rng = np.random.default_rng(seed)
    n = multiplicity + 1
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = Q @ linalg.block_diag(0.7 * np.eye(n - 1) + np.eye(n - 1, k=1), 0.2) @ Q.T
    system = LinearSystem(A, Q[:, n - 1 :].T, np.eye(n))
    for d in range(1, n + 1):
        require_exact(system, realise(system, d))


def test_an_output_that_is_nothing_takes_any_invariant_space():
    system = LinearSystem(np.diag([0.5, 0.9]), np.zeros((1, 2)), np.eye(2))
    assert observable_row_space(system).shape == (0, 2)
    np.testing.assert_allclose(realise(system).K, [[0.9]])


@given(SEEDS, st.floats(1e-3, 1e3))
@settings(max_examples=40, deadline=None)
def test_exactness_does_not_depend_on_coordinates(seed, alpha):
    rng = np.random.default_rng(seed)
    system = draw_system(rng, 4, 1)
    exact, S = realise(system), alpha * draw_change(rng, 4)
    assert is_exact(system, exact.change(S))
    wrong = Realisation(exact.B, exact.D, exact.K + 1e-6 * np.eye(4))
    assert not is_exact(system, wrong.change(S))


@given(SEEDS, st.floats(0.0, 6.0), st.booleans())
@settings(max_examples=60, deadline=None)
def test_skewed_coordinates_neither_hide_an_error_nor_make_one(seed, decades, turned):
    rng = np.random.default_rng(seed)
    system = LinearSystem(
        np.diag([0.5, 0.4, 0.2]), [[1.0, 0.5, 0.0]], draw_system(rng, 3, 1).Sigma
    )
    exact, S = realise(system), np.diag([1.0, 10.0**decades])
    if turned:
        left, right = (np.linalg.qr(rng.standard_normal((2, 2)))[0] for _ in range(2))
        S = left @ S @ right
    assert is_exact(system, exact.change(S))
    for K, D in ((exact.K + 0.01 * np.eye(2), exact.D), (exact.K, 1.01 * exact.D)):
        assert not is_exact(system, Realisation(exact.B, D, K).change(S))


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_misfit_of_a_model_that_is_not_closed_is_the_same_in_all_coordinates(seed, d):
    rng = np.random.default_rng(seed)
    system, B = draw_system(rng, 4, 1), np.eye(d, 4) + 0.1 * rng.standard_normal((d, 4))
    r = Realisation(B, np.zeros((1, d)), rng.standard_normal((d, d)))
    first, last = (closure_misfit(system, q) for q in (r, r.change(10 * draw_change(rng, d))))
    assert last.size == pytest.approx(first.size) and last.scale == pytest.approx(first.scale)
    # By the definition, with the symmetric root of C_B.
    values, vectors = np.linalg.eigh(B @ system.Sigma @ B.T)
    whiten = vectors @ np.diag(values**-0.5) @ vectors.T
    expected = whiten @ (r.K @ B - B @ system.A) @ system.root
    assert first.size == pytest.approx(np.linalg.norm(expected, 2))


def test_a_large_latent_row_hides_no_error():
    system = LinearSystem(np.diag([0.5, 0.4, 0.2]), np.eye(1, 3), np.eye(3))
    B = np.diag([1.0, 1e9, 1.0])[:2]
    K = np.diag([0.5, 0.4])
    assert is_exact(system, Realisation(B, [[1.0, 0.0]], K))
    assert not is_exact(system, Realisation(B, [[0.5, 0.0]], K))
    assert not is_exact(system, Realisation(B, [[1.0, 0.0]], np.diag([0.6, 0.4])))
    assert not is_exact(system, Realisation(B[::-1], [[0.0, 1.0]], np.diag([0.4, 0.6])))


def test_models_without_full_rank_or_finite_entries_are_judged_too():
    system = LinearSystem(np.diag([0.5, 0.4]), [[1.0, 0.0]], np.eye(2))
    twice = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert is_exact(system, Realisation(twice, [[0.5, 0.5]], np.diag([0.5, 0.5])))
    assert not is_exact(system, Realisation(twice, [[0.5, 0.5]], np.diag([0.5, 0.4])))
    assert not is_exact(system, Realisation(np.zeros((1, 2)), [[1.0]], [[0.5]]))
    assert not is_exact(system, Realisation(np.eye(2), [[1.0, np.nan]], system.A))
    assert not is_exact(system, Realisation(np.eye(2), [[1.0, 0.0]], np.full((2, 2), np.inf)))


def test_one_wrong_member_makes_a_batch_inexact():
    system = LinearSystem(np.diag([0.9, 0.5]), [[1.0, 1.0]], np.eye(2))
    model = realise(system)
    K = np.stack([model.K, model.K + 0.1 * np.eye(2)])
    assert is_exact(system, Realisation(model.B, model.D, K[:1]))
    assert not is_exact(system, Realisation(model.B, model.D, K))


def test_refusals_name_the_argument_and_the_size():
    system = LinearSystem(np.diag([0.9, 0.5, 0.3]), [[1.0, 1.0, 0.0]], np.eye(3))
    with pytest.raises(NoRealisationError, match="`latent_dim` = 1 must be at least 2") as refusal:
        realise(system, 1)
    reason = "the smallest A-invariant row space that contains row(C) has dimension 2"
    assert refusal.value.reason == reason
    assert str(refusal.value).endswith(f": no exact realisation is smaller, since {reason}")
    with pytest.raises(InputError, match="`latent_dim` = 4 must be at most n = 3"):
        realise(system, 4)
    with pytest.raises(InputError, match="`latent_dim` = 0 must be a whole number of at least 1"):
        realise(system, 0)
    turning = LinearSystem(linalg.block_diag(0.5, rotation(1.0)), np.eye(1, 3), np.eye(3))
    with pytest.raises(NoRealisationError, match=r"= 2 must .* the other 2 .* part 0.841\)"):
        realise(turning, 2)
    batch = LinearSystem(np.ones((2, 3, 3)), np.eye(1, 3), np.eye(3))
    with pytest.raises(InputError, match=r"`A` must be one matrix .* \(2, 3, 3\)"):
        realise(batch)
    model = realise(system)
    wrong = Realisation(model.B, 1.5 * model.D, model.K)
    message = r"`start` must be an exact .* = 0.707 and \|\|K B - B A\|\|_Sigma = "
    with pytest.raises(InputError, match=message):
        require_exact(system, wrong, "start")
    with pytest.raises(InputError, match=r"`B` must have full row rank 2; .* is 0, its largest 1"):
        require_full_rank(system, np.diag([1.0, 0.0, 0.0])[:2])


def test_the_latent_covariance_is_weighted_by_that_of_the_source():
    system = LinearSystem(np.eye(2), [[1.0, 0.0]], np.diag([4.0, 1.0]))
    np.testing.assert_allclose(latent_covariance(system, [[1.0, 1.0]]), [[5.0]])
    with pytest.raises(InputError, match="`B` must have full row rank 2"):
        latent_covariance(system, [[1.0, 1.0], [2.0, 2.0]])
    with pytest.raises(InputError, match="`B` must be finite"):
        latent_covariance(system, [[1.0, np.nan]])
    with pytest.raises(InputError, match="`B` must have n = 2 columns"):
        latent_covariance(system, [[1.0]])


# Macrostates through a horizon do not determine the next one; closed latent states do.


def rank(M):
    return np.linalg.matrix_rank(M, rtol=1e-10)


def test_the_paper_s_counterexample():
    a, b = 0.9, 0.4
    system = LinearSystem(np.diag([a, b, 0.6]), [[1.0, 1.0, 0.0]], np.eye(3))
    model = shift_model(system, 1)
    np.testing.assert_array_equal(model.B, [[1, 1, 0], [a, b, 0]])
    np.testing.assert_array_equal(model.K, [[0, 1], [0, 0]])
    np.testing.assert_array_equal(model.D, [[1, 0]])
    np.testing.assert_allclose(rollout_error(system, model, 2), [0, 0, a**4 + b**4])
    for h in (2, 3, 7):
        np.testing.assert_array_equal(model.macro(h), np.zeros((1, 3)))
    assert is_exact(system, realise(system, 2))
    # One step sees D Delta = 0, the second D K Delta; row(K B) has lost what it needs.
    Delta = transition_residual(system, model)
    np.testing.assert_array_equal(model.D @ Delta, np.zeros((1, 3)))
    np.testing.assert_allclose(model.D @ model.K @ Delta, [[-(a**2), -(b**2), 0]])
    assert (rank(model.B), rank(model.K @ model.B)) == (2, 1)


@pytest.mark.parametrize("horizon", [0, 1, 2, 3, 5, 10, 40])
def test_a_counterexample_for_any_horizon_at_a_dimension_that_suffices(horizon):
    """H + 1 coordinates pass their value on in a circle, the first observed, and one hidden."""
    n = horizon + 2
    cycle = np.roll(np.eye(horizon + 1), 1, axis=1)
    system = LinearSystem(0.9 * linalg.block_diag(cycle, [[0.5]]), np.eye(1, n), np.eye(n))
    wrong, exact = shift_model(system, horizon), realise(system)
    assert wrong.latent_dim == exact.latent_dim == horizon + 1
    assert is_exact(system, exact)
    np.testing.assert_allclose(rollout_error(system, exact, 3 * horizon), 0, atol=1e-18)
    errors = rollout_error(system, wrong, horizon + 1)
    np.testing.assert_array_equal(errors[:-1], 0)
    np.testing.assert_allclose(errors[-1], 0.9 ** (2 * (horizon + 1)))
    assert (rank(wrong.B), rank(wrong.K @ wrong.B)) == (horizon + 1, horizon)


@given(SEEDS, st.integers(0, 3), st.integers(1, 2), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_any_system_has_a_counterexample_where_its_outputs_fit(seed, horizon, m, extra):
    system = draw_system(np.random.default_rng(seed), m * (horizon + 1) + extra, m)
    errors = rollout_error(system, shift_model(system, horizon), horizon + 1)
    truth = system.C @ np.linalg.matrix_power(system.A, horizon + 1)
    np.testing.assert_allclose(errors[:-1], 0, atol=1e-24)
    np.testing.assert_allclose(errors[-1], norm2(truth, system.Sigma))


@given(SEEDS, st.integers(1, 5), st.integers(1, 2))
@settings(max_examples=30, deadline=None)
def test_closed_latent_states_with_an_exact_readout_are_right_for_ever(seed, n, m):
    system = draw_system(np.random.default_rng(seed), n, m)
    truth = [norm2(system.C @ np.linalg.matrix_power(system.A, h), system.Sigma) for h in (0, 30)]
    assert np.max(rollout_error(system, realise(system), 30)) <= 1e-16 * (1 + max(truth))


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_one_step_sees_d_delta_and_two_see_d_k_delta(pair):
    system, r, rng = pair
    system = LinearSystem(system.A, r.D @ r.B, system.Sigma)
    # Columns of Delta in ker D, which a change of K in ker D makes, are free for one step.
    free = np.eye(r.latent_dim) - np.linalg.pinv(r.D) @ r.D
    other = Realisation(r.B, r.D, r.K + free @ rng.standard_normal(r.K.shape))
    np.testing.assert_allclose(other.macro(1), r.macro(1), atol=1e-9)
    Delta = transition_residual(system, r)
    one = r.macro(1) - system.C @ system.A
    two = r.macro(2) - system.C @ system.A @ system.A
    np.testing.assert_allclose(r.D @ Delta, one, atol=1e-10)
    np.testing.assert_allclose(r.D @ r.K @ Delta + r.D @ Delta @ system.A, two, atol=1e-9)


def test_horizons_that_cannot_be_stored_are_refused():
    system = LinearSystem(np.eye(3), np.eye(1, 3), np.eye(3))
    with pytest.raises(InputError, match=r"`horizon` = 3 stores m \(H \+ 1\) = 4 .* n = 3"):
        shift_model(system, 3)
    with pytest.raises(InputError, match="`horizon` = -1 must be a whole number of at least 0"):
        shift_model(system, -1)
