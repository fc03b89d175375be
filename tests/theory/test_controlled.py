"""The experiments give the paper's numbers, and do what they say."""

from dataclasses import replace

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.theory.experiments import (
    METHODS,
    certify_endpoints,
    descend,
    fit_factor,
    project_to_orbit,
    run_case1,
    run_case2,
    run_collapse,
    run_local,
)
from tampl.theory.experiments.cases import make_case1, make_case2, make_local
from tampl.theory.linear import LinearSystem, Realisation, norm2

KEYS = ["l_cur", "l_tr", "s_min", "s_min_lowest", "rollout"]


@pytest.fixture(scope="module")
def case1():
    return run_case1()


@pytest.fixture(scope="module")
def case2():
    return run_case2()


@pytest.fixture(scope="module")
def local():
    return run_local()


# Case I


def test_case1_summary_has_the_promised_keys(case1):
    summary = case1.summary()
    assert list(summary) == ["joint", "recon_joint", "tampl"] == list(METHODS)
    assert all(list(values) == KEYS for values in summary.values())


def test_case1_joint_shrinks_and_stops_learning(case1):
    joint, start = case1.summary()["joint"], np.mean(case1.curves["joint"].s_min[0])
    assert start == pytest.approx(0.49, abs=0.005)
    assert 0.005 < joint["s_min_lowest"] < 0.008
    assert joint["s_min_lowest"] < joint["s_min"] < 0.01
    assert joint["rollout"] == pytest.approx(0.105, abs=0.001)


def test_case1_tampl_keeps_its_scale_and_fits(case1):
    tampl = case1.summary()["tampl"]
    assert tampl["rollout"] < 1e-15
    assert tampl["s_min_lowest"] > 0.45
    assert max(tampl["l_cur"], tampl["l_tr"]) < 1e-15


def test_all_methods_have_the_same_start(case1, case2):
    for found in (case1, case2):
        starts = [curves.by_seed(0) for curves in found.curves.values()]
        assert starts[0] == starts[1] == starts[2]


# Case II


def test_case2_joint_keeps_its_scale_and_loses_the_task(case2):
    summary = case2.summary()
    for method in ("joint", "recon_joint"):
        assert summary[method]["l_cur"] == pytest.approx(1.0, abs=1e-9)
        assert summary[method]["l_tr"] < 1e-9
        assert summary[method]["s_min_lowest"] > 3.5
        assert summary[method]["rollout"] > 1.0
    assert summary["tampl"]["rollout"] < 1e-15


def test_case2_certificates(case2):
    certificate = case2.summary()["certificate"]
    assert certificate["tau_0"] == pytest.approx(0.45, abs=1e-9)
    assert certificate["reference_margin"] == pytest.approx(2.24, abs=1e-9)
    assert len(certificate["endpoint_margins"]) == 5
    assert all(1.85 < margin < 2.24 for margin in certificate["endpoint_margins"])
    assert max(certificate["endpoint_distances"]) < 1e-5
    assert certificate["spectral_ordering"] is True
    np.testing.assert_allclose(certificate["ordering_gaps"], 0.45)
    assert min(certificate["detached_growth"]) > 0


def test_the_ordering_has_its_own_verdict():
    case = make_case2([0])
    # The spectra 0.1 to 0.2 kept and 0.65 to 0.85 omitted shift apart from zero, not from another.
    A = case.system.A - 0.15 * np.eye(7)
    shifted = replace(case, system=LinearSystem(A, case.system.C, case.system.Sigma))
    wrong = replace(case.wrong, K=case.wrong.K - 0.15 * np.eye(3))
    shifted = replace(shifted, wrong=wrong)
    found = certify_endpoints(shifted, wrong)
    np.testing.assert_allclose(found.ordering_gaps, 0.45)
    assert found.summary()["spectral_ordering"] is False


