"""Forecasts: bytes that follow from the seed, whatever is forecast together."""

import numpy as np
import pytest
import torch
from scipy import stats

import tampl.models.model
from tampl.data import Normalization, Statistics
from tampl.description import Description, Observable
from tampl.errors import InputError
from tampl.forecast import Forecast
from tampl.microstates import Vector
from tampl.models import MacroModel, ModelSpec, Modules
from tampl.seeding import ambient_seed

MEMBERS = 6


def run(model, states, **options):
    settings = {"horizon": 3, "members": MEMBERS, "seed": 1, "progress": False, **options}
    return model.forecast(states, **settings)


@pytest.fixture
def noises(monkeypatch):
    """The base noise of every rollout as it is used, one list of blocks for each rollout."""
    used, roll_out = [], tampl.models.model.roll_out

    def spy(transition, read, state, noise, envelope):
        used.append([block.clone() for block in noise])
        return roll_out(transition, read, state, used[-1], envelope)

    monkeypatch.setattr(tampl.models.model, "roll_out", spy)
    return used


@pytest.fixture
def vector_model(device):
    description = Description(
        system="vectors",
        parameters={},
        microstate=Vector(size=4),
        observables=(Observable(name="sum", symbol="M", unit="kg"),),
        interval=0.1,
        frames=3,
    )
    spec = ModelSpec.model_validate(
        {
            "latent_dim": 2,
            "encoder": {"name": "mlp", "hidden": [8]},
            "transition": {"name": "flow", "hidden": [8]},
        }
    )
    with ambient_seed(0, "weights"):
        modules = Modules.build(spec, description)
    normalization = Normalization(np.zeros(1), np.ones(1))
    return MacroModel(description, statistics=Statistics(normalization), modules=modules).to(
        device
    )


@pytest.fixture
def ensemble():
    samples = np.random.default_rng(0).random((2, 7, 4, 3))
    return Forecast(samples, 0.5 * np.arange(4), ("S", "I", "Σ"), ("", "1/s", "°C"))


def test_the_same_seed_gives_the_same_bytes(macro_model, lattices):
    first = run(macro_model, lattices)
    torch.rand(3)
    assert run(macro_model, lattices).samples.tobytes() == first.samples.tobytes()


def test_another_seed_gives_other_futures_of_the_same_present(macro_model, lattices):
    one, other = run(macro_model, lattices), run(macro_model, lattices, seed=2)
    np.testing.assert_array_equal(one.samples[:, :, 0], other.samples[:, :, 0])
    assert (one.samples[:, :, 1:] != other.samples[:, :, 1:]).all()


def test_members_and_microstates_have_noise_of_their_own(macro_model, lattices):
    samples = run(macro_model, np.stack([lattices[0]] * 3)).samples
    assert len(np.unique(samples[:, :, 1:, 0])) == 3 * MEMBERS * 3
    assert np.ptp(samples[:, :, 0], axis=(0, 1)).max() < 1e-6


