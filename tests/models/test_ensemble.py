"""Several models: pooled members, moments of the pool, disagreement, and their folder."""

import warnings

import numpy as np
import pytest

import tampl
from tampl.errors import ForecastWarning, InputError
from tampl.forecast import Forecast, Moments
from tampl.models.ensemble import _find_disagreement


@pytest.fixture
def models(make_model):
    return [make_model(seed=seed) for seed in range(3)]


@pytest.fixture
def lattices():
    generator = np.random.default_rng(0)
    return generator.integers(3, size=(4, 8, 8)).astype(np.uint8)


def run(model, states, **options):
    settings = {"horizon": 5, "members": 11, "seed": 1, "progress": False, **options}
    return model.forecast(states, **settings)


def test_members_are_shared_as_evenly_as_can_be(models, lattices):
    found = run(tampl.Ensemble(models), lattices)
    assert found.samples.shape == (4, 11, 6, 3)
    assert found.disagreement.shape == (4,) and (found.disagreement >= 0).all()
    # Which model a member is of can be told by frame 0, which no noise reaches.
    first = found.samples[:, :, 0]
    counts = [np.unique(first[0], axis=0, return_counts=True)[1]]
    assert sorted(counts[0].tolist()) == [3, 4, 4]


def test_the_same_seed_gives_the_same_bytes_and_another_other_ones(models, lattices):
    ensemble = tampl.Ensemble(models)
    one, again = run(ensemble, lattices), run(ensemble, lattices)
    assert one.samples.tobytes() == again.samples.tobytes()
    assert (run(ensemble, lattices, seed=2).samples != one.samples).any()


def test_models_have_noise_of_their_own(make_model, lattices):
    model = make_model()
    found = run(tampl.Ensemble([model, model]), lattices, members=4).samples
    assert (found[:, :2, 1:] != found[:, 2:, 1:]).any()


def test_moments_of_the_pool_are_those_of_its_members(models, lattices):
    ensemble = tampl.Ensemble(models)
    whole, moments = run(ensemble, lattices), run(ensemble, lattices, keep="moments")
    assert isinstance(whole, Forecast) and isinstance(moments, Moments)
    np.testing.assert_allclose(moments.mean, whole.mean, atol=1e-6)
    np.testing.assert_allclose(moments.std, whole.std, atol=1e-6)
    np.testing.assert_allclose(moments.disagreement, whole.disagreement, atol=1e-6)


def test_disagreement_is_zero_for_one_law_and_the_distance_of_two():
    generator = np.random.default_rng(3)
    shape = (6, 4000, 5, 2)
    one, other = (
        Forecast(generator.normal(size=shape), np.arange(5.0), ("a", "b"), ("", ""))
        for _ in range(2)
    )
    scale = np.array([1.0, 1.0])
    assert (_find_disagreement([one, other], scale) < 0.03).all()
    apart = Forecast(other.samples + 3, other.times, other.symbols, other.units)
    # The standard deviation of two means 3 apart is 3 / sqrt(2).
    np.testing.assert_allclose(_find_disagreement([one, apart], scale), 3 / np.sqrt(2), rtol=0.02)
    np.testing.assert_allclose(
        _find_disagreement([one, apart], 10 * scale), 0.3 / np.sqrt(2), rtol=0.02
    )


def test_models_that_disagree_are_warned_of_once(models, lattices):
    for number, model in enumerate(models):
        model.y_mean += number * 5 * model.y_std
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ForecastWarning)
        found = run(tampl.Ensemble(models), lattices)
    assert len(said) == 1 and "the models disagree" in str(said[0].message)
    assert said[0].filename == __file__ and found.warnings == (str(said[0].message),)


def test_an_ensemble_is_evaluated_as_a_model_is(models, tmp_path, small_sirs):
    from tampl.data import write_miniature

    store = write_miniature(small_sirs, tmp_path / "store")
    ensemble = tampl.Ensemble(models)
    found = tampl.evaluate(ensemble, store.references(), progress=False)
    assert np.isfinite(found.rmse) and found.calibration is not None


def test_an_ensemble_is_saved_to_a_folder_and_loaded(models, lattices, tmp_path):
    ensemble, path = tampl.Ensemble(models), tmp_path / "models"
    ensemble.save(path)
    loaded = tampl.load(path, device="cpu")
    assert isinstance(loaded, tampl.Ensemble) and len(loaded.models) == 3
    assert run(loaded, lattices).samples.tobytes() == run(ensemble, lattices).samples.tobytes()
    with pytest.raises(InputError, match="which exists"):
        ensemble.save(path)
    assert isinstance(tampl.load(path / "model-000.safetensors", device="cpu"), tampl.MacroModel)


def test_what_is_no_ensemble_is_refused(models, lattices):
    with pytest.raises(InputError, match="two trained models"):
        tampl.Ensemble(models[:1])
    with pytest.raises(InputError, match="two trained models"):
        tampl.Ensemble([models[0], "model"])
    with pytest.raises(InputError, match="3 models need 3 at least"):
        run(tampl.Ensemble(models), lattices, members=2)
    models[1].description = models[1].description.model_copy(update={"interval": 9.0})
    with pytest.raises(InputError, match="interval"):
        tampl.Ensemble(models)
