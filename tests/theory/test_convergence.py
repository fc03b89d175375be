"""The convergence certificate: operators, inequalities, and that it never promises wrongly."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_systems import (
    SEEDS,
    draw_change,
    draw_exact,
    draw_realisation,
    draw_system,
    draw_weights,
    exact_pairs,
    examples,
    pairs,
    perturb,
    rounds,
    strengths,
)
from scipy import linalg

from tampl.errors import InputError
from tampl.theory.certificates.convergence import (
    certify_convergence,
    certify_rounds,
    linearise,
    normal_basis,
    quotient,
    round_jacobian,
    spectral_radius,
)
from tampl.theory.linear import LinearSystem, Realisation, Weights, residual
from tampl.theory.updates import Round, tampl_round


def vector(*matrices):
    return np.concatenate([np.ravel(M) for M in matrices])


def draw_perturbation(rng, r):
    return [rng.standard_normal(M.shape) for M in (r.B, r.D, r.K)]


def common(mu):
    return Round(mu_encoder=float(mu), mu_transition=float(mu))


@st.composite
def near_certain(draw):
    """Systems like the paper's example, so far from it that some are not certified."""
    rng = np.random.default_rng(draw(SEEDS))
    n = draw(st.integers(1, 5))
    d = draw(st.integers(1, n))
    m = draw(st.integers(d, 3) if d < 3 else st.just(d))
    scale, strength = draw(st.floats(0.8, 2.0)), draw(strengths(0.35))
    return *draw_exact(rng, n, m, d, scale, strength), rng


@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 1), (4, 2), (5, 5)])
def test_the_papers_example_in_closed_form(n, d):
    system = LinearSystem(np.zeros((n, n)), np.eye(d, n), np.eye(n))
    r = Realisation(np.eye(d, n), np.eye(d), np.zeros((d, d)))
    found = certify_convergence(system, r, Weights())
    assert found.s_star == pytest.approx(1.0, abs=1e-14)
    assert found.epsilon_star == 0.0
    assert found.gamma == pytest.approx(2.0)
    # G_E acts on (U, V) by 2 [I; B] [I B^T] with norm 4, G_T on W by 2.
    assert found.ell == pytest.approx(6.0)
    assert found.mu_max == pytest.approx(1 / 18)
    assert found.s_star_bound == pytest.approx(1.0)
    assert found.scale_condition and found.scale_needed == 0.0
    assert found.verdict == "converges" and "s_star = 1" in found.words


@examples(60)
@given(exact_pairs())
def test_the_energy_identity_of_the_proof(case):
    system, r, weights, rng = case
    U, V, W = draw_perturbation(rng, r)
    operators, v = linearise(system, r, weights), vector(U, V, W)
    Q = r.K @ U + W @ r.B - U @ system.A
    energy = 2 * np.sum((operators.R @ v) ** 2)
    refresh = 2 * weights.tr * np.sum(U * (Q @ system.Sigma @ system.A.T))
    found = v @ (operators.G_E + operators.G_T) @ v
    scale = energy + abs(refresh)
    assert found == pytest.approx(energy + refresh, rel=1e-10, abs=1e-10 * scale)
    # Cauchy-Schwarz, the step from the identity to coercivity.
    epsilon = certify_convergence(system, r, weights).epsilon_star
    bound = 2 * epsilon * np.linalg.norm(v) * np.linalg.norm(operators.R @ v)
    assert abs(refresh) <= bound * (1 + 1e-9) + 1e-12


@examples(60)
@given(exact_pairs())
def test_the_operators_are_differentials(case):
    system, r, weights, rng = case
    U, V, W = draw_perturbation(rng, r)
    operators, v = linearise(system, r, weights), vector(U, V, W)
    # The residual is quadratic: its central difference is exact.
    move = lambda h: residual(
        system, Realisation(r.B + h * U, r.D + h * V, r.K + h * W), weights
    ).ravel()
    np.testing.assert_allclose(operators.R @ v, (move(0.5) - move(-0.5)), rtol=1e-8, atol=1e-8)
    eye = np.eye(v.size)
    product = (eye - 0.01 * operators.G_T) @ (eye - 0.01 * operators.G_E)
    np.testing.assert_allclose(
        round_jacobian(system, r, weights, common(0.01)), product, atol=1e-10
    )


@examples(60)
@given(exact_pairs())
def test_coordinate_changes_are_what_the_operators_do_not_see(case):
    system, r, weights, rng = case
    Omega = rng.standard_normal(r.K.shape)
    tangent = vector(Omega @ r.B, -r.D @ Omega, Omega @ r.K - r.K @ Omega)
    N, operators = normal_basis(r), linearise(system, r, weights)
    np.testing.assert_allclose(N.T @ N, np.eye(N.shape[1]), atol=1e-12)
    assert N.shape == (tangent.size, tangent.size - r.latent_dim**2)
    np.testing.assert_allclose(N.T @ tangent, 0.0, atol=1e-10)
    for M in (operators.R, operators.G_E, operators.G_T):
        np.testing.assert_allclose(M @ tangent, 0.0, atol=1e-8)


