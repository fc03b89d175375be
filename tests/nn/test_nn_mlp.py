"""MLPs: affine without hidden layers, and gradients everywhere."""

import pytest
import torch
from torch import nn

from tampl.nn import MLP, Residual
from tampl.seeding import ambient_seed, torch_generator


def mixed(function, dtype, device):
    """f(a x + (1 - a) y) and a f(x) + (1 - a) f(y), equal for affine f."""
    generator = torch_generator(0, "points")
    x, y = torch.randn(2, 16, 3, generator=generator).to(device, dtype)
    a = 3 * torch.randn(16, 1, generator=generator).to(device, dtype)
    return function(a * x + (1 - a) * y), a * function(x) + (1 - a) * function(y)


def make(hidden, dtype, device):
    with ambient_seed(0, "mlp"):
        return MLP(3, 2, hidden=hidden).to(device, dtype)


def test_without_hidden_layers_it_is_affine(dtype, device, tolerance):
    torch.testing.assert_close(*mixed(make([], dtype, device), dtype, device), **tolerance)


def test_with_hidden_layers_it_is_not(dtype, device):
    one, other = mixed(make([8], dtype, device), dtype, device)
    assert (one - other).abs().max() > 0.01


@pytest.mark.parametrize("hidden", [(), (8,), (8, 5)])
def test_layers_have_the_given_widths_and_no_activation_at_the_end(hidden, dtype, device):
    mlp = make(hidden, dtype, device)
    widths = [(layer.in_features, layer.out_features) for layer in list(mlp)[::2]]
    assert widths == list(zip((3, *hidden), (*hidden, 2), strict=True))
    assert isinstance(mlp[-1], nn.Linear) and len(mlp) == 2 * len(hidden) + 1


@pytest.mark.parametrize("hidden", [(), (8,), (8, 5)])
def test_gradients_reach_every_parameter(hidden, dtype, device):
    mlp = make(hidden, dtype, device)
    mlp(torch.ones(4, 3, dtype=dtype, device=device)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in mlp.parameters())


def test_a_residual_map_adds_its_function(dtype, device):
    with ambient_seed(0, "residual"):
        function = MLP(3, 3, hidden=[8]).to(device, dtype)
    x = torch.randn(5, 3, generator=torch_generator(0)).to(device, dtype)
    assert torch.equal(Residual(function)(x), x + function(x))
    torch.nn.init.zeros_(function[-1].weight)
    torch.nn.init.zeros_(function[-1].bias)
    assert torch.equal(Residual(function)(x), x)
