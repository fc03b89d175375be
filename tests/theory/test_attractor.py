"""The certificates of wrong attractors agree with the Hessian and with what descent does."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_systems import (
    SEEDS,
    draw_symmetric_wrong,
    draw_weights,
    draw_wrong,
    examples,
    perturb,
    wrong_pairs,
)
from scipy import linalg

from tampl.errors import InputError
from tampl.theory.certificates.attractor import (
    detached_instability,
    incorrect_attractor,
    require_incorrect_point,
    schur_test,
    spectral_ordering,
)
from tampl.theory.certificates.convergence import round_jacobian
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    T,
    Weights,
    current_loss,
    inner,
    norm2,
    transition_loss,
)
from tampl.theory.updates import Round, joint_step, tampl_round


def case_two():
    """The wrong-subspace reference of the paper's Case II in canonical coordinates."""
    A = np.diag([0.65, 0.75, 0.85, 0.10, 0.15, 0.20, 0.65])
    system = LinearSystem(A, np.eye(1, 7), np.eye(7))
    return system, Realisation(4 * np.eye(3, 7, 3), np.zeros((1, 3)), A[3:6, 3:6])


def line(a, k, c, s):
    """Two coordinates: k kept with scale s, a omitted and read by c."""
    system = LinearSystem(np.diag([k, a]), [[0.0, c]], np.eye(2))
    return system, Realisation([[s, 0.0]], [[0.0]], [[k]])


def hessian(system, r, weights):
    """Half the Hessian of L_joint by autograd, on vectorised (B, D, K)."""
    A, C, Sigma = (torch.tensor(M) for M in (system.A, system.C, system.Sigma))
    sizes = [M.size for M in (r.B, r.D, r.K)]

    def loss(theta):
        B, D, K = torch.split(theta, sizes)
        B, D, K = B.reshape(r.B.shape), D.reshape(r.D.shape), K.reshape(r.K.shape)
        E, Delta = D @ B - C, K @ B - B @ A
        current = weights.cur * torch.trace(E @ Sigma @ E.T)
        return current + weights.tr * torch.trace(Delta @ Sigma @ Delta.T)

    theta = torch.cat([torch.tensor(M).flatten() for M in (r.B, r.D, r.K)])
    return torch.autograd.functional.hessian(loss, theta).numpy() / 2


def descend(system, r, weights, *, steps):
    # A third of the largest step at which a quadratic with this curvature does not overshoot.
    mu = 1 / (3 * np.linalg.norm(hessian(system, r, weights), 2))
    for _ in range(steps):
        r = joint_step(system, r, weights, mu)
    return r


def test_the_papers_case_two():
    system, r = case_two()
    certificate = incorrect_attractor(system, r, Weights())
    assert certificate.tau_0 == pytest.approx(0.45)
    assert certificate.smallest_variance == pytest.approx(16.0)
    assert certificate.margin == pytest.approx(2.24)
    assert certificate.current_loss == pytest.approx(1.0)
    assert certificate.verdict == "attractor" and "current loss 1" in certificate.words
    test = schur_test(system, r, Weights())
    assert test.verdict == "attractor"
    for words in (certificate.words, test.words):
        assert "from every near start to this closed model up to latent coordinates" in words


@examples(40)
@given(wrong_pairs())
def test_tau_0_is_the_minimum_of_its_definition(case):
    system, r, weights, _ = case
    n, d = system.n, r.latent_dim
    units = np.eye(d * n).reshape(-1, d, n)
    flat = lambda M: M.reshape(d * n, -1).T
    allowed = linalg.null_space(flat(units @ system.Sigma @ T(r.B)))
    root = system.root
    P_0 = np.linalg.pinv(r.B @ root) @ r.B @ root
    image = flat((r.K @ units - units @ system.A) @ root @ (np.eye(n) - P_0)) @ allowed
    metric = allowed.T @ np.kron(np.eye(d), system.Sigma) @ allowed
    least = linalg.eigh(image.T @ image, metric, eigvals_only=True)[0]
    found = incorrect_attractor(system, r, weights)
    assert found.tau_0**2 == pytest.approx(least, abs=1e-10)


