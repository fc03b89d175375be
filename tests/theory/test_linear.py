"""The losses are those of the definition and change with coordinates as the paper says."""

from pkgutil import iter_modules

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_systems import draw_change, draw_realisation, draw_system, pairs

from tampl import theory
from tampl.errors import InputError
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    T,
    Weights,
    current_loss,
    current_residual,
    inner,
    joint_loss,
    norm2,
    reconstruction_loss,
    residual,
    rollout_error,
    transition_loss,
    transition_residual,
)


@given(pairs())
@settings(max_examples=40, deadline=None)
def test_losses_are_means_of_squared_errors_over_source_states(pair):
    _, r, rng = pair
    x = rng.standard_normal((r.B.shape[1], 50))
    system = LinearSystem(
        rng.standard_normal((len(x), len(x))),
        rng.standard_normal((len(r.D), len(x))),
        x @ x.T / x.shape[1],
    )
    G = rng.standard_normal((len(x), r.latent_dim))
    x_next, z = system.A @ x, r.B @ x
    mean = lambda error: np.mean(np.sum(error**2, axis=0))
    cur, tr = mean(r.D @ z - system.C @ x), mean(r.K @ z - r.B @ x_next)
    np.testing.assert_allclose(current_loss(system, r), cur)
    np.testing.assert_allclose(transition_loss(system, r), tr)
    np.testing.assert_allclose(reconstruction_loss(system, r.B, G), mean(G @ z - x))
    weights = Weights(cur=0.7, tr=1.3)
    np.testing.assert_allclose(joint_loss(system, r, weights), 0.7 * cur + 1.3 * tr)


@given(pairs(), st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_a_coordinate_change_keeps_predictions_and_turns_the_transition_residual(pair, h):
    system, r, rng = pair
    S = draw_change(rng, r.latent_dim)
    changed = r.change(S)
    np.testing.assert_allclose(changed.macro(h), r.macro(h), atol=1e-9)
    np.testing.assert_allclose(
        rollout_error(system, changed, h), rollout_error(system, r, h), rtol=1e-8, atol=1e-9
    )
    turned = S @ transition_residual(system, r)
    np.testing.assert_allclose(transition_residual(system, changed), turned, atol=1e-10)
    np.testing.assert_allclose(transition_loss(system, changed), norm2(turned, system.Sigma))
    G = rng.standard_normal((system.n, r.latent_dim))
    np.testing.assert_allclose(
        reconstruction_loss(system, changed.B, G @ np.linalg.inv(S)),
        reconstruction_loss(system, r.B, G),
    )


@given(pairs())
@settings(max_examples=30, deadline=None)
def test_coordinate_changes_compose_and_invert(pair):
    _, r, rng = pair
    S, R = draw_change(rng, r.latent_dim), draw_change(rng, r.latent_dim)
    for one, other in (
        (r.change(S).change(R), r.change(R @ S)),
        (r.change(S).change(np.linalg.inv(S)), r),
    ):
        for name in ("B", "D", "K"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-10)


@given(pairs(), st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_the_rollout_error_telescopes_into_one_step_residuals(pair, h):
    system, r, _ = pair
    truth = system.C @ np.linalg.matrix_power(system.A, h)
    error = r.macro(h) - truth
    scale = 1 + np.abs(error).max()
    power = lambda M, q: np.linalg.matrix_power(M, q)
    Delta = transition_residual(system, r)
    parts = [power(r.K, h - 1 - q) @ Delta @ power(system.A, q) for q in range(h)]
    E = current_residual(system, r)
    telescoped = r.D @ sum(parts, np.zeros_like(Delta)) + E @ power(system.A, h)
    np.testing.assert_allclose(telescoped, error, atol=1e-10 * scale)
    np.testing.assert_allclose(rollout_error(system, r, h)[-1], norm2(error, system.Sigma))


@given(pairs())
@settings(max_examples=30, deadline=None)
def test_the_weighted_residual_has_the_joint_loss_as_its_square(pair):
    system, r, _ = pair
    weights = Weights(cur=0.3, tr=1.7)
    R = residual(system, r, weights)
    assert R.shape == (system.m + r.latent_dim, system.n)
    np.testing.assert_allclose(np.sum(R**2), joint_loss(system, r, weights))


@given(pairs())
@settings(max_examples=20, deadline=None)
def test_the_root_is_the_symmetric_one(pair):
    system, *_ = pair
    np.testing.assert_allclose(system.root @ system.root, system.Sigma)
    np.testing.assert_allclose(system.root, system.root.T)
    assert np.linalg.eigvalsh(system.root)[0] > 0


def test_the_inner_product_is_the_trace_of_the_definition():
    rng = np.random.default_rng(0)
    Sigma = draw_system(rng, 4, 1).Sigma
    M, N = rng.standard_normal((2, 3, 4))
    np.testing.assert_allclose(inner(M, N, Sigma), np.trace(M @ Sigma @ N.T))


def test_a_batch_is_its_members():
    rng = np.random.default_rng(1)
    systems, models = draw_system(rng, 5, 2, (2, 3)), draw_realisation(rng, 5, 2, 3, (2, 3))
    weights = Weights(cur=0.5, tr=2.0)
    for i in np.ndindex(2, 3):
        one = LinearSystem(systems.A[i], systems.C[i], systems.Sigma[i])
        r = Realisation(models.B[i], models.D[i], models.K[i])
        for loss in (joint_loss, residual):
            np.testing.assert_allclose(
                loss(systems, models, weights)[i], loss(one, r, weights), atol=1e-12
            )
        np.testing.assert_allclose(
            rollout_error(systems, models, 4)[i], rollout_error(one, r, 4), atol=1e-12
        )
        S = draw_change(rng, 3)
        np.testing.assert_allclose(models.change(S).K[i], r.change(S).K, atol=1e-12)


def test_what_the_members_share_need_not_be_repeated():
    rng = np.random.default_rng(2)
    many, one = draw_system(rng, 4, 1, (3,)), draw_system(rng, 4, 1)
    system, r = LinearSystem(many.A, one.C, one.Sigma), draw_realisation(rng, 4, 1, 2)
    assert rollout_error(system, r, 3).shape == (3, 4)
    assert residual(system, r, Weights()).shape == (3, 3, 4)


EYE = np.eye(3)
ROW = np.ones((1, 3))


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ((np.ones((3, 2)), ROW, EYE), "`A` must be square; it has 3 rows and 2 columns"),
        ((np.ones(3), ROW, EYE), r"`A` must be a matrix .* its shape is \(3,\)"),
        ((EYE * np.nan, ROW, EYE), "`A` must be finite; 9 of its 9 entries are not"),
        ((EYE, np.ones((1, 4)), EYE), "`C` must have n = 3 columns, as many as `A`; it has 4"),
        ((EYE, [["x", 1, 2]], EYE), "`C` must be a matrix of real numbers"),
        ((EYE, ROW, np.eye(2)), r"`Sigma` must be .* = \(3, 3\), .* its shape is \(2, 2\)"),
        ((EYE, ROW, EYE + np.triu(EYE[::-1])), "`Sigma` must be symmetric; .* up to 1$"),
        (
            (EYE, ROW, np.diag([1.0, 2.0, -0.25])),
            "`Sigma` must be positive definite; its smallest eigenvalue is -0.25",
        ),
        ((EYE, ROW, np.diag([1.0, 0.0, 1.0])), "positive definite; its smallest eigenvalue is 0"),
        (
            (EYE, ROW, np.stack([EYE, np.diag([1.0, 1.0, -2.0])])),
            "`Sigma` must be positive definite; its smallest eigenvalue is -2",
        ),
        (
            (np.ones((2, 3, 3)), np.ones((4, 1, 3)), EYE),
            r"leading axes must broadcast .* `A` \(2,\), `C` \(4,\), `Sigma` \(\)",
        ),
    ],
)
def test_what_is_no_system_is_refused(matrices, message):
    with pytest.raises(InputError, match=message) as caught:
        LinearSystem(*matrices)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ((np.ones((4, 3)), np.ones((1, 4)), np.eye(4)), "d <= n; here d = 4 and n = 3"),
        ((np.ones((2, 3)), np.ones((1, 3)), np.eye(2)), "`D` must have d = 2 columns.* it has 3"),
        ((np.ones((2, 3)), np.ones((1, 2)), np.eye(3)), r"`K` must be .* = \(2, 2\).* \(3, 3\)"),
        ((np.ones((0, 3)), np.ones((1, 0)), np.eye(0)), "`B` must be .* none of them empty"),
    ],
)
def test_what_is_no_realisation_is_refused(matrices, message):
    with pytest.raises(InputError, match=message):
        Realisation(*matrices)


