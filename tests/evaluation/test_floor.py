from dataclasses import dataclass

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.evaluation.metrics import floor, score


@dataclass
class Affine:
    mean: float = 1.0
    std: float = 2.0

    def standardize(self, y):
        return (y - self.mean) / self.std


def simulate(generator, means, members):
    noise = generator.normal(scale=1.5, size=(len(means), members, *means.shape[1:]))
    return means[:, None] + noise


def test_the_floor_is_the_expected_score_of_a_second_ensemble():
    generator = np.random.default_rng(0)
    means, members, repeats = generator.normal(size=(6, 5, 2)), 12, 300
    scores, floors = [], []
    for _ in range(repeats):
        reference = simulate(generator, means, members)
        result = score(simulate(generator, means, members), reference, Affine())
        expected = floor(reference, Affine())
        scores.append((result.rmse**2, result.mmd))
        floors.append((expected.rmse**2, expected.mmd))
    difference = np.array(scores) - np.array(floors)
    error = difference.std(axis=0, ddof=1) / np.sqrt(repeats)
    assert np.all(np.abs(difference.mean(axis=0)) < 4 * error)
    # The comparison must be sharp enough to notice a factor N / (N - 1).
    assert np.all(error < 0.02 * np.mean(floors, axis=0))


def test_the_closed_form_for_gaussians():
    reference = simulate(np.random.default_rng(1), np.zeros((400, 4, 1)), 16)
    result, s2 = floor(reference, Affine()), (1.5 / 2.0) ** 2
    assert result.rmse**2 == pytest.approx(2 * s2 / 16, rel=0.03)
    assert result.mmd == pytest.approx(2 / 16 * (1 - (1 + 2 * s2) ** -0.5), rel=0.03)


def test_without_spread_the_floor_is_zero_and_frame_zero_does_not_count():
    reference = np.ones((3, 4, 5, 2))
    reference[:, 0, 0] = 7.0
    result = floor(reference, Affine())
    assert (result.rmse, result.mmd) == (0.0, 0.0)


@pytest.mark.parametrize("shape", [(3, 1, 5, 2), (3, 4, 1, 2), (3, 5, 2), (0, 4, 5, 2)])
def test_too_little_data_is_refused(shape):
    with pytest.raises(InputError, match="at least two members"):
        floor(np.zeros(shape), Affine())
