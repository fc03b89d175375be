"""The constructions are the paper's, and a seed's draws depend on nothing but the seed."""

from dataclasses import replace

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.theory.certificates.anchoring import optimal_transition
from tampl.theory.experiments.cases import (
    METHODS,
    SEEDS,
    descend,
    least_squares_decoder,
    make_case1,
    make_case2,
    make_local,
    measure,
    smallest_scale,
)
from tampl.theory.linear import (
    LinearSystem,
    Realisation,
    T,
    Weights,
    current_loss,
    rollout_error,
    transition_loss,
)
from tampl.theory.realisability import is_exact
from tampl.theory.updates import reconstruction_gradient

MAKERS = (make_case1, make_case2, make_local)


def matrices(case):
    models = [case.start, case.exact] + ([case.wrong] if case.wrong else [])
    return [
        *(case.system.A, case.system.C),
        *(getattr(model, name) for model in models for name in "BDK"),
    ]


@pytest.mark.parametrize("make", MAKERS)
def test_shapes_and_exact_realisation(make):
    case = make()
    assert case.seeds == SEEDS
    assert (case.system.n, case.system.m, case.start.latent_dim) == (7, 1, 3)
    assert case.start.B.shape == (5, 3, 7)
    assert (case.weights.cur, case.weights.tr) == (1.0, 1.0)
    assert is_exact(case.system, case.exact)
    assert np.max(rollout_error(case.system, case.exact, 10)) < 1e-25


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_does_not_depend_on_its_neighbours(make):
    for alone, among in zip(matrices(make([3])), matrices(make()), strict=True):
        np.testing.assert_array_equal(alone[0], among[3])


@pytest.mark.parametrize("make", MAKERS)
def test_same_seed_same_bytes_and_seeds_differ(make):
    for first, again in zip(matrices(make()), matrices(make()), strict=True):
        np.testing.assert_array_equal(first, again)
    start = make().start.B
    assert all(not np.allclose(start[0], start[seed]) for seed in range(1, 5))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seeds", [[], [-1], [0, -3]])
def test_bad_seeds(make, seeds):
    with pytest.raises(InputError, match="`seeds`"):
        make(seeds)


def test_case1_reads_exactly_and_moves_wrongly():
    case = make_case1()
    spectrum = np.sort(np.linalg.eigvals(case.system.A).real)
    block = np.linalg.eigvals([[0.82, 0.07], [-0.04, 0.72]]).real
    expected = np.sort([0.3, *block, 0.18, -0.20, 0.38, -0.31])
    np.testing.assert_allclose(spectrum, np.tile(expected, (5, 1)), atol=1e-12)
    assert np.all(current_loss(case.system, case.start) < 1e-28)
    assert np.all(transition_loss(case.system, case.start) > 0.2)
    scales = np.linalg.svd(case.start.B, compute_uv=False)
    np.testing.assert_allclose(scales[:, 0], 1.5)
    assert np.mean(scales[:, -1]) == pytest.approx(0.49, abs=0.005)
    # The coordinate of scale 1.5 has the right transition from the start.
    K = np.linalg.eigvals(case.start.K).real
    np.testing.assert_allclose(np.max(K, axis=-1), 0.3)


