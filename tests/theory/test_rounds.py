"""The linearised round is the derivative of the actual one and foretells what rounds do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_points import draw_exact, draw_weights, exact_pairs, examples, perturb, rounds
from random_systems import SEEDS, draw_realisation, draw_system, pairs

from tampl.errors import InputError
from tampl.theory.certificates.convergence import linearise, normal_basis
from tampl.theory.certificates.rounds import (
    certify_rounds,
    quotient,
    round_jacobian,
    spectral_radius,
)
from tampl.theory.linear import LinearSystem, Realisation, Weights, residual
from tampl.theory.updates import Round, tampl_round


def finite_differences(system, r, weights, schedule, h=1e-5):
    """Central differences of `tampl_round` in every entry of (B, D, K)."""
    sizes = np.cumsum([r.B.size, r.D.size])
    theta = np.concatenate([M.ravel() for M in (r.B, r.D, r.K)])

    def image(vector):
        B, D, K = np.split(vector, sizes)
        start = Realisation(B.reshape(r.B.shape), D.reshape(r.D.shape), K.reshape(r.K.shape))
        end = tampl_round(system, start, weights, schedule)
        return np.concatenate([M.ravel() for M in (end.B, end.D, end.K)])

    units = h * np.eye(theta.size)
    return np.stack([(image(theta + e) - image(theta - e)) / (2 * h) for e in units], axis=-1)


def flat(r):
    return np.concatenate([M.ravel() for M in (r.B, r.D, r.K)])


def run(system, r, weights, schedule, count):
    """The end of a run and the norms of the residual on the way."""
    norms = []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(count):
            r = tampl_round(system, r, weights, schedule)
            norms.append(np.linalg.norm(residual(system, r, weights)))
    return r, np.array(norms)


@examples(40)
@given(exact_pairs(top=4), rounds())
def test_the_jacobian_at_an_exact_realisation_is_that_of_finite_differences(case, schedule):
    system, r, weights, _ = case
    expected = finite_differences(system, r, weights, schedule)
    found = round_jacobian(system, r, weights, schedule)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.max(np.abs(expected)))


@examples(40)
@given(pairs(), rounds(top=0.02))
def test_the_jacobian_at_any_point_is_that_of_finite_differences(pair, schedule):
    system, r, rng = pair
    if r.B.size > 16:
        return
    weights = draw_weights(rng)
    expected = finite_differences(system, r, weights, schedule)
    found = round_jacobian(system, r, weights, schedule)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.max(np.abs(expected)))


@examples(40)
@given(exact_pairs(), rounds())
def test_the_jacobian_follows_the_papers_recursion(case, schedule):
    system, r, weights, rng = case
    B, D, K, A, Sigma = r.B, r.D, r.K, system.A, system.Sigma
    U, V, W = (rng.standard_normal(M.shape) for M in (B, D, K))
    v, target = np.concatenate([M.ravel() for M in (U, V, W)]), U
    for _ in range(schedule.encoder_steps):
        P, Q = D @ U + V @ B, K @ U + W @ B - target @ A
        pull = weights.cur * D.T @ P + weights.tr * K.T @ Q
        U = U - 2 * schedule.mu_encoder * pull @ Sigma
        V = V - 2 * schedule.mu_encoder * weights.cur * P @ Sigma @ B.T
    for _ in range(schedule.transition_steps):
        W = W - 2 * weights.tr * schedule.mu_transition * (W @ B + K @ U - U @ A) @ Sigma @ B.T
    expected = np.concatenate([M.ravel() for M in (U, V, W)])
    found = round_jacobian(system, r, weights, schedule) @ v
    np.testing.assert_allclose(found, expected, atol=1e-9 * (1 + np.max(np.abs(expected))))


@examples(40)
@given(exact_pairs(), rounds())
def test_the_quotient_takes_away_only_the_coordinate_changes(case, schedule):
    system, r, weights, rng = case
    certificate = certify_rounds(system, r, weights, schedule)
    Omega = rng.standard_normal(r.K.shape)
    tangent = (Omega @ r.B, -r.D @ Omega, Omega @ r.K - r.K @ Omega)
    v = np.concatenate([M.ravel() for M in tangent])
    np.testing.assert_allclose(certificate.jacobian @ v, v, atol=1e-8)
    # Characteristic polynomials at a point off the spectrum: (x - 1)^{d^2} times the quotient's.
    x = 1.7 + certificate.radius
    full = np.linalg.slogdet(x * np.eye(v.size) - certificate.jacobian)[1]
    rest = np.linalg.slogdet(x * np.eye(len(certificate.quotient)) - certificate.quotient)[1]
    assert full == pytest.approx(rest + r.latent_dim**2 * np.log(x - 1), abs=1e-6)


@examples(30)
@given(exact_pairs(), rounds(top=0.5))
def test_rounds_do_what_the_verdict_says(case, schedule):
    system, r, weights, rng = case
    found = certify_rounds(system, r, weights, schedule)
    size = 1e-9
    start = perturb(rng, r, size)
    first = np.linalg.norm(residual(system, start, weights))
    end, norms = run(system, start, weights, schedule, 300)
    if found.verdict == "converges":
        # A matrix that is not normal may let perturbations grow before they fall, and for long
        # where its spectral radius is near one: so the powers themselves are compared.
        assert np.max(norms) < 1e-5
        powers = np.linalg.matrix_power(found.jacobian, 300)
        expected = powers @ (flat(start) - flat(r))
        np.testing.assert_allclose(flat(end) - flat(r), expected, rtol=0, atol=1e-2 * size)
    if found.verdict == "unstable" and found.radius > 1.1:
        # What left one exact model may have landed on another: the way counts, not its end.
        assert not np.max(norms) < 100 * first
    if not np.max(norms) < 1e-3:
        assert found.verdict != "converges"


def test_the_residual_falls_by_the_spectral_radius():
    rng = np.random.default_rng(2)
    longer = Round(encoder_steps=3, transition_steps=2, mu_encoder=0.02, mu_transition=0.08)
    for schedule in (Round(mu_encoder=0.05, mu_transition=0.05), longer):
        system, r = draw_exact(rng, 4, 2, 2, scale=1.5, strength=0.4)
        found = certify_rounds(system, r, Weights(), schedule)
        assert found.verdict == "converges" and f"{found.radius:.6g}" in found.words
        # Two stretches in each of which the slowest part falls by 10^-4.
        count = int(np.log(1e-4) / np.log(found.radius))
        _, norms = run(system, perturb(rng, r, 1e-5), Weights(), schedule, 2 * count)
        factor = (norms[-1] / norms[count - 1]) ** (1 / count)
        assert factor == pytest.approx(found.radius, rel=2e-3)


@examples(30)
@given(SEEDS, st.floats(2.1, 6.0))
def test_steps_beyond_the_curvature_are_unstable(seed, share):
    system, r = draw_exact(np.random.default_rng(seed), 4, 2, 2)
    # Along W alone the transition step multiplies by 1 - 2 mu lambda.
    mu = share / (2 * np.linalg.eigvalsh(r.B @ system.Sigma @ r.B.T)[-1])
    schedule = Round(mu_encoder=1e-3 * mu, mu_transition=mu)
    found = certify_rounds(system, r, Weights(), schedule)
    assert found.radius > 1 and found.verdict == "unstable" and "leave" in found.words


def test_directions_in_which_nothing_moves_leave_it_undecided():
    # The second latent coordinate is not read and its dynamics exist outside the encoder too.
    system = LinearSystem(np.diag([0.5, 0.3, 0.3]), [[1.0, 0.0, 0.0]], np.eye(3))
    r = Realisation(np.eye(2, 3), [[1.0, 0.0]], np.diag([0.5, 0.3]))
    found = certify_rounds(system, r, Weights(), Round(mu_encoder=0.1, mu_transition=0.1))
    assert found.verdict == "undecided" and "stand still" in found.words
    assert found.s_star == pytest.approx(0.0, abs=1e-12)
    assert found.radius == pytest.approx(1.0)


def defective(turn, mu=0.1, a=0.5, s=0.5):
    """C = 0 and one latent coordinate: J_err has a defective eigenvalue one."""
    A = np.array([[a, 0.0], [1 / (a * s * (1 - 2 * mu)), a]])
    Sigma = np.array([[1.0, s], [s, 1.0]])
    system = LinearSystem(turn @ A @ turn.T, np.zeros((1, 2)), turn @ Sigma @ turn.T)
    return system, Realisation(np.eye(1, 2) @ turn.T, [[0.0]], [[a]])


def test_a_defective_eigenvalue_one_is_not_taken_for_instability():
    schedule = Round(mu_encoder=0.1, mu_transition=0.1)
    for angle in np.linspace(0, 2 * np.pi, 30, endpoint=False):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        found = certify_rounds(*defective(turn), Weights(), schedule)
        assert found.verdict == "undecided"
        assert "one within rounding" in found.words and "stand still" in found.words


def test_what_stands_still_in_some_directions_may_leave_in_others():
    system = LinearSystem(np.diag([0.5, 0.3, 0.3]), [[1.0, 0.0, 0.0]], np.eye(3))
    r = Realisation(np.eye(2, 3), [[1.0, 0.0]], np.diag([0.5, 0.3]))
    found = certify_rounds(system, r, Weights(), Round(mu_encoder=0.1, mu_transition=1.5))
    assert found.verdict == "unstable"
    assert found.words.startswith("Rounds leave") and "stand still" in found.words


def test_the_quotient_is_that_of_the_residuals_kernel():
    system, r = draw_exact(np.random.default_rng(6), 4, 2, 2)
    found = certify_rounds(system, r, Weights(), Round(mu_encoder=0.01, mu_transition=0.01))
    response = linearise(system, r, Weights()).R @ normal_basis(r)
    assert found.s_star == pytest.approx(np.linalg.svd(response, compute_uv=False)[-1])
    np.testing.assert_allclose(quotient(found.jacobian, r), found.quotient)
    assert spectral_radius(found.quotient) == found.radius


def test_a_batch_is_its_members():
    rng = np.random.default_rng(7)
    schedule = Round(encoder_steps=2, transition_steps=3, mu_encoder=0.01, mu_transition=0.02)
    system, r = draw_system(rng, 4, 2, (3,)), draw_realisation(rng, 4, 2, 2, (3,))
    J = round_jacobian(system, r, Weights(), schedule)
    exact, model = draw_exact(rng, 4, 2, 2, batch=(3,))
    together = certify_rounds(exact, model, Weights(), schedule)
    for i in range(3):
        one = LinearSystem(system.A[i], system.C[i], system.Sigma[i])
        alone = round_jacobian(one, Realisation(r.B[i], r.D[i], r.K[i]), Weights(), schedule)
        np.testing.assert_allclose(J[i], alone, atol=1e-12)
        one = LinearSystem(exact.A[i], exact.C[i], exact.Sigma[i])
        single = Realisation(model.B[i], model.D[i], model.K[i])
        certificate = certify_rounds(one, single, Weights(), schedule)
        assert together.radius[i] == pytest.approx(certificate.radius)
        assert together.words[i] == certificate.words


def test_inexact_realisations_are_refused():
    system, r = draw_exact(np.random.default_rng(8), 4, 2, 2)
    off = replace(r, K=r.K + 0.01)
    with pytest.raises(InputError, match=r"`r` must be an exact realisation.*\|\|K B - B A\|\|"):
        certify_rounds(system, off, Weights(), Round(mu_encoder=0.1, mu_transition=0.1))
