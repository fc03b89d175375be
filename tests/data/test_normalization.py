import numpy as np
import pytest

from tampl.data import Normalization
from tampl.errors import InputError


@pytest.fixture
def y():
    rng = np.random.default_rng(0)
    return rng.normal([1.0, -5.0, 1e4], [0.1, 2.0, 1e-3], (6, 7, 3))


def test_standardized_macrostates_have_mean_0_and_variance_1(y):
    z = Normalization.fit(y).standardize(y).reshape(-1, 3)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(z.std(axis=0), 1, rtol=1e-6)


def test_the_statistics_are_those_of_the_population():
    fitted = Normalization.fit(np.array([[[0.0], [2.0]], [[4.0], [6.0]]]))
    assert fitted.mean == [3.0] and fitted.std == [np.sqrt(5.0)]


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_a_constant_feature_is_refused_by_name(y, value):
    y[..., 1] = value
    with pytest.raises(InputError, match=r"feature `1`.*nonzero std"):
        Normalization.fit(y)
    with pytest.raises(InputError, match=r"feature `infected`.*nonzero std"):
        Normalization.fit(y, names=["susceptible", "infected", "recovered"])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_by_name(y, value):
    y[0, 0, 2] = value
    with pytest.raises(InputError, match=r"feature `2`.*NaN or infinity"):
        Normalization.fit(y)


def test_no_data_is_refused():
    with pytest.raises(InputError, match="empty"):
        Normalization.fit(np.empty((0, 4, 3)))


@pytest.mark.parametrize(
    "mean, std", [([0.0], [0.0]), ([0.0], [-1.0]), ([np.nan], [1.0]), ([0.0], [1.0, 1.0])]
)
def test_impossible_statistics_are_refused(mean, std):
    with pytest.raises(InputError, match="`std`"):
        Normalization(np.array(mean), np.array(std))
