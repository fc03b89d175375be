"""Joint descent shrinks the latent scale, and a small scale starves the transition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_systems import draw_realisation, draw_system, pairs
from scipy import optimize

from tampl.errors import InputError
from tampl.theory.gradients import joint_gradient
from tampl.theory.joint import (
    bound_directions,
    bound_transition_loss,
    norm_change,
    radial_identities,
    scale,
    scaled_transition_gradient,
    shrinking_step_bound,
)
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    Weights,
    joint_loss,
    transition_loss,
)

WEIGHTS = Weights(cur=0.8, tr=1.4)


def step(system, r, eta):
    G = joint_gradient(system, r, WEIGHTS)
    return Realisation(r.B - eta * G.B, r.D - eta * G.D, r.K - eta * G.K)


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_the_radial_identities_and_their_difference(pair):
    system, r, _ = pair
    radial = radial_identities(system, r, WEIGHTS)
    size = 1e-12 * (1 + np.abs(radial.current) + radial.transition)
    assert abs(radial.encoder - radial.current - radial.transition) < 10 * size
    assert abs(radial.readout - radial.current) < 10 * size
    difference = 2 * WEIGHTS.tr * transition_loss(system, r)
    np.testing.assert_allclose(radial.encoder - radial.readout, difference, atol=10 * size)


@given(pairs())
@settings(max_examples=30, deadline=None)
def test_the_radial_products_are_the_slopes_of_the_loss_along_the_rays(pair):
    """L_joint is quadratic along each ray, so that a central difference is its slope."""
    system, r, _ = pair
    radial = radial_identities(system, r, WEIGHTS)
    up, down = 1.25, 0.75
    for name, slope in (("B", radial.encoder), ("D", radial.readout)):
        ends = [
            joint_loss(system, Realisation(**(vars(r) | {name: s * getattr(r, name)})), WEIGHTS)
            for s in (up, down)
        ]
        np.testing.assert_allclose((ends[0] - ends[1]) / (up - down), slope, atol=1e-8)


@given(pairs(), st.floats(1e-4, 1))
@settings(max_examples=40, deadline=None)
def test_the_change_of_the_encoder_norm_is_that_of_the_step(pair, eta):
    system, r, _ = pair
    change = np.sum(step(system, r, eta).B ** 2) - np.sum(r.B**2)
    np.testing.assert_allclose(norm_change(system, r, WEIGHTS, eta), change, atol=1e-9, rtol=1e-8)


@given(pairs(), st.floats(0.01, 0.99))
@settings(max_examples=60, deadline=None)
def test_steps_below_the_bound_shrink_the_encoder_and_steps_above_do_not(pair, part):
    system, r, _ = pair
    bound = shrinking_step_bound(system, r, WEIGHTS)
    radial = radial_identities(system, r, WEIGHTS).encoder
    assert (bound > 0) == (radial > 0)
    if bound > 0:
        assert np.sum(step(system, r, part * bound).B ** 2) < np.sum(r.B**2)
        assert np.sum(step(system, r, bound / part).B ** 2) > np.sum(r.B**2)
    else:
        assert np.sum(step(system, r, part).B ** 2) > np.sum(r.B**2)


@given(pairs())
@settings(max_examples=30, deadline=None)
def test_an_exact_readout_with_an_open_transition_must_shrink(pair):
    system, r, _ = pair
    system = LinearSystem(system.A, r.D @ r.B, system.Sigma)
    assert shrinking_step_bound(system, r, WEIGHTS) > 0
    np.testing.assert_allclose(
        radial_identities(system, r, WEIGHTS).encoder,
        2 * WEIGHTS.tr * transition_loss(system, r),
    )


@given(pairs(), st.floats(1e-3, 1e3))
@settings(max_examples=40, deadline=None)
def test_the_scaling_ray_keeps_predictions_and_lowers_the_loss_quadratically(pair, alpha):
    system, r, _ = pair
    system = LinearSystem(system.A, r.D @ r.B, system.Sigma)
    scaled = scale(r, alpha)
    for h in range(4):
        np.testing.assert_allclose(scaled.macro(h), r.macro(h), atol=1e-10)
    expected = WEIGHTS.tr * alpha**2 * transition_loss(system, r)
    np.testing.assert_allclose(joint_loss(system, scaled, WEIGHTS), expected, rtol=1e-9)
    changed = r.change(alpha * np.eye(r.latent_dim))
    for name in ("B", "D", "K"):
        np.testing.assert_allclose(getattr(scaled, name), getattr(changed, name))


@given(pairs(), st.floats(1e-3, 1e3))
@settings(max_examples=40, deadline=None)
def test_the_transition_gradient_weakens_quadratically(pair, alpha):
    system, r, _ = pair
    expected = joint_gradient(system, scale(r, alpha), WEIGHTS).K
    found = scaled_transition_gradient(system, r, WEIGHTS, alpha)
    np.testing.assert_allclose(found, expected, atol=1e-9 * alpha**2)
    at_one = scaled_transition_gradient(system, r, WEIGHTS, 1.0)
    np.testing.assert_allclose(found, alpha**2 * at_one)


def test_a_whole_ray_is_one_batch():
    rng = np.random.default_rng(0)
    system, r = draw_system(rng, 4, 1), draw_realisation(rng, 4, 1, 2)
    alpha = np.logspace(-3, 0, 7)
    losses = transition_loss(system, scale(r, alpha))
    np.testing.assert_allclose(losses, alpha**2 * transition_loss(system, r))
    assert scaled_transition_gradient(system, r, WEIGHTS, alpha).shape == (7, 2, 2)
    assert shrinking_step_bound(system, scale(r, alpha), WEIGHTS).shape == (7,)
    assert bound_directions(system, scale(r, alpha), WEIGHTS).bounds.shape == (7, 2)


@given(pairs(), st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_no_direction_has_a_larger_gradient_than_its_scale_allows(pair, digits):
    system, r, _ = pair
    # The first latent coordinate is made as small as one likes.
    shrink = np.ones((r.latent_dim, 1))
    shrink[0] = 10.0**-digits
    r = Realisation(shrink * r.B, r.D, r.K)
    found = bound_directions(system, r, WEIGHTS)
    # Eigenvalues carry an absolute error, and their roots the root of it.
    roundoff = 1e-7 * (1 + np.max(found.bounds))
    assert np.all(found.gradients <= found.bounds + roundoff)
    U = found.directions
    np.testing.assert_allclose(U.T @ U, np.eye(r.latent_dim), atol=1e-12)
    covariance = U.T @ r.B @ system.Sigma @ r.B.T @ U
    roundoff = 1e-12 * (1 + np.trace(covariance))
    np.testing.assert_allclose(np.diag(covariance), found.scales**2, atol=roundoff)


def test_the_bound_of_a_direction_is_attained_in_one_dimension():
    system = LinearSystem([[0.3]], [[1.0]], [[2.0]])
    found = bound_directions(system, Realisation([[0.7]], [[1.0]], [[0.9]]), WEIGHTS)
    np.testing.assert_allclose(found.gradients, found.bounds)


@given(pairs())
@settings(max_examples=40, deadline=None)
def test_the_gradient_bounds_the_transition_loss(pair):
    system, r, _ = pair
    loss = transition_loss(system, r)
    assert bound_transition_loss(system, r, WEIGHTS) >= loss * (1 - 1e-9)


def test_stationary_points_are_closed_even_where_they_are_wrong():
    """The paper's incorrect solution (B_0, 0, K_0): stationary, closed, blind to the task."""
    system = LinearSystem(np.diag([0.9, 0.5, 0.2]), np.eye(1, 3), np.eye(3))
    r = Realisation(np.eye(3)[1:], np.zeros((1, 2)), np.diag([0.5, 0.2]))
    assert bound_transition_loss(system, r, WEIGHTS) == 0
    assert transition_loss(system, r) == 0
    assert joint_loss(system, r, WEIGHTS) == WEIGHTS.cur
    assert shrinking_step_bound(system, r, WEIGHTS) == 0