@examples(60)
@given(wrong_pairs(top=4))
def test_the_verdicts_are_those_of_the_full_hessian(case):
    system, r, weights, _ = case
    test, theorem = schur_test(system, r, weights), incorrect_attractor(system, r, weights)
    values = np.linalg.eigvalsh(hessian(system, r, weights))
    rounding = 1e-11 * np.max(np.abs(values))
    if test.verdict == "attractor":
        # Exactly the d^2 changes of latent coordinates are flat.
        assert np.sum(np.abs(values) <= rounding) == r.latent_dim**2
        assert np.all(values >= -rounding)
    if test.verdict == "saddle":
        assert values[0] < 0
    if theorem.verdict == "attractor":
        assert test.verdict == "attractor"
        assert test.smallest >= theorem.margin / theorem.smallest_variance * (1 - 1e-9)


@examples(40)
@given(wrong_pairs())
def test_the_direction_attains_the_smallest_curvature(case):
    system, r, weights, _ = case
    test = schur_test(system, r, weights)
    U, V, W = test.direction.U, test.direction.V, test.direction.W
    np.testing.assert_allclose(norm2(U, system.Sigma), 1.0)
    np.testing.assert_allclose(U @ system.Sigma @ T(r.B), 0.0, atol=1e-10)
    q = (
        weights.cur * norm2(V @ r.B, system.Sigma)
        - 2 * weights.cur * inner(system.C, V @ U, system.Sigma)
        + weights.tr * norm2(r.K @ U + W @ r.B - U @ system.A, system.Sigma)
    )
    np.testing.assert_allclose(q, test.smallest, rtol=1e-8, atol=1e-9)
    v = np.concatenate([M.ravel() for M in (U, V, W)])
    np.testing.assert_allclose(v @ hessian(system, r, weights) @ v, q, rtol=1e-8, atol=1e-9)


def test_descent_returns_to_attractors_and_leaves_saddles():
    rng, seen = np.random.default_rng(3), {"attractor": 0, "saddle": 0}
    for _ in range(24):
        system, r = draw_wrong(rng, 4, 1, 2, scale=rng.uniform(0.5, 8.0))
        test = schur_test(system, r, Weights())
        curvatures = np.sort(np.abs(np.linalg.eigvalsh(hessian(system, r, Weights()))))
        # Ill-conditioned ones would need many steps to show what they do.
        if curvatures[r.latent_dim**2] < 3e-3 * curvatures[-1]:
            continue
        seen[str(test.verdict)] += 1
        kept = norm2(system.C, system.Sigma)
        end = descend(system, perturb(rng, r, 1e-3), Weights(), steps=8000)
        if test.verdict == "attractor":
            assert current_loss(system, end) == pytest.approx(kept, rel=1e-6)
            assert transition_loss(system, end) < 1e-12
        else:
            assert current_loss(system, end) < 0.98 * kept
    assert min(seen.values()) >= 3, seen


def test_the_schur_test_decides_where_the_norm_bound_does_not():
    # Unequal latent variances: the bound pairs the weakest one with the strongest gain.
    system = LinearSystem(np.diag([0.1, 0.2, 0.9, 0.21]), [[0.0, 0.0, 0.5, 0.0]], np.eye(4))
    r = Realisation(np.diag([2.0, 2.0]) @ np.eye(2, 4), [[0.0, 0.0]], np.diag([0.1, 0.2]))
    assert incorrect_attractor(system, r, Weights()).verdict == "undecided"
    assert "neither" in incorrect_attractor(system, r, Weights()).words
    assert schur_test(system, r, Weights()).verdict == "attractor"


