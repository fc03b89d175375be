import math
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.evaluation.metrics import Score, crps, distinct_kernel_mean, marginal_mmd2, rmse, score


@dataclass
class Affine:
    mean: float = 0.0
    std: float = 1.0

    def standardize(self, y):
        return (y - self.mean) / self.std


def ensembles(*shape, seed=0, shift=0.3):
    generator = np.random.default_rng(seed)
    return generator.normal(size=shape), generator.normal(shift, 1.4, size=shape)


def naive_mmd2(predicted, reference):
    def mean_kernel(a, b):
        return np.mean([math.exp(-((u - v) ** 2) / 2) for u in a for v in b])

    g, _, t, d = predicted.shape
    cells = [
        mean_kernel(p, p) + mean_kernel(r, r) - 2 * mean_kernel(p, r)
        for i in range(g)
        for j in range(t)
        for k in range(d)
        for p, r in [(predicted[i, :, j, k], reference[i, :, j, k])]
    ]
    return np.mean(cells)


def test_mmd_agrees_with_the_definition_for_unequal_sizes():
    predicted, reference = ensembles(2, 7, 3, 2)
    reference = reference[:, :5]
    assert marginal_mmd2(predicted, reference) == pytest.approx(naive_mmd2(predicted, reference))


def test_mmd_of_identical_ensembles_vanishes():
    predicted, _ = ensembles(3, 8, 4, 2)
    assert marginal_mmd2(predicted, predicted) == pytest.approx(0.0, abs=1e-14)


def test_mmd_of_one_member_each_is_that_of_two_point_masses():
    distance = 0.7
    predicted = np.zeros((2, 1, 3, 1))
    expected = 2 - 2 * math.exp(-(distance**2) / 2)
    assert marginal_mmd2(predicted, predicted + distance) == pytest.approx(expected)
    many = np.zeros((2, 6, 3, 1))
    assert marginal_mmd2(many, many + distance) == pytest.approx(expected)


def test_mmd_does_not_depend_on_the_order_of_members():
    predicted, reference = ensembles(3, 9, 4, 2)
    shuffled = predicted[:, np.random.default_rng(1).permutation(9)]
    value = marginal_mmd2(predicted, reference)
    assert marginal_mmd2(shuffled, reference) == pytest.approx(value, rel=1e-12)
    assert marginal_mmd2(reference, predicted) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("block", [1, 100, 10**7])
def test_mmd_does_not_depend_on_the_block(block):
    predicted, reference = ensembles(3, 9, 4, 2)
    value = marginal_mmd2(predicted, reference)
    assert marginal_mmd2(predicted, reference, block=block) == pytest.approx(value, rel=1e-12)


def test_mean_kernel_of_gaussians_is_the_closed_form():
    # E k = (1 + 2 s^2)^(-1/2) for independent normal variables of standard deviation s.
    values = np.random.default_rng(0).normal(scale=0.8, size=(200, 16, 5, 1))
    assert distinct_kernel_mean(values) == pytest.approx((1 + 2 * 0.8**2) ** -0.5, rel=0.01)


def test_rmse_of_a_shift_is_the_shift():
    mean, _ = ensembles(4, 5, 3)
    assert rmse(mean, mean) == 0.0
    assert rmse(mean + 0.25, mean) == pytest.approx(0.25)


def test_score_excludes_the_initial_frame_and_standardises():
    reference, _ = ensembles(3, 6, 5, 2)
    predicted = reference + 0.5
    predicted[:, :, 0] += 100.0
    result = score(predicted, reference, Affine(mean=3.0, std=0.25))
    assert result.rmse == pytest.approx(2.0)
    assert result.mmd == pytest.approx(
        marginal_mmd2(4 * predicted[:, :, 1:], 4 * reference[:, :, 1:])
    )


