"""`fit` on arrays: all methods, all kinds, defaults, the user's own module, units of vectors."""

import numpy as np
import pytest
import torch
from torch import nn

import tampl
from tampl import Dataset, InputError, TrainingSpec
from tampl.methods import METHODS
from tampl.methods.defaults import complete_architecture, default_training
from tampl.methods.tampl import Refit

PLUS = tampl.TamplPlus(latent_dim=3, refit=Refit(steps=20, hidden=(16,)))
FAST = {"epochs": 2, "progress": False, "device": "cpu"}


def walk(runs=24, frames=9, scale=1.0, seed=0):
    """A noisy damped rotation among idle coordinates; its first coordinate is observed."""
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(runs, frames, 2)) @ [1, 1j]
    c = np.empty((runs, frames), complex)
    c[:, 0] = noise[:, 0]
    for t in range(1, frames):
        c[:, t] = 0.95 * np.exp(0.4j) * c[:, t - 1] + 0.05 * noise[:, t]
    idle = generator.normal(size=(runs, frames, 2))
    x = np.concatenate([c.real[..., None], c.imag[..., None], idle], axis=-1)
    kind = tampl.Vector(size=4)
    return Dataset(scale * x, c.real, observables=["q"], microstate=kind)


def lattices(runs=12, frames=4):
    x = np.random.default_rng(0).integers(0, 3, (runs, frames, 8, 8))
    return Dataset(x, (x == 1).mean(axis=(2, 3)), observables=["I"])


def particles(runs=12, frames=4):
    generator, gas = np.random.default_rng(0), tampl.Particles(count=5, types=2, box=2.0)
    r = 2 * generator.random((runs, frames, 5, 2))
    x = gas.encode(r, np.array([1, 1, 2, 2, 2]))
    return Dataset(x, r.mean(axis=(2, 3)), microstate=gas)


def pictures(runs=12, frames=4):
    x = np.random.default_rng(0).integers(0, 256, (runs, frames, 16, 16)).astype(np.uint8)
    return Dataset(x, x.mean(axis=(2, 3)), microstate=tampl.Image(height=16, width=16))


def same_weights(one, other):
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_arrays_and_forecasts(name):
    data = walk()
    model = METHODS[name].fit(data, **FAST)
    ahead = model.forecast(data.x[:3, 0], y0=data.y[:3, 0], members=4, progress=False)
    assert ahead.samples.shape == (3, 4 if model.stochastic else 1, 9, 1)
    assert np.isfinite(ahead.samples).all() and not model.training
    assert len(model.history) == sum(turn.epochs for turn in METHODS[name].turns(_two_epochs()))


def _two_epochs():
    return TrainingSpec(epochs=2)


@pytest.mark.parametrize("make", [lattices, particles, pictures], ids=lambda make: make.__name__)
@pytest.mark.parametrize("method", [PLUS, tampl.JldRecon(latent_dim=3)])
def test_every_kind_has_defaults(make, method):
    data = make()
    model = method.fit(data, **FAST)
    assert model.spec.latent_dim == 3
    assert np.isfinite(model.forecast(data.x[0, 0], members=2, progress=False).mean).all()


def test_the_same_seed_gives_the_same_bytes_and_another_one_others():
    data = walk()
    fits = [tampl.Tampl().fit(data, seed=seed, **FAST) for seed in (1, 1, 2)]
    assert same_weights(fits[0], fits[1]) and not same_weights(fits[0], fits[2])


def test_a_recipes_records_say_the_same_as_arguments():
    train, valid = walk().split(0.8, 0.2, seed=0)
    plain = tampl.Tampl(latent_dim=3).fit(train, valid, seed=7, encoder="linear", **FAST)
    architecture = complete_architecture(train, latent_dim=3, encoder="linear")
    training = default_training(train, epochs=2).model_copy(update={"seed": 7})
    said = tampl.Tampl().fit(
        train, valid, architecture=architecture, training=training, device="cpu", progress=False
    )
    assert same_weights(plain, said) and plain.spec == said.spec
    with pytest.raises(InputError, match="give no part of it beside"):
        tampl.Tampl().fit(train, architecture=architecture, encoder="mlp", **FAST)


def test_a_tenth_validates_where_no_validation_set_is_given():
    data = walk(runs=20)
    train, valid = data.split(0.9, 0.1, seed=0)
    alone, both = tampl.Tampl().fit(data, **FAST), tampl.Tampl().fit(train, valid, **FAST)
    assert same_weights(alone, both)


def test_one_trajectory_trains_and_validates(capsys):
    model = tampl.Tampl().fit(walk(runs=1, frames=40), **FAST)
    assert "one initial state only" in capsys.readouterr().err
    assert model.forecast(np.zeros(4), members=2, progress=False).samples.shape == (1, 2, 40, 1)


