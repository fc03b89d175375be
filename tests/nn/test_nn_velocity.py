"""The velocity field listens to all of its arguments."""

import torch

from tampl.nn import VelocityMLP
from tampl.seeding import ambient_seed, torch_generator


def make(dtype, device):
    with ambient_seed(0, "velocity"):
        return VelocityMLP(3, hidden=[16, 16], frequencies=2).to(device, dtype)


def arguments(dtype, device):
    generator = torch_generator(0, "arguments")
    shapes = [(5, 3), (5, 1), (5, 3)]
    return [
        torch.rand(shape, generator=generator).to(device, dtype).requires_grad_()
        for shape in shapes
    ]


def test_gradients_reach_every_parameter_and_argument(dtype, device):
    velocity, (u, s, z) = make(dtype, device), arguments(dtype, device)
    output = velocity(u, s, z)
    assert output.shape == u.shape and output.dtype == dtype
    output.square().sum().backward()
    for tensor in [*velocity.parameters(), u, s, z]:
        assert (tensor.grad.abs().sum(dim=-1) > 0).all()


def test_rows_do_not_mix(dtype, device):
    velocity, (u, s, z) = make(dtype, device), arguments(dtype, device)
    (gradient,) = torch.autograd.grad(velocity(u, s, z)[0].sum(), u)
    assert gradient[0].abs().sum() > 0 and not gradient[1:].any()


def test_half_precision_between_the_hidden_layers_is_close_and_keeps_the_ends(device):
    with ambient_seed(0, "velocity"):
        exact = VelocityMLP(3, hidden=[64, 64, 64], frequencies=2).to(device)
        rounded = VelocityMLP(3, hidden=[64, 64, 64], frequencies=2, dtype=torch.bfloat16)
    rounded.to(device).load_state_dict(exact.state_dict())
    u, s, z = arguments(torch.float32, device)
    found, expected = rounded(u, s, z), exact(u, s, z)
    assert found.dtype == torch.float32 and not torch.equal(found, expected)
    assert (found - expected).norm() < 0.02 * expected.norm()
    # A change of z below bfloat16's spacing still arrives.
    moved = z * (1 + 1e-3)
    assert torch.equal(moved.bfloat16()[0], z.bfloat16()[0])
    assert not torch.equal(rounded(u, s, moved)[0], found[0])