def test_a_deterministic_prediction_has_no_mmd():
    reference, _ = ensembles(3, 6, 5, 2)
    assert score(reference.mean(axis=1), reference, Affine()) == Score(pytest.approx(0.0), None)


def test_single_precision_is_scored_in_double():
    predicted, reference = ensembles(2, 4, 3, 2)
    single = score(predicted.astype(np.float32), reference, Affine())
    assert single.rmse == pytest.approx(score(predicted, reference, Affine()).rmse, rel=1e-6)


def test_a_diverged_forecast_scores_nan():
    predicted, reference = ensembles(2, 4, 3, 2)
    predicted[0, 0, 1, 0] = np.nan
    result = score(predicted, reference, Affine())
    assert math.isnan(result.rmse) and math.isnan(result.mmd)


@pytest.mark.parametrize(
    ("predicted", "reference"),
    [
        ((2, 4, 5, 3), (2, 5, 3)),
        ((2, 4, 5, 3), (2, 4, 1, 3)),
        ((2, 4, 6, 3), (2, 4, 5, 3)),
        ((3, 4, 5, 3), (2, 4, 5, 3)),
        ((2, 0, 5, 3), (2, 4, 5, 3)),
        ((2, 5, 2), (2, 4, 5, 3)),
        ((5, 3), (2, 4, 5, 3)),
    ],
)
def test_wrong_shapes_are_refused(predicted, reference):
    with pytest.raises(InputError, match="has shape"):
        score(np.zeros(predicted), np.zeros(reference), Affine())


def test_rmse_and_mmd_refuse_shapes_that_would_broadcast():
    with pytest.raises(InputError, match="predicted_mean"):
        rmse(np.zeros((2, 5, 3)), np.zeros((1, 5, 3)))
    with pytest.raises(InputError, match="non-empty"):
        marginal_mmd2(np.zeros((2, 4, 5, 3)), np.zeros((2, 4, 5, 1)))


MEMORY = """
import resource, numpy as np
from tampl.evaluation.metrics import marginal_mmd2
ours = np.random.default_rng(0).normal(size=(200, 64, 100, 3))
marginal_mmd2(ours[:2], ours[:2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
marginal_mmd2(ours, ours)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
def test_memory_at_the_size_of_the_paper():
    # A process of its own: a peak is never forgotten, and torch allocates behind tracemalloc.
    # One thread: with two this took 4 s on idle cores but once 35 s on busy ones.
    run = subprocess.run(
        [sys.executable, "-c", MEMORY],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert int(run.stdout) < 300_000


def test_crps_is_that_of_a_gaussian_in_closed_form():
    """E CRPS(N(0, 1), y) = y (2 Phi(y) - 1) + 2 phi(y) - 1 / sqrt(pi); Gneiting and Raftery."""
    predicted = np.random.default_rng(0).normal(size=(1, 20_000, 2, 1))
    for y in (-1.5, 0.0, 0.7):
        phi, cumulative = (
            math.exp(-(y**2) / 2) / math.sqrt(2 * math.pi),
            math.erf(y / math.sqrt(2)),
        )
        expected = y * cumulative + 2 * phi - 1 / math.sqrt(math.pi)
        found = crps(predicted, np.full((1, 1, 2, 1), y), Affine())
        assert found == pytest.approx(expected, abs=0.01)


def test_crps_agrees_with_its_definition_and_with_the_absolute_error():
    predicted, reference = ensembles(2, 5, 4, 3)
    reference = reference[:, :2]
    u, v = predicted[:, :, 1:], reference[:, :, 1:]
    within = [np.abs(u[:, i] - u[:, j]).mean() for i in range(5) for j in range(5) if i != j]
    expected = np.abs(u[:, :, None] - v[:, None]).mean() - np.mean(within) / 2
    assert crps(predicted, reference, Affine()) == pytest.approx(expected)
    alone = np.abs(u[:, :1] - v).mean()
    assert crps(predicted[:, :1], reference, Affine()) == pytest.approx(alone)
