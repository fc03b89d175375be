"""The update rules are what torch's SGD does with the losses of the paper."""

import numpy as np
import pytest
import torch
from hypothesis import given
from random_points import draw_weights, exact_pairs, examples, rounds
from random_systems import draw_realisation, draw_system, pairs

from tampl.errors import InputError
from tampl.theory.linear import LinearSystem, Realisation, Weights, joint_loss
from tampl.theory.updates import Round, joint_step, recon_joint_step, tampl_round

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