def test_case2_starts_at_least_squares_beside_a_closed_model_without_the_task():
    case = make_case2()
    spectrum = np.linalg.eigvalsh(case.system.A)
    expected = [0.10, 0.15, 0.20, 0.65, 0.65, 0.75, 0.85]
    np.testing.assert_allclose(spectrum, np.tile(expected, (5, 1)), atol=1e-12)
    K = optimal_transition(case.system, case.start.B)
    np.testing.assert_allclose(case.start.K, K, atol=1e-12)
    # Normal equation of the readout.
    left = (case.start.D @ case.start.B - case.system.C) @ T(case.start.B)
    np.testing.assert_allclose(left, 0, atol=1e-12)
    assert np.all(transition_loss(case.system, case.start) > 0.1)
    covariance = case.wrong.B @ T(case.wrong.B)
    np.testing.assert_allclose(covariance, np.tile(16 * np.eye(3), (5, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(case.system.C @ T(case.wrong.B), 0, atol=1e-12)
    np.testing.assert_array_equal(case.wrong.D, 0)
    assert np.all(transition_loss(case.system, case.wrong) < 1e-25)


def test_local_is_nonsymmetric_and_starts_near():
    case = make_local()
    spectrum = np.sort(np.linalg.eigvals(case.system.A).real)
    expected = np.sort([0.7, 0.8, 0.9, -0.8, -0.7, -0.6, -0.5])
    np.testing.assert_allclose(spectrum, np.tile(expected, (5, 1)), atol=1e-12)
    assert np.all(np.max(np.abs(case.system.A - T(case.system.A)), axis=(-2, -1)) > 1e-3)
    off = case.system.Sigma - np.eye(7) * case.system.Sigma
    assert np.all(np.max(np.abs(off), axis=(-2, -1)) > 1e-3)
    changes = [getattr(case.start, M) - getattr(case.exact, M) for M in "BDK"]
    spread = np.std(np.concatenate([change.ravel() for change in changes]))
    assert spread == pytest.approx(0.006, rel=0.2)


def turned(case, generator):
    """The same case in other orthogonal coordinates of source and latent space."""
    Q, O = (np.linalg.qr(generator.standard_normal((k, k)))[0] for k in (7, 3))
    system = LinearSystem(Q @ case.system.A @ Q.T, case.system.C @ Q.T, case.system.Sigma)
    start = Realisation(O @ case.start.B @ Q.T, case.start.D @ O.T, O @ case.start.K @ O.T)
    return replace(case, system=system, start=start)


@pytest.mark.parametrize("make", (make_case1, make_case2))
@pytest.mark.parametrize("method", ("joint", "recon_joint", "tampl"))
def test_turning_changes_no_curve(make, method):
    case = make([0])
    other = turned(case, np.random.default_rng(0))
    ours, theirs = (measure(descend(c, method, updates=200)) for c in (case, other))
    for name in ("l_cur", "l_tr", "s_min", "rollout"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-12)


# Descent


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_is_its_seeds(method):
    together = descend(make_case1([0, 1]), method, updates=50)
    for place, seed in enumerate((0, 1)):
        alone = descend(make_case1([seed]), method, updates=50)
        np.testing.assert_allclose(together.path.B[:, place], alone.path.B[:, 0], atol=1e-13)


def test_records_start_and_end():
    case = make_case1([0])
    descent = descend(case, "joint", updates=25, every=10)
    assert descent.updates.tolist() == [0, 10, 20, 25]
    np.testing.assert_array_equal(descent.path.B[0], case.start.B)
    every = descend(case, "joint", updates=25, every=1)
    np.testing.assert_array_equal(descent.end.K, every.path.K[-1])


def test_the_decoder_starts_at_least_squares():
    case = make_case1()
    G = least_squares_decoder(case)
    _, gradient = reconstruction_gradient(case.system, case.start.B, G, Weights(rec=1.0))
    np.testing.assert_allclose(gradient, 0, atol=1e-13)


def test_reconstruction_changes_the_path():
    joint, recon = (descend(make_case1([0]), m, updates=10) for m in ("joint", "recon_joint"))
    assert not np.allclose(joint.end.B, recon.end.B)


def test_a_descent_that_blows_up_is_measured():
    case = replace(make_case1([0]), rate=1e3)
    with np.errstate(all="ignore"):
        curves = measure(descend(case, "joint", updates=60))
    assert np.isnan(curves.s_min[-1]).all()


def test_smallest_scale_keeps_what_is_finite():
    matrices = np.stack([np.eye(2, 3), np.full((2, 3), np.nan)])
    np.testing.assert_array_equal(smallest_scale(matrices), [1.0, np.nan])


def test_bad_descents():
    case = make_case1([0])
    with pytest.raises(InputError, match="`method`"):
        descend(case, "magic", updates=1)
    for updates, every in ((0, 1), (1, 0)):
        with pytest.raises(InputError, match="`updates`"):
            descend(case, "joint", updates=updates, every=every)