@examples(60)
@given(near_certain(), st.floats(0.01, 3.0))
def test_the_numbers_are_those_of_the_definitions(case, mu):
    system, r, rng = case
    weights = draw_weights(rng)
    found, operators = certify_convergence(system, r, weights, mu), linearise(system, r, weights)
    units = np.eye(r.latent_dim**2).reshape(-1, *r.K.shape)
    tangents = [vector(O @ r.B, -r.D @ O, O @ r.K - r.K @ O) for O in units]
    normal = linalg.null_space(np.array(tangents))
    s_star = np.linalg.svd(operators.R @ normal, compute_uv=False)[-1]
    epsilon = np.sqrt(weights.tr) * np.linalg.norm(system.A @ system.root, 2)
    e, t = np.linalg.norm(operators.G_E, 2), np.linalg.norm(operators.G_T, 2)
    gamma, ell = 2 * s_star * (s_star - epsilon), e + t
    numbers = (found.s_star, found.epsilon_star, found.gamma, found.ell)
    assert numbers == pytest.approx((s_star, epsilon, gamma, ell), rel=1e-9, abs=1e-12)
    if found.margin > 1e-9:
        bound = np.sqrt(1 - 2 * mu * gamma + mu**2 * ell**2) + mu**2 * e * t
        assert (found.mu_max, found.error_bound) == pytest.approx((gamma / ell**2, bound))
        G = normal.T @ (operators.G_E + operators.G_T) @ normal
        # Coercivity, and with it gamma <= ell.
        assert np.linalg.eigvalsh(G + G.T)[0] / 2 >= gamma * (1 - 1e-9) - 1e-12
        assert gamma <= ell


@examples(60)
@given(exact_pairs())
def test_the_scale_bounds_s_star_and_is_necessary(case):
    system, r, weights, _ = case
    found = certify_convergence(system, r, weights)
    assert found.s_star <= found.s_star_bound * (1 + 1e-9)
    assert found.margin == pytest.approx(found.s_star - found.epsilon_star)
    if found.verdict == "converges":
        assert found.scale_condition
    else:
        assert (
            found.mu_max == 0.0 and np.isinf(found.error_bound) and "proves nothing" in found.words
        )
    # The weight of the transition does not enter the condition on the scale.
    other = certify_convergence(system, r, replace(weights, tr=weights.tr / 7))
    assert other.scale_condition == found.scale_condition


def test_words_tell_the_step_bound_from_the_finer_one():
    system = LinearSystem(np.zeros((2, 2)), np.eye(1, 2), np.eye(2))
    r = Realisation(np.eye(1, 2), [[1.0]], [[0.0]])
    # mu_max is 1 / 18; the finer bound is below one up to about 0.09.
    for mu, verdict, part in (
        (0.05, "converges", "certified steps up to 0.05556"),
        (0.07, "converges", "by the finer bound"),
        (0.2, "undecided", "is too large"),
    ):
        found = certify_convergence(system, r, Weights(), mu)
        assert found.verdict == verdict and part in found.words
        assert "one step per block" in found.words


def test_a_violated_scale_condition_is_named():
    system = LinearSystem(0.9 * np.eye(2), [[1.0, 0.0]], np.eye(2))
    found = certify_convergence(system, Realisation([[0.5, 0.0]], [[2.0]], [[0.9]]), Weights())
    assert found.verdict == "undecided" and not found.scale_condition
    assert "scale 0.5 would have to exceed 0.9" in found.words


@examples(60)
@given(near_certain(), st.floats(0.01, 3.0))
def test_the_norm_of_the_quotient_obeys_the_bounds(case, share):
    system, r, _ = case
    largest = certify_convergence(system, r, Weights())
    if largest.verdict != "converges":
        return
    mu = float(share * largest.mu_max)
    found, actual = (
        certify_convergence(system, r, Weights(), mu),
        certify_rounds(system, r, Weights(), common(mu)),
    )
    assert actual.radius <= actual.norm * (1 + 1e-9)
    assert actual.norm <= found.error_bound * (1 + 1e-9)
    if share <= 1:
        assert found.error_bound <= found.coarse_bound < 1
        assert found.verdict == "converges"
    else:
        assert np.isinf(found.coarse_bound)
    if found.verdict == "converges":
        assert actual.verdict == "converges"