def test_the_verdict_turns_where_the_closed_form_does():
    # One kept and one omitted coordinate: the curvature is (k - a)^2 - c^2 / s^2.
    for s, verdict in ((2.1, "attractor"), (1.9, "saddle"), (2.0, "undecided")):
        system, r = line(a=0.75, k=0.25, c=1.0, s=s)
        test = schur_test(system, r, Weights())
        assert test.verdict == verdict
        assert test.smallest == pytest.approx(0.25 - 1 / s**2, abs=1e-12)
        assert ("almost every near start leaves it" in test.words) == (verdict == "saddle")
    for c in (0.3, 0.6, 0.7, 1.1):
        # Zero but for rounding, of either sign.
        test = schur_test(*line(a=0.9, k=0.9 - c / 2, c=c, s=2.0), Weights())
        assert test.verdict == "undecided" and abs(test.smallest) < 1e-15


def test_weights_shift_the_balance():
    system, r = line(a=0.75, k=0.25, c=1.0, s=2.0)
    assert schur_test(system, r, Weights(tr=1.1)).verdict == "attractor"
    assert schur_test(system, r, Weights(cur=1.1)).verdict == "saddle"


def test_a_batch_is_its_members():
    rng = np.random.default_rng(5)
    members = [draw_wrong(rng, 5, 2, 3) for _ in range(4)]
    stack = lambda items, name: np.stack([getattr(item, name) for item in items])
    system = LinearSystem(*(stack([s for s, _ in members], name) for name in ("A", "C", "Sigma")))
    r = Realisation(*(stack([model for _, model in members], name) for name in "BDK"))
    together, test = incorrect_attractor(system, r, Weights()), schur_test(system, r, Weights())
    for i, member in enumerate(members):
        alone, single = incorrect_attractor(*member, Weights()), schur_test(*member, Weights())
        assert together.margin[i] == pytest.approx(alone.margin)
        assert (together.verdict[i], together.words[i]) == (alone.verdict, alone.words)
        assert test.smallest[i] == pytest.approx(single.smallest, abs=1e-12)
        assert test.verdict[i] == single.verdict


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": np.diag([0.1, 0.15, 0.3])}, r"`r\.K` must satisfy K B = B A; .* is 0\.1,"),
        ({"D": np.full((1, 3), 0.1)}, r"`r\.D` must satisfy D_0 = 0; .* is 0\.693,"),
        ({"B": np.eye(3, 7)}, r"`r\.B` must satisfy C Sigma B_0\^T = 0; .* is 1,"),
        ({"B": np.zeros((3, 7))}, r"`r\.B` must have full row rank 3; .* is 0"),
        ({"B": np.full((3, 7), np.nan)}, r"`r\.B` must be finite"),
        ({"K": np.full((3, 3), np.inf)}, r"`r\.K` must be finite"),
    ],
)
@pytest.mark.parametrize("certify", [incorrect_attractor, schur_test])
def test_other_points_are_refused(certify, change, message):
    system, r = case_two()
    with pytest.raises(InputError, match=message):
        certify(system, replace(r, **change), Weights())


@examples(40)
@given(wrong_pairs())
def test_which_points_are_refused_does_not_depend_on_latent_coordinates(case):
    system, r, _, rng = case
    d = r.latent_dim
    S = np.diag(10 ** rng.uniform(0.0, 6.0, d))
    for change in (S, S[::-1], np.diag([1.0, 1e6, 1.0, 1e6][:d])):
        require_incorrect_point(system, r.change(change))
        for wrong, name in (
            (replace(r, K=r.K + 1e-3 * np.eye(d)), "r.K"),
            (replace(r, D=1e-3 * system.C @ np.linalg.pinv(r.B) + 1e-3), "r.D"),
            (replace(r, B=r.B + 1e-3 * np.ones((d, 1)) * system.C[:1]), "r.B"),
        ):
            with pytest.raises(InputError, match=f"`{name}` must satisfy"):
                require_incorrect_point(system, wrong.change(change))