def test_a_point_of_the_orbit_is_its_own_projection():
    case = make_case2([0, 1])
    S = np.random.default_rng(0).standard_normal((2, 3, 3)) + 3 * np.eye(3)
    there = case.wrong.change(S)
    for name in "BDK":
        projected = getattr(project_to_orbit(case, there), name)
        np.testing.assert_allclose(projected, getattr(there, name), atol=1e-10)
    assert np.all(certify_endpoints(case, there).endpoint_distances < 1e-12)


def test_the_projection_is_the_nearest_point():
    case, generator = make_case2([0]), np.random.default_rng(0)
    nearest = project_to_orbit(case, case.start)
    away = norm2(nearest.B - case.start.B, case.system.Sigma)
    for _ in range(20):
        other = nearest.change(np.eye(3) + 0.1 * generator.standard_normal((3, 3)))
        assert norm2(other.B - case.start.B, case.system.Sigma) >= away


def test_case1_has_no_wrong_subspace():
    case = make_case1()
    with pytest.raises(InputError, match="`case`"):
        project_to_orbit(case, case.start)


# The local test


def test_local_certificates_hold_for_nearly_all_seeds(local):
    assert len(local.case.seeds) == 40
    assert np.sum(local.margin > 0.315) >= 38
    assert np.sum(local.mu_max > 0.00275) >= 38
    assert np.sum(local.radius < 0.99816) >= 36
    assert np.all(local.margin > 0)
    assert np.all(local.case.rate < local.mu_max)


def test_local_runs_as_certified(local):
    factor = local.factor("tampl")
    # Faster modes are not yet gone in the second half, so the fit may lie below the radius.
    assert np.all(factor < local.radius + 1e-5)
    assert np.all(factor > local.radius - 1e-3)
    for method in ("joint", "tampl"):
        assert np.all(local.norms[method][-1] < 1e-4 * local.norms[method][0])
        assert np.all(local.variances[method] > 3.5)


def test_local_methods_start_together(local):
    np.testing.assert_array_equal(local.norms["joint"][0], local.norms["tampl"][0])
    squared = norm2(local.case.start.B, local.case.system.Sigma)
    assert np.all(local.variances["joint"][0] <= squared / 3)


def test_local_summary_has_one_entry_per_seed(local):
    summary = local.summary()
    assert [entry["seed"] for entry in summary["seeds"]] == list(range(40))
    assert set(summary["seeds"][0]) >= {"margin", "mu_max", "radius", "factor"}
    assert summary["lowest_margin"] == min(entry["margin"] for entry in summary["seeds"])


def test_the_factor_is_fitted_to_the_second_half():
    rounds = np.arange(0, 1000, 10)
    norms = np.where(rounds < 500, 1.0, 0.99 ** (rounds - 500.0))
    np.testing.assert_allclose(fit_factor(rounds, np.stack([norms, 2 * norms], -1)), 0.99)


def test_an_exact_start_stays():
    case = make_local([0])
    descent = descend(replace(case, start=case.exact), "tampl", updates=50)
    np.testing.assert_allclose(descent.end.B, case.exact.B, atol=1e-13)


# Collapse


def test_collapse_is_that_of_one_direction():
    found = run_collapse(range(3), updates=3000)
    summary = found.summary()
    assert list(summary) == ["joint", "tampl"]
    np.testing.assert_array_equal(found.norms["joint"][0], 1.0)
    assert summary["joint"]["scale"]["median"] < 0.05
    assert 0.9 < summary["joint"]["norm"]["median"] < 1.0 < summary["tampl"]["norm"]["median"]
    assert summary["tampl"]["error"]["high"] < 0.1 * summary["joint"]["error"]["low"]
    assert summary["joint"]["norm"]["low"] <= summary["joint"]["norm"]["high"]


def test_endpoints_are_realisations(case1):
    assert all(isinstance(end, Realisation) for end in case1.ends.values())
    assert case1.ends["tampl"].B.shape == (5, 3, 7)