@examples(25)
@given(near_certain(), st.floats(0.3, 1.0))
def test_certified_rounds_converge_at_least_as_fast_as_certified(case, share):
    system, r, rng = case
    found = certify_convergence(system, r, Weights())
    if found.verdict != "converges":
        return
    mu = float(share * found.mu_max)
    bound = certify_convergence(system, r, Weights(), mu).error_bound
    start = perturb(rng, r, 1e-6)
    end, steps = start, 400
    for _ in range(steps):
        end = tampl_round(system, end, Weights(), common(mu))
    strength = np.linalg.norm(linearise(system, r, Weights()).R, 2)
    allowed = 1.01 * strength * 1e-6 * bound**steps
    # Rounding keeps the residual from falling for ever.
    assert np.linalg.norm(residual(system, end, Weights())) <= allowed + 1e-13
    assert np.linalg.svd(end.B @ system.root, compute_uv=False)[-1] > 0.1


@examples(40)
@given(exact_pairs(), st.floats(1e-3, 2.0))
def test_no_certificate_where_rounds_diverge(case, mu):
    system, r, weights, rng = case
    end, start = perturb(rng, r, 1e-7), np.linalg.norm(residual(system, r, weights))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(200):
            end = tampl_round(system, end, weights, common(mu))
        grown = np.linalg.norm(residual(system, end, weights))
    if not grown < 1e-4 + start:
        assert certify_convergence(system, r, weights, mu).verdict == "undecided"
        assert certify_rounds(system, r, weights, common(mu)).verdict != "converges"


def test_many_random_systems_are_certified():
    # The properties above would hold of a certificate that is never given.
    rng = np.random.default_rng(0)
    system, r = draw_exact(rng, 4, 2, 2, scale=1.5, strength=0.3, batch=(50,))
    found = certify_convergence(system, r, Weights())
    assert 10 <= np.sum(found.verdict == "converges") < 50
    assert set(found.verdict) == {"converges", "undecided"}


@examples(30)
@given(exact_pairs())
def test_rotations_of_the_latent_space_change_nothing(case):
    system, r, weights, rng = case
    S = np.linalg.qr(rng.standard_normal(r.K.shape))[0]
    first, last = (certify_convergence(system, model, weights) for model in (r, r.change(S)))
    for name in ("s_star", "epsilon_star", "ell", "scale"):
        assert getattr(first, name) == pytest.approx(getattr(last, name), rel=1e-7, abs=1e-9)


def test_a_batch_is_its_members():
    rng = np.random.default_rng(3)
    system, r = draw_exact(rng, 5, 2, 3, batch=(2, 2))
    together = certify_convergence(system, r, Weights())
    assert together.s_star.shape == together.words.shape == (2, 2)
    for i in np.ndindex(2, 2):
        one = LinearSystem(system.A[i], system.C[i], system.Sigma[i])
        alone = certify_convergence(one, Realisation(r.B[i], r.D[i], r.K[i]), Weights())
        assert isinstance(alone.s_star, float) and isinstance(alone.verdict, str)
        for name in ("s_star", "epsilon_star", "gamma", "ell", "scale_needed"):
            assert getattr(together, name)[i] == pytest.approx(getattr(alone, name), rel=1e-9)
        assert together.words[i] == alone.words


def test_one_system_takes_a_batch_of_coordinates():
    rng = np.random.default_rng(4)
    system, r = draw_exact(rng, 4, 2, 2)
    changes = np.stack([draw_change(rng, 2) for _ in range(3)])
    together = certify_convergence(system, r.change(changes), Weights())
    for i, S in enumerate(changes):
        alone = certify_convergence(system, r.change(S), Weights())
        assert together.s_star[i] == pytest.approx(alone.s_star)
        assert together.epsilon_star[i] == alone.epsilon_star


def test_inexact_realisations_and_bad_steps_are_refused():
    rng = np.random.default_rng(5)
    system, r = draw_exact(rng, 4, 2, 2)
    off = replace(r, D=r.D + 0.1)
    size = np.linalg.norm((off.D @ off.B - system.C) @ system.root)
    with pytest.raises(InputError, match=f"`r` must be an exact realisation.*{size:.3g}"):
        certify_convergence(system, off, Weights())
    thin = Realisation(np.zeros((1, 4)), r.D[:, :1], [[0.5]])
    with pytest.raises(InputError, match=r"`r\.B` must have full row rank 1"):
        certify_convergence(system, thin, Weights())
    with pytest.raises(InputError, match="`mu` = 0"):
        certify_convergence(system, r, Weights(), 0.0)
    with pytest.raises(InputError, match=r"`weights\.cur` = 0"):
        certify_convergence(system, r, Weights(cur=0.0))
    with pytest.raises(InputError, match=r"`r\.K` must be finite"):
        certify_convergence(system, replace(r, K=np.full((2, 2), np.nan)), Weights())


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


def test_rounds_of_a_batch_are_those_of_its_members():
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


def test_rounds_at_inexact_realisations_are_refused():
    system, r = draw_exact(np.random.default_rng(8), 4, 2, 2)
    off = replace(r, K=r.K + 0.01)
    with pytest.raises(InputError, match=r"`r` must be an exact realisation.*\|\|K B - B A\|\|"):
        certify_rounds(system, off, Weights(), Round(mu_encoder=0.1, mu_transition=0.1))