def test_a_large_latent_row_hides_no_violation():
    A = np.diag([0.5, 0.4, 0.2])
    K, D = np.diag([0.5, 0.4]), np.zeros((1, 2))
    B = np.diag([1.0, 2e9, 1.0])[:2]
    with pytest.raises(InputError, match=r"`r\.B` must satisfy C Sigma B_0\^T = 0; .* is 1,"):
        require_incorrect_point(
            LinearSystem(A, [[1.0, 0.0, 0.3]], np.eye(3)), Realisation(B, D, K)
        )
    system = LinearSystem(A, [[0.0, 0.0, 0.3]], np.eye(3))
    require_incorrect_point(system, Realisation(B, D, K))
    with pytest.raises(InputError, match=r"`r\.K` must satisfy K B = B A; .* is 0\.1,"):
        require_incorrect_point(system, Realisation(B, D, np.diag([0.6, 0.4])))
    with pytest.raises(InputError, match=r"`r\.D` must satisfy D_0 = 0; .* is 0\.02,"):
        require_incorrect_point(system, Realisation(B, [[0.0, 1e-11]], K))


def test_systems_and_weights_without_a_task_are_refused():
    system, r = case_two()
    with pytest.raises(InputError, match=r"`system\.C`"):
        incorrect_attractor(LinearSystem(system.A, np.zeros((1, 7)), system.Sigma), r, Weights())
    for name in ("cur", "tr"):
        with pytest.raises(InputError, match=rf"`weights\.{name}` = 0"):
            schur_test(system, r, Weights(**{name: 0.0}))


KEPT, OMITTED = (0.10, 0.15, 0.20), (0.65, 0.65, 0.75, 0.85)


@st.composite
def points(draw, isotropic=None):
    """A symmetric system with a closed model without the task, weights, and a generator."""
    rng = np.random.default_rng(draw(SEEDS))
    kept = rng.uniform(-0.9, 0.9, draw(st.integers(1, 3)))
    omitted = rng.uniform(-0.9, 0.9, draw(st.integers(1, 3)))
    if isotropic is None:
        isotropic = draw(st.booleans())
    point = draw_symmetric_wrong(
        rng, kept, omitted, m=draw(st.integers(1, 2)), scale=draw(st.floats(0.5, 4.0)),
        isotropic=isotropic,
    )  # fmt: skip
    return *point, draw_weights(rng), rng


def test_rounds_leave_the_papers_case_two():
    system, r = draw_symmetric_wrong(np.random.default_rng(0), KEPT, OMITTED, scale=4.0)
    found = detached_instability(system, r, Weights())
    assert found.ordering.verdict == "ordered"
    assert found.ordering.margin == pytest.approx(0.45)
    assert found.bound == pytest.approx(2 * 0.10 * 0.45)
    assert found.growth >= found.bound
    assert found.proven and found.verdict == "unstable" and "as the paper proves" in found.words


@examples(40)
@given(points(), st.floats(1e-3, 0.1))
def test_the_block_is_that_of_the_actual_round(point, mu):
    system, r, weights, _ = point
    found = detached_instability(system, r, weights)
    J = round_jacobian(system, r, weights, Round(mu_encoder=mu, mu_transition=mu))
    spectrum = np.linalg.eigvals(J)
    for eigenvalue in 1 + mu * found.eigenvalues:
        # Defective eigenvalues are only as sharp as the root of the machine precision.
        assert np.min(np.abs(spectrum - eigenvalue)) < 1e-6
    assert np.max(np.abs(1 + mu * found.eigenvalues)) <= np.max(np.abs(spectrum)) + 1e-6


@examples(60)
@given(points(isotropic=True))
def test_the_ordering_of_the_spectra_implies_growth_of_at_least_the_bound(point):
    system, r, weights, _ = point
    found = detached_instability(system, r, weights)
    assert found.isotropy < 1e-9
    assert np.all(np.abs(found.eigenvalues.imag) < 1e-6)
    if found.proven:
        assert found.verdict == "unstable"
        assert found.growth >= found.bound * (1 - 1e-9) > 0