def test_a_realisation_of_another_system_is_refused():
    system = LinearSystem(EYE, ROW, EYE)
    with pytest.raises(InputError, match="`B` must have n = 3 columns, as many as `A`; it has 4"):
        current_residual(system, Realisation(np.ones((2, 4)), np.ones((1, 2)), np.eye(2)))
    with pytest.raises(InputError, match="`D` must have m = 1 rows, as many as `C`; it has 2"):
        transition_loss(system, Realisation(np.ones((2, 3)), np.ones((2, 2)), np.eye(2)))


def test_other_wrong_arguments_are_refused():
    r = Realisation(np.eye(2, 3), np.ones((1, 2)), np.eye(2))
    with pytest.raises(InputError, match=r"`S` must be invertible; .* singular value is 0"):
        r.change(np.diag([1.0, 0.0]))
    with pytest.raises(InputError, match=r"`S` must be .* \(2, 2\), as `K` is"):
        r.change(EYE)
    with pytest.raises(InputError, match="`h` = -1 must be a whole number of at least 0"):
        r.macro(-1)
    with pytest.raises(InputError, match=r"`horizon` = 1.5 must be a whole number"):
        rollout_error(LinearSystem(EYE, ROW, EYE), r, 1.5)
    with pytest.raises(InputError, match=r"`tr` = -1.0 must be a finite weight of at least 0"):
        Weights(tr=-1.0)
    with pytest.raises(InputError, match="`rec` = nan must be a finite weight"):
        Weights(rec=float("nan"))
    Weights(cur=0.0).require_positive("tr")
    with pytest.raises(InputError, match=r"`weights\.cur` = 0\.0 must be positive"):
        Weights(cur=0.0).require_positive("tr", "cur")


def test_the_package_names_its_modules():
    assert sorted(theory.__all__) == sorted(m.name for m in iter_modules(theory.__path__))
    assert theory.linear.LinearSystem is LinearSystem
    with pytest.raises(AttributeError, match="has no attribute 'nonlinear'"):
        _ = theory.nonlinear


def test_transposition_is_by_matrix():
    M = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(T(M)[1], M[1].T)