class Own(nn.Module):
    """A user's encoder."""

    def __init__(self, outputs=3):
        super().__init__()
        self.linear = nn.Linear(4, outputs)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def test_any_module_is_an_encoder_and_comes_back_with_the_model(tmp_path):
    data, module = walk(), Own()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = PLUS.fit(data, encoder=module, **FAST)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"class 'Own' .* give one as `encoder`"):
        tampl.load(tmp_path / "model.safetensors")
    again = tampl.load(tmp_path / "model.safetensors", encoder=Own())
    ours, theirs = (m.forecast(data.x[0, 0], members=3, progress=False) for m in (model, again))
    np.testing.assert_array_equal(ours.samples, theirs.samples)


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (Own(outputs=5), r"gives latent states of shape \(2, 5\) where \(2, 3\) are needed"),
        (nn.Linear(7, 3), "does not take a batch of network input of shape"),
        ("lattice", "takes lattice microstates, not vector ones"),
        ("transformer", r"`encoder\.name` is 'transformer'; choose one of lattice"),
        ("resnet", r"`encoder\.weights` is missing"),
    ],
)
def test_encoders_that_do_not_fit_are_refused(encoder, words):
    with pytest.raises(InputError, match=words):
        tampl.Tampl(latent_dim=3).fit(walk(), encoder=encoder, **FAST)


@pytest.mark.parametrize(
    "options", [{"epochs": 0}, {"seed": -1}, {"device": "abacus"}, {"device": "hpu"}]
)
def test_wrong_settings_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        tampl.Tampl().fit(walk(), **{**FAST, **options})


@pytest.mark.parametrize("method", [tampl.Tampl(latent_dim=3), PLUS])
def test_units_of_vectors_do_not_matter(method):
    """Scaling by a power of two is exact, so that weights and scores are the same to the bit."""
    scores = []
    for scale in (1.0, 1024.0, 1 / 1024):
        train, valid, test = walk(scale=scale).split(0.6, 0.2, 0.2, seed=0)
        model = method.fit(train, valid, **FAST)
        scores.append(tampl.evaluate(model, test, progress=False).rmse)
    assert scores[0] == scores[1] == scores[2]


def test_defaults_follow_the_amount_of_data():
    small, large = default_training(walk(runs=4)), default_training(walk(runs=4000, frames=40))
    assert small.batch_size == 32 and large.batch_size == 512
    assert small.epochs == 200 and 10 <= large.epochs < 30
    assert default_training(walk(), epochs=7).epochs == 7


def test_a_validation_set_of_another_system_is_refused():
    train, data = walk(), walk()
    other = Dataset(
        data.x, data.y, interval=9.0, observables=["q"], microstate=tampl.Vector(size=4)
    )
    with pytest.raises(InputError, match=r"`interval` is 1\.0 in the training set, 9\.0"):
        tampl.Tampl().fit(train, other, **FAST)
    with pytest.raises(InputError, match=r"`train` is a ndarray; give a tampl\.Dataset"):
        tampl.Tampl().fit(data.x, data.y, **FAST)


def test_few_initial_states_with_many_trajectories_have_a_validation_set():
    data = walk(runs=4).select(np.repeat(np.arange(4), 5))
    model = tampl.Tampl().fit(data, **FAST)
    assert model.history[-1]["validation"] is not None


@pytest.mark.parametrize(
    "method", [tampl.MacroOnly(latent_dim=5), tampl.TamplPlus(tampl=tampl.Tampl(latent_dim=3))]
)
def test_settings_without_effect_are_refused(method):
    with pytest.raises(InputError, match="latent_dim"):
        method.fit(walk(), **FAST)


@pytest.mark.parametrize("name", ["tampl+", "vamp"])
def test_a_training_that_is_left_in_its_first_part_says_so(name, capsys):
    METHODS[name].fit(walk(), deadline=0.0, **FAST)
    assert "before all parts of the model were trained" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, d: m.forecast(d.x[0, 0], horizon=2.5), "`horizon` is 2.5; .* an integer"),
        (lambda m, d: m.forecast(d.x[0, 0], members=0), "`members` is 0"),
        (lambda m, d: m.forecast(d.x[:2, 0], y0=np.full((2, 1), np.nan)), "`y0` holds NaN"),
        (lambda m, d: m.forecast(d.x[:2, 0], y0=np.zeros((3, 1))), r"`y0` has shape \(3, 1\)"),
        (lambda m, d: m.save("no/such/folder/model.safetensors"), "its folder does not exist"),
        (lambda m, d: tampl.evaluate(m, d.x), "`data` is a ndarray; give a model and"),
        (lambda m, d: tampl.evaluate(d, m), "`model` is a Dataset"),
    ],
)
def test_wrong_calls_of_a_model_are_one_line(call, words):
    data = walk()
    model = tampl.Tampl(latent_dim=2).fit(data, **FAST)
    with pytest.raises(InputError, match=words):
        call(model, data)