@examples(40)
@given(points())
def test_the_ordering_does_not_depend_on_latent_coordinates(point):
    system, r, _, _ = point
    found = spectral_ordering(system, r)
    values = np.sort(np.linalg.eigvals(r.K).real)
    np.testing.assert_allclose([found.smallest_kept, found.largest_kept], values[[0, -1]])
    rest = np.linalg.eigvalsh(system.A)
    everything = np.concatenate([values, [found.smallest_omitted]])
    assert np.min(rest) == pytest.approx(np.min(everything), abs=1e-9)
    assert found.verdict in found.words


def test_rounds_leave_what_joint_descent_returns_to():
    rng, weights = np.random.default_rng(1), Weights()
    system, r = draw_symmetric_wrong(rng, KEPT, OMITTED, scale=4.0, isotropic=False)
    # An observable seen by one omitted direction, as in the paper.
    system = LinearSystem(system.A, system.C / np.linalg.norm(system.C), system.Sigma)
    assert schur_test(system, r, weights).verdict == "attractor"
    found = detached_instability(system, r, weights)
    assert found.verdict == "unstable" and not found.proven
    assert "by computation" in found.words
    kept, mu = norm2(system.C, system.Sigma), 0.003
    joint = tampl = perturb(rng, r, 1e-3)
    for _ in range(15_000):
        joint = joint_step(system, joint, weights, mu)
        tampl = tampl_round(system, tampl, weights, Round(mu_encoder=mu, mu_transition=mu))
    assert current_loss(system, joint) == pytest.approx(kept, rel=1e-3)
    assert current_loss(system, tampl) < 0.9 * kept


def test_reversed_spectra_and_a_weak_readout_grow_nothing():
    # The block of one kept and one omitted coordinate is stable where k (k - a) s^2 > c^2.
    system = LinearSystem(np.diag([0.8, 0.2]), [[0.0, 0.5]], np.eye(2))
    for s, verdict in ((1.0, "undecided"), (0.5, "unstable")):
        found = detached_instability(system, Realisation([[s, 0.0]], [[0.0]], [[0.8]]), Weights())
        assert found.ordering.verdict == "not ordered" and not found.proven
        assert found.verdict == verdict
        assert ("does not show" if verdict == "undecided" else "in the long run") in found.words
        factor = np.max(np.abs(1 + 0.01 * found.eigenvalues))
        assert (factor > 1) == (verdict == "unstable")


def test_instability_of_a_batch_is_that_of_its_members():
    rng = np.random.default_rng(5)
    members = [draw_symmetric_wrong(rng, KEPT, OMITTED) for _ in range(3)]
    stack = lambda items, name: np.stack([getattr(item, name) for item in items])
    system = LinearSystem(*(stack([s for s, _ in members], name) for name in ("A", "C", "Sigma")))
    r = Realisation(*(stack([model for _, model in members], name) for name in "BDK"))
    together = detached_instability(system, r, Weights())
    for i, member in enumerate(members):
        alone = detached_instability(*member, Weights())
        assert together.growth[i] == pytest.approx(alone.growth)
        assert together.words[i] == alone.words
        assert together.ordering.words[i] == alone.ordering.words


def test_other_systems_are_refused():
    system, r = draw_symmetric_wrong(np.random.default_rng(0), KEPT, OMITTED)
    skew = np.zeros((7, 7))
    skew[0, 1], skew[1, 0] = 0.25, -0.25
    cases = [
        (LinearSystem(system.A, system.C, 1.5 * np.eye(7)), r, r"`system\.Sigma`.* is 0\.5,"),
        (LinearSystem(system.A + skew, system.C, np.eye(7)), r, r"`system\.A`.* is 0\.5,"),
        (system, replace(r, K=r.K + 0.1 * np.eye(3)), r"`r\.K` .* is 0\.1,"),
        (system, Realisation(np.eye(7), np.zeros((1, 7)), system.A), "d < n; here d = n = 7"),
    ]
    for bad, model, message in cases:
        with pytest.raises(InputError, match=message):
            spectral_ordering(bad, model)
    with pytest.raises(InputError, match=r"`r\.D` must satisfy D_0 = 0"):
        detached_instability(system, replace(r, D=np.ones((1, 3))), Weights())
