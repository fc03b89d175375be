"""Fixed coordinates have one best transition; a fixed target holds the scale of the encoder."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_systems import draw_realisation, draw_system, draw_weights, examples, pairs

from tampl.errors import InputError
from tampl.theory.certificates.anchoring import fit_transition, optimal_transition, scale_anchoring
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    Weights,
    norm2,
    transition_loss,
)
from tampl.theory.updates import encoder_gradient, joint_gradient, transition_gradient

CLOSE = {"rtol": 1e-8, "atol": 1e-9}


@examples(60)
@given(pairs())
def test_the_best_transition_is_that_of_least_squares(pair):
    system, r, _ = pair
    expected = np.linalg.lstsq((r.B @ system.root).T, (r.B @ system.A @ system.root).T)[0].T
    np.testing.assert_allclose(optimal_transition(system, r.B), expected, rtol=1e-6, atol=1e-8)


@examples(60)
@given(pairs())
def test_the_loss_decomposes_and_the_excess_is_bracketed(pair):
    system, r, rng = pair
    fit = fit_transition(system, r, draw_weights(rng))
    np.testing.assert_allclose(fit.minimum + fit.excess, fit.loss, **CLOSE)
    np.testing.assert_allclose(fit.loss, transition_loss(system, r), **CLOSE)
    slack = 1e-10 * fit.loss
    assert fit.beta * fit.distance**2 <= fit.excess + slack
    assert fit.excess <= fit.Lambda * fit.distance**2 + slack


@examples(60)
@given(pairs(), st.floats(0.05, 3.0))
def test_one_step_moves_the_transition_as_the_lemma_says(pair, share):
    system, r, rng = pair
    weights = draw_weights(rng)
    mu = share * fit_transition(system, r, weights).step_bound
    fit = fit_transition(system, r, weights, mu)
    moved = r.K - mu * transition_gradient(system, r, weights).K
    C_B = r.B @ system.Sigma @ r.B.T
    expected = (r.K - fit.K_star) @ (np.eye(r.latent_dim) - 2 * weights.tr * mu * C_B)
    np.testing.assert_allclose(moved - fit.K_star, expected, rtol=1e-7, atol=1e-8)
    distance = np.linalg.norm(moved - fit.K_star)
    assert distance <= fit.factor * fit.distance + 1e-9 * (1 + fit.distance)
    if share <= 1:
        assert fit.factor == pytest.approx(1 - 2 * weights.tr * mu * fit.beta, abs=1e-12)
        assert fit.verdict == "contracts" or fit.beta < 1e-10 * fit.Lambda


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.5, "contracts"), (1.5, "contracts"), (2.0, "undecided"), (2.5, "diverges")],
)
def test_repeated_steps_do_what_the_verdict_says(share, verdict):
    rng = np.random.default_rng(0)
    system, r = draw_system(rng, 5, 1), draw_realisation(rng, 5, 1, 3)
    mu = share * fit_transition(system, r, Weights()).step_bound
    fit = fit_transition(system, r, Weights(), float(mu))
    assert fit.verdict == verdict and f"{mu:.4g}" in fit.words
    assert ("within" if share <= 1 else "beyond") in fit.words
    for _ in range(400):
        r = replace(r, K=r.K - mu * transition_gradient(system, r, Weights()).K)
    distance = np.linalg.norm(r.K - fit.K_star) / fit.distance
    expected = {"contracts": distance < 0.1, "diverges": distance > 10}
    assert expected.get(verdict, 1e-3 < distance <= 1.0)


@examples(60)
@given(pairs(), st.floats(-2.0, 3.0))
def test_at_the_best_transition_leaving_the_scale_costs_its_square(pair, alpha):
    system, r, _ = pair
    r = replace(r, K=optimal_transition(system, r.B))
    KB, BA = r.K @ r.B, r.B @ system.A
    anchor = scale_anchoring(system, r)
    direct = norm2(alpha * KB - BA, system.Sigma)
    identity = norm2(KB - BA, system.Sigma) + (alpha - 1) ** 2 * norm2(KB, system.Sigma)
    np.testing.assert_allclose(direct, identity, **CLOSE)
    np.testing.assert_allclose(anchor.loss(alpha), direct, **CLOSE)
    assert anchor.verdict == "anchored"
    assert anchor.alpha_star == pytest.approx(1.0, abs=1e-6)


@examples(60)
@given(pairs())
def test_along_the_ray_the_loss_goes_to_its_limit_and_not_below_its_least(pair):
    system, r, _ = pair
    anchor = scale_anchoring(system, r)
    alphas = np.linspace(-1.0, 3.0, 41)
    direct = [norm2(a * r.K @ r.B - r.B @ system.A, system.Sigma) for a in alphas]
    np.testing.assert_allclose(anchor.loss(alphas), direct, **CLOSE)
    np.testing.assert_allclose(anchor.loss(0.0), anchor.limit, **CLOSE)
    assert np.all(anchor.loss(anchor.alpha_star) <= np.array(direct) + 1e-9 * anchor.limit)


@examples(60)
@given(pairs())
def test_against_the_best_transition_the_encoder_shrinks(pair):
    system, r, _ = pair
    anchor = scale_anchoring(system, replace(r, K=-optimal_transition(system, r.B)))
    assert anchor.verdict == "shrinks"
    assert anchor.alpha_star == pytest.approx(-1.0, abs=1e-6)


@examples(60)
@given(pairs())
def test_twice_the_cross_term_and_the_loss_are_radial_components_of_the_gradients(pair):
    system, r, _ = pair
    anchor, weights = scale_anchoring(system, r), Weights(cur=0.0)
    detached = np.sum(r.B * encoder_gradient(system, r, weights, r.B).B)
    np.testing.assert_allclose(2 * anchor.cross, detached, **CLOSE)
    joint = np.sum(r.B * joint_gradient(system, r, weights).B)
    np.testing.assert_allclose(2 * anchor.loss_at_target, joint, **CLOSE)


def test_the_four_verdicts_on_the_scale():
    system = LinearSystem(np.diag([0.5, 0.2]), [[1.0, 0.0]], np.eye(2))
    model = lambda k: Realisation([[2.0, 0.0]], [[1.0]], [[k]])
    best = scale_anchoring(system, model(0.5))
    assert best.verdict == "anchored" and best.limit == 1.0 and "goes to 1" in best.words
    half = scale_anchoring(system, model(1.0))
    assert half.verdict == "displaced" and half.alpha_star == pytest.approx(0.5)
    assert half.loss_at_target == pytest.approx(1.0)
    # However little of the next state the encoder predicts, twice the scale is not the scale.
    weak = LinearSystem([[1e-6, 1.0], [0.0, 0.0]], [[1.0, 0.0]], np.eye(2))
    twice = scale_anchoring(weak, model(0.5e-6))
    assert twice.verdict == "displaced" and twice.alpha_star == pytest.approx(2.0)
    back = scale_anchoring(system, model(-0.5))
    assert back.verdict == "shrinks" and back.alpha_star == pytest.approx(-1.0)
    assert "does not hold" in back.words and "goes to 1" in back.words
    still = LinearSystem(np.zeros((2, 2)), [[1.0, 0.0]], np.eye(2))
    nothing = scale_anchoring(still, model(0.5))
    assert nothing.verdict == "shrinks" and nothing.alpha_star == 0 and nothing.limit == 0
    assert "goes to" not in nothing.words
    # The best transition is zero but for rounding where A turns the encoder out of itself.
    turn = LinearSystem([[0.3, -0.9], [0.9, -0.3]], [[1.0, 0.0]], np.eye(2))
    lost = Realisation([[1.0, 1.0]], [[1.0]], optimal_transition(turn, np.array([[1.0, 1.0]])))
    assert scale_anchoring(turn, lost).verdict == "free"
    none = scale_anchoring(system, model(0.0))
    assert none.verdict == "free" and np.isnan(none.alpha_star) and "does not hold" in none.words


def test_a_batch_is_its_members():
    rng = np.random.default_rng(2)
    system, r = draw_system(rng, 5, 2, (3,)), draw_realisation(rng, 5, 2, 3, (3,))
    fits, anchors = fit_transition(system, r, Weights()), scale_anchoring(system, r)
    for i in range(3):
        one = LinearSystem(system.A[i], system.C[i], system.Sigma[i])
        model = Realisation(r.B[i], r.D[i], r.K[i])
        fit, anchor = fit_transition(one, model, Weights()), scale_anchoring(one, model)
        np.testing.assert_allclose(fits.K_star[i], fit.K_star, **CLOSE)
        assert (fits.verdict[i], fits.words[i]) == (fit.verdict, fit.words)
        assert (anchors.verdict[i], anchors.words[i]) == (anchor.verdict, anchor.words)


def test_bad_input_is_refused():
    rng = np.random.default_rng(4)
    system, r = draw_system(rng, 4, 1), draw_realisation(rng, 4, 1, 2)
    twice = replace(r, B=np.vstack([r.B[0], r.B[0]]))
    with pytest.raises(InputError, match="`B` must have full row rank 2"):
        optimal_transition(system, twice.B)
    with pytest.raises(InputError, match=r"`r\.B` must have full row rank 2"):
        fit_transition(system, twice, Weights())
    with pytest.raises(InputError, match="`B` must have n = 4 columns"):
        optimal_transition(system, r.B[:, :3])
    with pytest.raises(InputError, match="`mu` = -1"):
        fit_transition(system, r, Weights(), -1.0)
    with pytest.raises(InputError, match=r"`weights\.tr` = 0"):
        fit_transition(system, r, Weights(tr=0.0))
