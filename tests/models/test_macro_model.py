"""The macroscopic model is Algorithm 2: encode once, step the latent, read in physical units."""

import numpy as np
import pytest
import torch

from tampl.data import Normalization, Statistics
from tampl.models import MacroModel, Modules
from tampl.seeding import torch_generator

KINDS = ["flow", "mlp", "linear"]


def base_noise(model, z, horizon=4):
    shape = (horizon, len(z), model.transition.noise_dim)
    return torch.randn(shape, generator=torch_generator(0, "noise")).to(z)


@pytest.fixture
def states(lattices, device):
    return torch.from_numpy(lattices).to(device)


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_a_rollout_is_algorithm_two(make_model, states, kind):
    model = make_model(kind)
    z = model.encode(states)
    noise = base_noise(model, z)
    rolled = torch.stack(list(model.rollout(z, noise)))

    one_hot = torch.nn.functional.one_hot(states.long(), 3).permute(0, 3, 1, 2)
    latent = model.encoder(one_hot.to(z.dtype))
    by_hand = [model.readout(latent)]
    for w in noise:
        latent = model.transition(latent, w)
        by_hand.append(model.readout(latent))
    mean, std = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.15, 0.05])
    expected = torch.stack(by_hand).double().cpu().numpy() * std + mean

    assert rolled.shape == (5, 5, 3) and rolled.dtype == torch.float64
    np.testing.assert_allclose(rolled.cpu().numpy(), expected, rtol=0, atol=1e-14)


@torch.inference_mode()
def test_the_encoder_is_applied_to_the_initial_state_only(macro_model, states):
    calls = []
    macro_model.encoder.register_forward_hook(lambda *call: calls.append(len(call[2])))
    z = macro_model.encode(states)
    list(macro_model.rollout(z, base_noise(macro_model, z, horizon=7)))
    assert calls == [len(states)]


@torch.inference_mode()
def test_a_rollout_is_made_frame_by_frame(macro_model, states):
    z = macro_model.encode(states)
    noise = base_noise(macro_model, z)
    frames = macro_model.rollout(z, noise)
    assert torch.equal(next(frames), macro_model.read(z))
    assert torch.equal(next(frames), macro_model.read(macro_model.transition(z, noise[0])))
    assert len(list(macro_model.rollout(z, noise[:0]))) == 1


@torch.inference_mode()
def test_the_readout_speaks_standardised_macrostates(macro_model, dtype, device):
    z = torch.randn(4, 3, generator=torch_generator(0)).to(device, dtype)
    y = macro_model.read(z).cpu().numpy()
    standardised = macro_model.normalization.standardize(y)
    np.testing.assert_allclose(standardised, macro_model.readout(z).cpu().numpy(), atol=1e-6)


@pytest.mark.parametrize(("kind", "stochastic"), [("flow", True), ("mlp", False)])
def test_a_model_knows_whether_its_rollouts_differ(make_model, kind, stochastic):
    assert make_model(kind).stochastic is stochastic


def test_a_linear_transition_starts_at_rest(make_model, states):
    model = make_model("linear")
    z = model.encode(states)
    frames = list(model.rollout(z, base_noise(model, z)))
    assert all(torch.equal(frame, frames[0]) for frame in frames)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_every_parameter(make_model, states, kind):
    model = make_model(kind)
    z = model.encode(states)
    torch.stack(list(model.rollout(z, base_noise(model, z)))).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_statistics_are_a_copy_in_double_precision(macro_model, small_sirs):
    mean, std = np.array([1, 2, 3], np.float32), np.ones(3)
    mean.flags.writeable = std.flags.writeable = False
    model = MacroModel(
        small_sirs.description,
        statistics=Statistics(Normalization(mean, std)),
        modules=Modules.build(macro_model.spec, small_sirs.description),
    )
    assert model.y_mean.dtype == model.y_std.dtype == torch.float64
    model.y_mean.add_(1)
    assert mean.tolist() == [1, 2, 3]


def test_modules_take_others_that_no_model_keeps(macro_model, small_sirs):
    modules = Modules.build(macro_model.spec, small_sirs.description)
    modules.add({"decoder": torch.nn.Linear(2, 2)})
    assert modules.get_submodule("decoder").in_features == 2
    model = MacroModel(
        small_sirs.description,
        statistics=Statistics(macro_model.normalization),
        modules=modules,
    )
    assert {name.split(".")[0] for name, _ in model.named_parameters()} == {
        *("encoder", "transition", "readout")
    }


def test_statistics_live_where_the_weights_are(make_model):
    """A model of modules on some device is on that device as a whole."""
    model = make_model("flow")
    parts = {"encoder": model.encoder, "transition": model.transition, "readout": model.readout}
    modules = Modules(model.spec, **parts).to("meta")
    statistics = model.normalization
    moved = MacroModel(model.description, statistics=Statistics(statistics), modules=modules)
    assert {tensor.device.type for tensor in moved.state_dict().values()} == {"meta"}