@pytest.mark.parametrize("rows", [1, MEMBERS, 2 * MEMBERS, 4 * MEMBERS + 3, 10**6])
def test_chunks_change_nothing_but_rounding(macro_model, lattices, noises, monkeypatch, rows):
    whole = run(macro_model, lattices)
    ((noise,),) = noises
    noises.clear()
    monkeypatch.setattr(tampl.models.model, "ROWS", rows)
    monkeypatch.setattr(tampl.models.model, "ROWS_GPU", rows)
    chunked = run(macro_model, lattices)
    assert len(noises) == -(-5 // max(1, rows // MEMBERS))
    assert torch.equal(torch.cat([block for (block,) in noises], dim=1), noise)
    np.testing.assert_allclose(chunked.samples, whole.samples, rtol=0, atol=1e-6)


def test_the_company_of_a_microstate_changes_nothing(macro_model, lattices, noises):
    whole, alone = run(macro_model, lattices), run(macro_model, lattices[:2])
    assert torch.equal(noises[0][0][:, : 2 * MEMBERS], noises[1][0])
    np.testing.assert_allclose(alone.samples, whole.samples[:2], rtol=0, atol=1e-6)


def test_a_longer_forecast_begins_with_the_shorter_one(macro_model, lattices):
    short, long = (run(macro_model, lattices, horizon=steps) for steps in (19, 37))
    np.testing.assert_array_equal(long.samples[:, :, :20], short.samples)


def test_one_microstate_needs_no_leading_axis(macro_model, lattices):
    one, stack = run(macro_model, lattices[0]), run(macro_model, lattices[:1])
    assert one.samples.shape == (1, MEMBERS, 4, 3)
    np.testing.assert_array_equal(one.samples, stack.samples)


def test_no_microstates_are_refused(macro_model, lattices):
    with pytest.raises(InputError, match="empty"):
        run(macro_model, lattices[:0])


def test_the_noise_is_standard_normal(macro_model, lattices, noises):
    run(macro_model, lattices, horizon=50, members=20)
    noise = torch.cat(noises[0]).double().numpy()
    assert noise.shape == (50, 5 * 20, macro_model.transition.noise_dim)
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4


def test_samples_are_the_rollouts_of_the_model(macro_model, lattices, noises, device):
    result = run(macro_model, lattices, limits=False)
    with torch.inference_mode():
        z = macro_model.encode(torch.from_numpy(lattices).to(device))
        z = torch.cat([state.expand(MEMBERS, -1) for state in z])
        frames = list(macro_model.rollout(z, noises[0][0].to(z)))
    expected = torch.stack(frames).unflatten(1, (5, MEMBERS)).permute(1, 2, 0, 3)
    np.testing.assert_allclose(result.samples, expected.cpu().numpy(), rtol=0, atol=1e-6)


def test_every_microstate_is_encoded_once(macro_model, lattices):
    rows = []
    macro_model.encoder.register_forward_hook(lambda *call: rows.append(len(call[2])))
    run(macro_model, lattices, horizon=9)
    assert rows == [5]


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_a_deterministic_model_gives_one_member(make_model, lattices, kind):
    result = run(make_model(kind), lattices)
    assert result.samples.shape == (5, 1, 4, 3)
    assert not result.std.any()
    np.testing.assert_array_equal(result.mean, result.samples[:, 0])
    np.testing.assert_array_equal(run(make_model(kind), lattices, seed=7).samples, result.samples)


def test_times_and_labels_are_those_of_the_system(macro_model, lattices, small_sirs):
    result = run(macro_model, lattices, horizon=9)
    np.testing.assert_allclose(result.times, small_sirs.interval * np.arange(10))
    assert result.symbols == ("S", "I", "R") and result.units == ("", "", "")
    assert result.samples.dtype == np.float64


def test_a_forecast_leaves_its_arguments_alone(macro_model, lattices):
    before = {name: tensor.clone() for name, tensor in macro_model.state_dict().items()}
    states = lattices.copy()
    run(macro_model, states)
    assert np.array_equal(states, lattices)
    assert all(torch.equal(before[n], t) for n, t in macro_model.state_dict().items())
    assert not any(p.grad is not None for p in macro_model.parameters())


@pytest.mark.parametrize("options", [{"horizon": 0}, {"horizon": -1}, {"members": 0}])
def test_empty_ensembles_and_horizons_are_refused(macro_model, lattices, options):
    (name, value) = next(iter(options.items()))
    with pytest.raises(InputError, match=f"`{name}` is {value}.*at least 1"):
        run(macro_model, lattices, **options)


def test_a_negative_seed_is_refused(macro_model, lattices):
    with pytest.raises(InputError, match="`seed` is -1"):
        run(macro_model, lattices, seed=-1)


@pytest.mark.parametrize(
    "states",
    [
        np.zeros((2, 9, 9)),
        np.zeros((8, 7)),
        np.zeros(64),
        np.full((8, 8), 3),
        np.full((8, 8), -1),
        np.full((8, 8), 256),
        np.full((8, 8), 0.5),
        np.full((8, 8), np.nan),
        np.full((8, 8), "S"),
    ],
    ids=["size", "width", "flat", "3", "-1", "256", "half", "nan", "text"],
)
def test_wrong_microstates_are_refused(macro_model, states):
    with pytest.raises(InputError, match="`x0`"):
        run(macro_model, states)


def test_vectors_are_forecast_whatever_their_layout(vector_model):
    states = np.random.default_rng(0).random((3, 4))
    expected = run(vector_model, states)
    assert expected.units == ("kg",) and expected.samples.shape == (3, MEMBERS, 4, 1)
    backwards = states[::-1].copy()[::-1]
    frozen = states.copy()
    frozen.flags.writeable = False
    for same in (backwards, frozen, np.asfortranarray(states), states.tolist()):
        np.testing.assert_array_equal(run(vector_model, same).samples, expected.samples)


def test_statistics_are_over_the_members(ensemble):
    members = list(ensemble.samples.transpose(1, 0, 2, 3))
    mean = sum(members) / 7
    variance = sum((member - mean) ** 2 for member in members) / 6
    np.testing.assert_allclose(ensemble.mean, mean, atol=1e-15)
    np.testing.assert_allclose(ensemble.std, np.sqrt(variance), atol=1e-15)
    ordered = np.sort(ensemble.samples, axis=1)
    extremes = ensemble.quantiles([0, 0.5, 1])
    np.testing.assert_array_equal(extremes, ordered[:, [0, 3, 6]].transpose(1, 0, 2, 3))
    assert ensemble.quantiles().shape == (3, 2, 4, 3)


def test_an_ensemble_has_named_axes_for_xarray(ensemble):
    pytest.importorskip("xarray")
    found = ensemble.to_xarray()
    assert found.dims == ("state", "member", "time", "observable")
    np.testing.assert_array_equal(found, ensemble.samples)
    np.testing.assert_array_equal(found["time"], ensemble.times)
    symbol = ensemble.symbols[-1]
    np.testing.assert_array_equal(found.sel(observable=symbol), ensemble.samples[..., -1])
    assert found["unit"].sel(observable=symbol) == ensemble.units[-1]


def test_a_saved_forecast_is_the_same_forecast(ensemble, tmp_path):
    path = tmp_path / "forecast.npz"
    ensemble.save(path)
    loaded = Forecast.load(path)
    np.testing.assert_array_equal(loaded.samples, ensemble.samples)
    np.testing.assert_array_equal(loaded.times, ensemble.times)
    assert (loaded.symbols, loaded.units) == (ensemble.symbols, ensemble.units)
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["mean"], ensemble.mean)
        np.testing.assert_array_equal(file["std"], ensemble.std)
        np.testing.assert_array_equal(
            file["quantiles"], ensemble.quantiles(file["quantile_levels"])
        )
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("keep", [0, 40, -1])
def test_a_damaged_forecast_is_refused(ensemble, tmp_path, keep):
    path = tmp_path / "forecast.npz"
    ensemble.save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"forecast\.npz is no archive of arrays"):
        Forecast.load(path)
    np.savez(path, mean=np.zeros(3))
    with pytest.raises(InputError, match="it lacks 'samples'"):
        Forecast.load(path)


def test_an_interrupted_save_leaves_the_old_file(ensemble, tmp_path, monkeypatch):
    path = tmp_path / "forecast.npz"
    ensemble.save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(KeyboardInterrupt):
        ensemble.save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