@pytest.mark.parametrize("seed", range(5))
def test_every_stationary_point_that_is_searched_for_is_closed(seed):
    """Brute force: zeros of the gradient by a general solver, where d = n leaves some to find."""
    rng = np.random.default_rng(seed)
    system, start = draw_system(rng, 2, 1), draw_realisation(rng, 2, 1, 2)

    def unpack(flat):
        B, D, K = np.split(flat, [4, 6])
        return Realisation(B.reshape(2, 2), D.reshape(1, 2), K.reshape(2, 2))

    def gradient(flat):
        G = joint_gradient(system, unpack(flat), WEIGHTS)
        return np.concatenate([G.B.ravel(), G.D.ravel(), G.K.ravel()])

    flat = np.concatenate([start.B.ravel(), start.D.ravel(), start.K.ravel()])
    found = optimize.least_squares(gradient, flat, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    r = unpack(found.x)
    assert np.linalg.norm(gradient(found.x)) < 1e-6
    assert transition_loss(system, r) <= bound_transition_loss(system, r, WEIGHTS) < 1e-5


def test_refusals():
    rng = np.random.default_rng(0)
    system, r = draw_system(rng, 3, 1), draw_realisation(rng, 3, 1, 2)
    with pytest.raises(InputError, match=r"`alpha` must be positive; its smallest value is -0.5"):
        scale(r, np.array([1.0, -0.5]))
    with pytest.raises(InputError, match="`alpha` must be positive; its smallest value is 0"):
        scaled_transition_gradient(system, r, WEIGHTS, 0.0)
    with pytest.raises(InputError, match="`weights` must have tr > 0"):
        bound_transition_loss(system, r, Weights(tr=0.0))
