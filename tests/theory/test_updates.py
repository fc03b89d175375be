"""Gradients are those of autograd, update rules those of torch's SGD; joint descent shrinks."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_systems import (
    draw_realisation,
    draw_system,
    draw_weights,
    exact_pairs,
    examples,
    pairs,
    rounds,
)
from scipy import optimize

from tampl.errors import InputError
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    T,
    Weights,
    current_residual,
    inner,
    joint_loss,
    transition_loss,
    transition_residual,
)
from tampl.theory.updates import (
    Perturbation,
    Round,
    encoder_differential,
    encoder_gradient,
    joint_gradient,
    joint_step,
    recon_joint_step,
    reconstruction_gradient,
    shrinking_step_bound,
    tampl_round,
    transition_differential,
    transition_gradient,
)

CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def leaves(*matrices):
    return [torch.tensor(M, dtype=torch.float64, requires_grad=True) for M in matrices]


def square(M, Sigma):
    return torch.trace(M @ Sigma @ M.T)


def sgd(parameters, loss, lr):
    optimizer = torch.optim.SGD(parameters, lr=lr)
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


def assert_same(r, matrices):
    for ours, theirs in zip((r.B, r.D, r.K), matrices, strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), **CLOSE)


@examples(30)
@given(pairs(), rounds())
def test_a_round_is_sgd_with_a_detached_target_then_sgd_of_the_transition(pair, schedule):
    system, r, rng = pair
    weights = draw_weights(rng)
    A, C, Sigma = (M.detach() for M in leaves(system.A, system.C, system.Sigma))
    B, D, K = leaves(r.B, r.D, r.K)
    target = B.detach().clone()
    for _ in range(schedule.encoder_steps):
        loss = lambda: (
            weights.cur * square(D @ B - C, Sigma)
            + weights.tr * square(K.detach() @ B - target @ A, Sigma)
        )
        sgd([B, D], loss, schedule.mu_encoder)
    frozen = B.detach()
    fit = lambda: weights.tr * square(K @ frozen - frozen @ A, Sigma)
    for _ in range(schedule.transition_steps):
        sgd([K], fit, schedule.mu_transition)
    assert_same(tampl_round(system, r, weights, schedule), (B, D, K))


@examples(30)
@given(pairs())
def test_joint_steps_are_sgd(pair):
    system, r, rng = pair
    weights = Weights(0.7, 1.3, rec=0.4)
    G = rng.standard_normal(r.B.shape[::-1])
    A, C, Sigma = (M.detach() for M in leaves(system.A, system.C, system.Sigma))
    joint = lambda B, D, K: (
        weights.cur * square(D @ B - C, Sigma) + weights.tr * square(K @ B - B @ A, Sigma)
    )
    plain = leaves(r.B, r.D, r.K)
    sgd(plain, lambda: joint(*plain), 0.01)
    assert_same(joint_step(system, r, weights, 0.01), plain)
    *model, decoder = leaves(r.B, r.D, r.K, G)
    eye = torch.eye(system.n, dtype=torch.float64)
    loss = lambda: joint(*model) + weights.rec * square(decoder @ model[0] - eye, Sigma)
    sgd([*model, decoder], loss, 0.01)
    moved, decoded = recon_joint_step(system, r, G, weights, 0.01)
    assert_same(moved, model)
    np.testing.assert_allclose(decoded, decoder.detach().numpy(), **CLOSE)


@examples(30)
@given(exact_pairs(), rounds())
def test_exact_realisations_stand_still(case, schedule):
    system, r, weights, _ = case
    for moved in (tampl_round(system, r, weights, schedule), joint_step(system, r, weights, 0.01)):
        for name in "BDK":
            np.testing.assert_allclose(getattr(moved, name), getattr(r, name), atol=1e-12)


@examples(30)
@given(pairs(), rounds())
def test_rounds_and_steps_commute_with_rotations_of_the_latent_space(pair, schedule):
    system, r, rng = pair
    S = np.linalg.qr(rng.standard_normal((r.latent_dim, r.latent_dim)))[0]
    weights = draw_weights(rng)
    for rule in (
        lambda r: tampl_round(system, r, weights, schedule),
        lambda r: joint_step(system, r, weights, 0.01),
    ):
        first, last = rule(r.change(S)), rule(r).change(S)
        for name in "BDK":
            np.testing.assert_allclose(getattr(first, name), getattr(last, name), **CLOSE)


@examples(30)
@given(pairs())
def test_a_small_joint_step_lowers_the_joint_loss(pair):
    system, r, rng = pair
    weights = draw_weights(rng)
    assert joint_loss(system, joint_step(system, r, weights, 1e-6), weights) < joint_loss(
        system, r, weights
    )


def test_a_batch_is_its_members():
    rng = np.random.default_rng(1)
    system, r = draw_system(rng, 5, 2, (3,)), draw_realisation(rng, 5, 2, 3, (3,))
    weights, G = Weights(rec=1.0), rng.standard_normal((3, 5, 3))
    schedule = Round(encoder_steps=2, transition_steps=3, mu_encoder=0.01, mu_transition=0.02)
    moved = tampl_round(system, r, weights, schedule)
    joint, (recon, decoded) = (
        joint_step(system, r, weights, 0.01),
        recon_joint_step(system, r, G, weights, 0.01),
    )
    for i in range(3):
        one = LinearSystem(system.A[i], system.C[i], system.Sigma[i])
        model = Realisation(r.B[i], r.D[i], r.K[i])
        single, decoder = recon_joint_step(one, model, G[i], weights, 0.01)
        np.testing.assert_allclose(decoded[i], decoder, **CLOSE)
        for name in "BDK":
            for batch, member in (
                (moved, tampl_round(one, model, weights, schedule)),
                (joint, joint_step(one, model, weights, 0.01)),
                (recon, single),
            ):
                np.testing.assert_allclose(getattr(batch, name)[i], getattr(member, name), **CLOSE)


@pytest.mark.parametrize(
    ("name", "value"),
    [("encoder_steps", 0), ("transition_steps", -1), ("transition_steps", 1.5)],
)
def test_rounds_without_steps_are_refused(name, value):
    with pytest.raises(InputError, match=f"`{name}` = {value}"):
        Round(**{name: value}, mu_encoder=0.1, mu_transition=0.1)


@pytest.mark.parametrize("value", [0.0, -0.1, np.inf, np.nan])
@pytest.mark.parametrize("name", ["mu_encoder", "mu_transition"])
def test_step_sizes_that_are_none_are_refused(name, value):
    sizes = {"mu_encoder": 0.1, "mu_transition": 0.1, name: value}
    with pytest.raises(InputError, match=f"`{name}` = .*positive"):
        Round(**sizes)


TIGHT = {"rtol": 1e-11, "atol": 1e-11}


def tensors(*matrices):
    return [torch.tensor(matrix, dtype=torch.float64) for matrix in matrices]


def encoder_loss(system, weights):
    """L_enc(B, D; K, target) written for torch from its definition."""
    A, C, Sigma = tensors(system.A, system.C, system.Sigma)

    def loss(B, D, K, target):
        current = square(D @ B - C, Sigma)
        return weights.cur * current + weights.tr * square(K @ B - target @ A, Sigma)

    return loss


def autograd(loss, *matrices):
    leaves = [leaf.requires_grad_() for leaf in tensors(*matrices)]
    return [g.numpy() for g in torch.autograd.grad(loss(*leaves), leaves)]


@examples(60)
@given(pairs())
def test_joint_gradient_is_autograds(pair):
    system, r, rng = pair
    weights = draw_weights(rng)
    loss = encoder_loss(system, weights)
    expected = autograd(lambda B, D, K: loss(B, D, K, B), r.B, r.D, r.K)
    found = joint_gradient(system, r, weights)
    for ours, theirs in zip((found.B, found.D, found.K), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, **TIGHT)


@examples(60)
@given(pairs())
def test_encoder_gradient_is_autograds_with_the_target_detached(pair):
    system, r, rng = pair
    weights, target = draw_weights(rng), rng.standard_normal(r.B.shape)
    K, fixed = tensors(r.K, target)
    loss = encoder_loss(system, weights)
    expected = autograd(lambda B, D: loss(B, D, K, fixed), r.B, r.D)
    found = encoder_gradient(system, r, weights, target)
    np.testing.assert_allclose(found.B, expected[0], **TIGHT)
    np.testing.assert_allclose(found.D, expected[1], **TIGHT)
    assert found.K.shape == r.K.shape and not found.K.any()


@examples(60)
@given(pairs())
def test_transition_gradient_is_autograds(pair):
    system, r, rng = pair
    weights = draw_weights(rng)
    A, Sigma, B = tensors(system.A, system.Sigma, r.B)
    (expected,) = autograd(lambda K: weights.tr * square(K @ B - B @ A, Sigma), r.K)
    found = transition_gradient(system, r, weights)
    np.testing.assert_allclose(found.K, expected, **TIGHT)
    assert not found.B.any() and not found.D.any()


@examples(60)
@given(pairs(), st.floats(0.0, 3.0))
def test_reconstruction_gradient_is_autograds(pair, rec):
    system, r, rng = pair
    G = rng.standard_normal(r.B.shape[::-1])
    (Sigma,) = tensors(system.Sigma)
    eye = torch.eye(system.n, dtype=torch.float64)
    expected = autograd(lambda B, G: rec * square(G @ B - eye, Sigma), r.B, G)
    found = reconstruction_gradient(system, r.B, G, Weights(rec=rec))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, **TIGHT)


@examples(40)
@given(pairs())
def test_detaching_the_target_drops_only_the_term_with_the_dynamics(pair):
    system, r, rng = pair
    weights = draw_weights(rng)
    detached, joint = encoder_gradient(system, r, weights, r.B), joint_gradient(system, r, weights)
    missing = 2 * weights.tr * transition_residual(system, r) @ system.Sigma @ T(system.A)
    np.testing.assert_allclose(detached.B - missing, joint.B, **TIGHT)
    np.testing.assert_allclose(detached.D, joint.D, **TIGHT)


@examples(40)
@given(pairs())
def test_differentials_are_those_of_autograd(pair):
    system, r, rng = pair
    weights, target = draw_weights(rng), rng.standard_normal(r.B.shape)
    v = Perturbation(*(rng.standard_normal(M.shape) for M in (r.B, r.D, r.K)))
    moved = rng.standard_normal(r.B.shape)
    loss = encoder_loss(system, weights)

    def gradients(B, D, K, target):
        # Of L_enc in (B, D), and of L_joint in K.
        descend = torch.autograd.grad(loss(B, D, K, target), (B, D), create_graph=True)
        return *descend, *torch.autograd.grad(loss(B, D, K, B), (K,), create_graph=True)

    point, change = tensors(r.B, r.D, r.K, target), tensors(v.U, v.V, v.W, moved)
    _, (g_B, g_D, g_K) = torch.autograd.functional.jvp(gradients, tuple(point), tuple(change))
    found = encoder_differential(system, r, weights, target=target, change=v, target_change=moved)
    np.testing.assert_allclose(found.B, g_B.numpy(), **TIGHT)
    np.testing.assert_allclose(found.D, g_D.numpy(), **TIGHT)
    found = transition_differential(system, r, weights, v)
    np.testing.assert_allclose(found.K, g_K.numpy(), **TIGHT)


def test_gradients_of_a_batch_are_those_of_its_members():
    rng = np.random.default_rng(0)
    system, r = draw_system(rng, 5, 2, (3,)), draw_realisation(rng, 5, 2, 3, (3,))
    weights, target = Weights(0.7, 1.3, rec=0.4), rng.standard_normal((3, 3, 5))
    G = rng.standard_normal((3, 5, 3))
    joint = joint_gradient(system, r, weights)
    encoder = encoder_gradient(system, r, weights, target)
    transition = transition_gradient(system, r, weights)
    decoder = reconstruction_gradient(system, r.B, G, weights)
    for i in range(3):
        one = LinearSystem(system.A[i], system.C[i], system.Sigma[i])
        model = Realisation(r.B[i], r.D[i], r.K[i])
        members = (
            (joint, joint_gradient(one, model, weights)),
            (encoder, encoder_gradient(one, model, weights, target[i])),
            (transition, transition_gradient(one, model, weights)),
        )
        for batch, single in members:
            for name in "BDK":
                np.testing.assert_allclose(getattr(batch, name)[i], getattr(single, name), **TIGHT)
        g_B, g_G = reconstruction_gradient(one, model.B, G[i], weights)
        np.testing.assert_allclose(decoder[0][i], g_B, **TIGHT)
        np.testing.assert_allclose(decoder[1][i], g_G, **TIGHT)


WEIGHTS = Weights(cur=0.8, tr=1.4)


def dot(M, N):
    return np.sum(M * N, axis=(-2, -1))


@examples(60)
@given(pairs())
def test_the_radial_components_of_the_joint_gradient(pair):
    """<B, g_B> - <D, g_D> = 2 lambda_tr L_tr: every stationary point is closed."""
    system, r, _ = pair
    g = joint_gradient(system, r, WEIGHTS)
    current = 2 * WEIGHTS.cur * inner(r.D @ r.B, current_residual(system, r), system.Sigma)
    transition = 2 * WEIGHTS.tr * transition_loss(system, r)
    size = 1e-11 * (1 + np.abs(current) + transition)
    np.testing.assert_allclose(dot(r.B, g.B), current + transition, atol=size)
    np.testing.assert_allclose(dot(r.D, g.D), current, atol=size)


@examples(60)
@given(pairs(), st.floats(0.01, 0.99))
def test_steps_below_the_bound_shrink_the_encoder_and_steps_above_do_not(pair, part):
    system, r, _ = pair
    bound = shrinking_step_bound(system, r, WEIGHTS)
    assert (bound > 0) == (dot(r.B, joint_gradient(system, r, WEIGHTS).B) > 0)
    size = lambda eta: np.sum(joint_step(system, r, WEIGHTS, eta).B ** 2)
    if bound > 0:
        assert size(part * bound) < np.sum(r.B**2) < size(bound / part)
    else:
        assert size(part) > np.sum(r.B**2)


@examples(30)
@given(pairs(), st.floats(1e-3, 1e3))
def test_an_exact_readout_with_an_open_transition_shrinks_and_learns_less(pair, alpha):
    """Scaling the encoder keeps predictions, lowers L_tr by alpha^2 and the gradient of K too."""
    system, r, _ = pair
    system = LinearSystem(system.A, r.D @ r.B, system.Sigma)
    assert shrinking_step_bound(system, r, WEIGHTS) > 0
    scaled = r.change(alpha * np.eye(r.latent_dim))
    np.testing.assert_allclose(
        joint_loss(system, scaled, WEIGHTS), alpha**2 * joint_loss(system, r, WEIGHTS), rtol=1e-9
    )
    for h in range(4):
        np.testing.assert_allclose(scaled.macro(h), r.macro(h), atol=1e-10)
    found, expected = (joint_gradient(system, q, WEIGHTS).K for q in (scaled, r))
    np.testing.assert_allclose(found, alpha**2 * expected, atol=1e-9 * alpha**2)


@examples(60)
@given(pairs(), st.integers(0, 12))
def test_no_direction_has_a_larger_gradient_than_its_scale_allows(pair, digits):
    """||g_K u|| <= 2 lambda_tr s sqrt(L_tr) for eigenvectors u of B Sigma B^T, eigenvalue s^2."""
    system, r, _ = pair
    # The first latent coordinate is made as small as one likes.
    r = Realisation(np.vstack([10.0**-digits * r.B[:1], r.B[1:]]), r.D, r.K)
    values, directions = np.linalg.eigh(r.B @ system.Sigma @ r.B.T)
    bounds = np.sqrt(np.maximum(values, 0.0) * transition_loss(system, r)) * 2 * WEIGHTS.tr
    gradients = np.linalg.norm(joint_gradient(system, r, WEIGHTS).K @ directions, axis=0)
    # Eigenvalues carry an absolute error, and their roots the root of it.
    assert np.all(gradients <= bounds + 1e-7 * (1 + np.max(bounds)))


def test_a_stationary_point_is_closed_even_where_it_is_wrong():
    """The paper's incorrect solution (B_0, 0, K_0): stationary, closed, blind to the task."""
    system = LinearSystem(np.diag([0.9, 0.5, 0.2]), np.eye(1, 3), np.eye(3))
    r = Realisation(np.eye(3)[1:], np.zeros((1, 2)), np.diag([0.5, 0.2]))
    g = joint_gradient(system, r, WEIGHTS)
    assert not (g.B.any() or g.D.any() or g.K.any())
    assert transition_loss(system, r) == shrinking_step_bound(system, r, WEIGHTS) == 0
    assert joint_loss(system, r, WEIGHTS) == WEIGHTS.cur


@pytest.mark.parametrize("seed", range(5))
def test_every_stationary_point_that_is_searched_for_is_closed(seed):
    """Brute force: zeros of the gradient by a general solver, where d = n leaves some to find."""
    rng = np.random.default_rng(seed)
    system, start = draw_system(rng, 2, 1), draw_realisation(rng, 2, 1, 2)

    def unpack(flat):
        B, D, K = np.split(flat, [4, 6])
        return Realisation(B.reshape(2, 2), D.reshape(1, 2), K.reshape(2, 2))

    def gradient(flat):
        g = joint_gradient(system, unpack(flat), WEIGHTS)
        return np.concatenate([g.B.ravel(), g.D.ravel(), g.K.ravel()])

    flat = np.concatenate([start.B.ravel(), start.D.ravel(), start.K.ravel()])
    found = optimize.least_squares(gradient, flat, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert np.linalg.norm(gradient(found.x)) < 1e-6
    assert transition_loss(system, unpack(found.x)) < 1e-5
