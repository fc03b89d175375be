"""The analytic gradients and their differentials are those of automatic differentiation."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_points import draw_weights, examples
from random_systems import draw_realisation, draw_system, pairs

from tampl.theory.gradients import (
    Perturbation,
    encoder_differential,
    encoder_gradient,
    joint_gradient,
    reconstruction_gradient,
    transition_differential,
    transition_gradient,
)
from tampl.theory.linear import LinearSystem, Realisation, T, Weights, transition_residual

CLOSE = {"rtol": 1e-11, "atol": 1e-11}


def tensors(*matrices):
    return [torch.tensor(matrix, dtype=torch.float64) for matrix in matrices]


def square(M, Sigma):
    return torch.trace(M @ Sigma @ M.T)


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
        np.testing.assert_allclose(ours, theirs, **CLOSE)


@examples(60)
@given(pairs())
def test_encoder_gradient_is_autograds_with_the_target_detached(pair):
    system, r, rng = pair
    weights, target = draw_weights(rng), rng.standard_normal(r.B.shape)
    K, fixed = tensors(r.K, target)
    loss = encoder_loss(system, weights)
    expected = autograd(lambda B, D: loss(B, D, K, fixed), r.B, r.D)
    found = encoder_gradient(system, r, weights, target)
    np.testing.assert_allclose(found.B, expected[0], **CLOSE)
    np.testing.assert_allclose(found.D, expected[1], **CLOSE)
    assert found.K.shape == r.K.shape and not found.K.any()


@examples(60)
@given(pairs())
def test_transition_gradient_is_autograds(pair):
    system, r, rng = pair
    weights = draw_weights(rng)
    A, Sigma, B = tensors(system.A, system.Sigma, r.B)
    (expected,) = autograd(lambda K: weights.tr * square(K @ B - B @ A, Sigma), r.K)
    found = transition_gradient(system, r, weights)
    np.testing.assert_allclose(found.K, expected, **CLOSE)
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
        np.testing.assert_allclose(ours, theirs, **CLOSE)


@examples(40)
@given(pairs())
def test_detaching_the_target_drops_only_the_term_with_the_dynamics(pair):
    system, r, rng = pair
    weights = draw_weights(rng)
    detached, joint = encoder_gradient(system, r, weights, r.B), joint_gradient(system, r, weights)
    missing = 2 * weights.tr * transition_residual(system, r) @ system.Sigma @ T(system.A)
    np.testing.assert_allclose(detached.B - missing, joint.B, **CLOSE)
    np.testing.assert_allclose(detached.D, joint.D, **CLOSE)


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
    np.testing.assert_allclose(found.B, g_B.numpy(), **CLOSE)
    np.testing.assert_allclose(found.D, g_D.numpy(), **CLOSE)
    found = transition_differential(system, r, weights, v)
    np.testing.assert_allclose(found.K, g_K.numpy(), **CLOSE)


def test_a_batch_is_its_members():
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
                np.testing.assert_allclose(getattr(batch, name)[i], getattr(single, name), **CLOSE)
        g_B, g_G = reconstruction_gradient(one, model.B, G[i], weights)
        np.testing.assert_allclose(decoder[0][i], g_B, **CLOSE)
        np.testing.assert_allclose(decoder[1][i], g_G, **CLOSE)
