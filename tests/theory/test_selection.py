"""The spectral theorem against brute force, and the weights at which a direction is lost."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_systems import SEEDS, draw_system, pairs
from scipy import linalg, optimize

from tampl.errors import InputError
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    Weights,
    current_loss,
    norm2,
    reconstruction_loss,
    transition_loss,
)
from tampl.theory.selection import (
    find_threshold,
    kept_variance,
    run_selection,
    select,
    spectral_matrix,
    two_dimensional_system,
    two_dimensional_threshold,
)

WEIGHTS = Weights(cur=1.3, rec=0.4)
WEIGHT = st.just(0.0) | st.floats(1e-3, 5)


def objective(system, B, D, G, weights):
    current = weights.cur * norm2(D @ B - system.C, system.Sigma)
    return current + weights.rec * reconstruction_loss(system, B, G)


def minimise(system, d, weights, start):
    """The least objective over all of (B, D, G) by quasi-Newton steps, and the encoder there."""
    shapes = [(d, system.n), (system.m, d), (system.n, d)]
    cuts = np.cumsum([np.prod(shape) for shape in shapes])[:-1]

    def unpack(flat):
        parts = np.split(flat, cuts)
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def value_and_gradient(flat):
        B, D, G = unpack(flat)
        E = weights.cur * (D @ B - system.C) @ system.Sigma
        F = weights.rec * (G @ B - np.eye(system.n)) @ system.Sigma
        gradients = [2 * (D.T @ E + G.T @ F), 2 * E @ B.T, 2 * F @ B.T]
        return objective(system, B, D, G, weights), np.concatenate([g.ravel() for g in gradients])

    found = optimize.minimize(value_and_gradient, start, jac=True, tol=1e-14)
    return found.fun, unpack(found.x)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "m", "d"), [(3, 1, 1), (4, 2, 2), (5, 2, 3)])
def test_brute_force_finds_the_selected_space_and_nothing_below_it(seed, n, m, d):
    rng = np.random.default_rng(seed)
    system = draw_system(rng, n, m)
    selection = select(system, WEIGHTS, latent_dim=d)
    starts = rng.standard_normal((4, d * n + m * d + n * d))
    loss, B = min((minimise(system, d, WEIGHTS, start) for start in starts), key=lambda p: p[0])
    assert loss == pytest.approx(float(selection.loss), rel=1e-10)
    assert selection.unique
    angles = linalg.subspace_angles((B @ system.root).T, selection.basis.T)
    assert np.max(angles) < 1e-6


@given(pairs(), WEIGHT, WEIGHT)
@settings(max_examples=60, deadline=None)
def test_what_is_selected_attains_the_loss_and_no_encoder_is_below_it(pair, cur, rec):
    system, r, _ = pair
    weights = Weights(cur=cur, rec=rec)
    selection = select(system, weights, latent_dim=r.latent_dim)
    eye = np.eye(r.latent_dim)
    np.testing.assert_allclose(selection.B @ system.Sigma @ selection.B.T, eye, atol=1e-9)
    scale = np.trace(spectral_matrix(system, weights))
    np.testing.assert_allclose(
        objective(system, selection.B, selection.D, selection.G, weights),
        selection.loss,
        atol=1e-9 * scale,
    )
    # The best readout and decoder of another encoder, by least squares.
    X = (r.B @ system.root).T
    D, G = (np.linalg.lstsq(X, (M @ system.root).T)[0].T for M in (system.C, np.eye(system.n)))
    assert objective(system, r.B, D, G, weights) >= selection.loss - 1e-9 * scale


def test_the_ends_are_prediction_alone_and_principal_components():
    system = draw_system(np.random.default_rng(0), 6, 2)
    task = select(system, Weights(cur=1.0), latent_dim=2)
    np.testing.assert_allclose(task.loss, 0, atol=1e-12)
    r = Realisation(task.B, task.D, np.zeros((2, 2)))
    np.testing.assert_allclose(current_loss(system, r), 0, atol=1e-20)
    principal = select(system, Weights(cur=0.0, rec=2.0), latent_dim=2)
    values, vectors = np.linalg.eigh(system.Sigma)
    assert np.max(linalg.subspace_angles(principal.basis.T, vectors[:, -2:])) < 1e-7
    np.testing.assert_allclose(principal.loss, 2 * np.sum(values[:-2]))


def test_a_batch_of_systems_is_selected_at_once():
    rng = np.random.default_rng(1)
    systems = draw_system(rng, 4, 1, (3,))
    selection = select(systems, WEIGHTS, latent_dim=2)
    for i in range(3):
        one = LinearSystem(systems.A[i], systems.C[i], systems.Sigma[i])
        np.testing.assert_allclose(
            selection.loss[i], select(one, WEIGHTS, latent_dim=2).loss, atol=1e-12
        )


@given(
    st.floats(0.1, 3),
    st.floats(0.1, 3),
    st.floats(1.01, 5),
    st.floats(0.1, 3),
    st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(max_examples=25, deadline=None)
def test_the_two_dimensional_threshold_is_where_the_choice_changes(c, variance, ratio, cur, part):
    settings_ = {"variance_u": variance, "variance_n": ratio * variance}
    system = two_dimensional_system(c, **settings_)
    rec = two_dimensional_threshold(c, **settings_, cur=cur)
    for factor, expected in ((0.999, [1, 0]), (1.001, [0, 1])):
        selection = select(system, Weights(cur=cur, rec=factor * rec), latent_dim=1)
        np.testing.assert_allclose(np.abs(selection.basis), [expected], atol=1e-9)
        # Either coordinate is closed, so that the transition loss removes neither choice.
        r = Realisation(selection.B, selection.D, selection.B @ system.A @ selection.G)
        np.testing.assert_allclose(transition_loss(system, r), 0, atol=1e-18)
    assert not select(system, Weights(cur=cur, rec=rec), latent_dim=1).unique
    found = find_threshold(system, [1.0, 0.0], latent_dim=1, cur=cur, fraction=part)
    assert found.rec == pytest.approx(rec, rel=1e-9)
    assert (found.kept_before, found.kept_after, found.kept_last) == pytest.approx((1, 0, 0))


def test_the_threshold_is_infinite_where_the_task_has_the_larger_variance():
    assert two_dimensional_threshold(1.0, variance_u=2.0, variance_n=2.0) == np.inf
    system = two_dimensional_system(1.0, variance_u=2.0, variance_n=1.0)
    assert find_threshold(system, [1.0, 0.0], latent_dim=1).rec == np.inf
    lost = find_threshold(system, [0.0, 1.0], latent_dim=1)
    assert (lost.rec, lost.kept_before) == (0.0, 0.0)


def test_roundoff_of_large_weights_loses_nothing():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    for faint, Sigma in itertools.product((1e-3, 1e-4, 2e-5), (np.eye(5), Q @ Q.T)):
        C = np.diag([1.0, faint]) @ np.eye(2, 5) @ Q.T
        system = LinearSystem(np.eye(5), C, Sigma)
        for row in C:
            found = find_threshold(system, row, latent_dim=2)
            assert found.rec == np.inf
            assert 1 < found.searched < np.inf
            assert found.kept_before == found.kept_last == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("excess", [1e-2, 1e-4, 2e-6])
def test_variances_that_hardly_differ_have_a_far_threshold(excess):
    system = LinearSystem(np.eye(2), np.array([[1.0, 0.0]]), np.diag([1.0, 1.0 + excess]))
    found = find_threshold(system, [1.0, 0.0], latent_dim=1)
    assert found.rec == pytest.approx(1 / excess, rel=1e-15 / excess + 1e-9)
    assert (found.kept_before, found.kept_after, found.kept_last) == pytest.approx((1, 0, 0))
    assert found.searched > found.rec


def test_a_faint_observable_has_a_near_threshold():
    system = LinearSystem(np.eye(3), np.diag([1.0, 1e-4, 0.0])[:2], np.diag([1.0, 1.0, 2.0]))
    found = find_threshold(system, system.C[1], latent_dim=2)
    assert found.rec == pytest.approx(1e-8, rel=1e-4)
    assert (found.kept_before, found.kept_after) == pytest.approx((1, 0))


def test_without_room_a_direction_is_lost_at_once():
    system = LinearSystem(np.eye(3), np.diag([1.0, 0.5, 0.1]), np.eye(3))
    found = [find_threshold(system, row, latent_dim=2) for row in system.C]
    assert [threshold.rec for threshold in found] == [np.inf, np.inf, 0.0]
    assert [threshold.kept_last for threshold in found] == pytest.approx([1, 1, 0])


def test_equal_variances_leave_the_choice_to_the_task():
    Sigma = np.diag([3.0, 1.0, 1.0, 1.0])
    system = LinearSystem(np.eye(4), np.array([[0.0, 1.0, 0.0, 0.0]]), Sigma)
    kept = find_threshold(system, system.C[0], latent_dim=2)
    assert (kept.rec, kept.kept_last) == (np.inf, pytest.approx(1))
    lost = find_threshold(system, system.C[0], latent_dim=1)
    assert (lost.rec, lost.kept_last) == (pytest.approx(0.5), pytest.approx(0))


@given(SEEDS, st.integers(1, 4), st.floats(0.3, 2))
@settings(max_examples=25, deadline=None)
def test_a_rotated_task_is_lost_when_enough_variances_overtake_it(seed, d, c):
    rng = np.random.default_rng(seed)
    others = np.sort(rng.uniform(1.2, 3, 5))[::-1]
    Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    system = LinearSystem(np.eye(6), c * Q[:, :1].T, Q @ np.diag([1.0, *others]) @ Q.T)
    found = find_threshold(system, system.C[0], latent_dim=d)
    assert found.rec == pytest.approx(c**2 / (others[d - 1] - 1), rel=1e-10)
    assert found.kept_before == pytest.approx(1, abs=1e-6)
    assert found.kept_after == pytest.approx(0, abs=1e-6)


@given(SEEDS, st.integers(1, 4), st.floats(0.3, 0.95))
@settings(max_examples=25, deadline=None)
def test_one_observable_is_kept_less_and_less_and_the_threshold_is_where_it_falls(seed, d, part):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((5, 5))
    system = LinearSystem(np.eye(5), rng.standard_normal((1, 5)), root @ root.T + 0.1 * np.eye(5))

    def kept(rec):
        B = select(system, Weights(rec=rec), latent_dim=d).B
        return kept_variance(system, B, system.C[0])

    curve = [kept(rec) for rec in np.logspace(-4, 4, 60)]
    assert np.max(np.diff(curve)) < 1e-8
    found = find_threshold(system, system.C[0], latent_dim=d, fraction=part)
    if np.isinf(found.rec):
        assert kept(1e6) >= part - 1e-6
    else:
        assert kept(0.999 * found.rec) >= part - 1e-9 > kept(1.001 * found.rec) - 2e-9


def test_kept_variance_is_the_coefficient_of_determination():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 200))
    system = LinearSystem(np.eye(4), np.ones((1, 4)), x @ x.T / 200)
    B, q = rng.standard_normal((2, 4)), rng.standard_normal(4)
    rest = q @ x - np.linalg.lstsq((B @ x).T, q @ x)[0] @ B @ x
    expected = 1 - np.sum(rest**2) / np.sum((q @ x) ** 2)
    assert kept_variance(system, B, q) == pytest.approx(expected)


def test_selection_changes_at_the_threshold():
    found = run_selection(2.0, variance_u=0.5, variance_n=2.0, cur=3.0)
    assert found.threshold == pytest.approx(3.0 * 4.0 * 0.5 / 1.5)
    below = found.rec < found.threshold
    np.testing.assert_allclose(found.kept, below, atol=1e-12)
    np.testing.assert_allclose(found.l_cur, np.where(below, 0.0, 2.0), atol=1e-12)
    np.testing.assert_allclose(found.l_rec, np.where(below, 2.0, 0.5), atol=1e-12)
    u, n = found.eigenvalues.T
    np.testing.assert_array_equal(u > n, below)


def test_a_quiet_irrelevant_coordinate_is_never_selected():
    found = run_selection(variance_n=0.5)
    assert found.threshold == np.inf
    np.testing.assert_allclose(found.kept, 1.0)


def test_refusals():
    system = two_dimensional_system(1.0, variance_u=1.0, variance_n=2.0)
    with pytest.raises(InputError, match="`latent_dim` = 3 must be at most n = 2"):
        select(system, WEIGHTS, latent_dim=3)
    with pytest.raises(InputError, match="`latent_dim` = 0 must be a whole number of at least 1"):
        find_threshold(system, [1.0, 0.0], latent_dim=0)
    with pytest.raises(InputError, match=r"`direction` must be .* n = 2 .* shape is \(1, 3\)"):
        find_threshold(system, [1.0, 0.0, 0.0], latent_dim=1)
    with pytest.raises(InputError, match=r"`direction` must be .* not zero; .* its norm 0"):
        kept_variance(system, np.eye(1, 2), [0.0, 0.0])
    with pytest.raises(InputError, match=r"`fraction` = 1.5 must be above 0 and at most 1"):
        find_threshold(system, [1.0, 0.0], latent_dim=1, fraction=1.5)
    with pytest.raises(InputError, match=r"`cur` = 0.0 and `C` must not be zero"):
        find_threshold(system, [1.0, 0.0], latent_dim=1, cur=0.0)
    with pytest.raises(InputError, match="`B` must have full row rank 2"):
        kept_variance(system, np.ones((2, 2)), [1.0, 0.0])
    for name in ("variance_u", "variance_n"):
        variances = {"variance_u": 1.0, "variance_n": 1.0} | {name: -1.0}
        with pytest.raises(InputError, match=rf"`{name}` = -1.0 must be a positive"):
            two_dimensional_threshold(1.0, **variances)
    for c in (0.0, np.nan):
        with pytest.raises(InputError, match=f"`c` = {c} must be finite and not zero"):
            two_dimensional_threshold(c, variance_u=1.0, variance_n=1.0)
