"""TAMPL rounds leave closed models without the task where the certificate says so."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_points import draw_symmetric_wrong, draw_weights, examples, perturb
from random_systems import SEEDS

from tampl.errors import InputError
from tampl.theory.certificates.attractor import schur_test
from tampl.theory.certificates.instability import detached_instability, spectral_ordering
from tampl.theory.certificates.rounds import round_jacobian
from tampl.theory.linear import LinearSystem, Realisation, Weights, current_loss, norm2
from tampl.theory.updates import Round, joint_step, tampl_round

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


def test_the_papers_case_two():
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
    assert found.factor(mu) <= np.max(np.abs(spectrum)) + 1e-6


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
        assert (found.factor(0.01) > 1) == (verdict == "unstable")


def test_a_batch_is_its_members():
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
