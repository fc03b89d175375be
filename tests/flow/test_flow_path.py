"""The path starts at the noise, ends at the target and is straight."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.flow import interpolate
from tampl.seeding import torch_generator


@pytest.fixture
def ends(dtype, device):
    """A target and a noise."""
    return torch.randn(2, 6, 3, generator=torch_generator(0, "ends")).to(device, dtype)


def test_the_path_goes_from_the_noise_to_the_target(ends):
    z_next, epsilon = ends
    s = torch.ones_like(z_next[:, :1])
    assert torch.equal(interpolate(z_next, 0 * s, epsilon).u, epsilon)
    assert torch.equal(interpolate(z_next, s, epsilon).u, z_next)


def test_the_velocity_is_the_derivative(ends, tolerance):
    z_next, epsilon = ends
    s = torch.rand(6, 1, generator=torch_generator(1)).to(z_next)
    jacobian = torch.autograd.functional.jacobian(lambda s: interpolate(z_next, s, epsilon).u, s)
    sample = interpolate(z_next, s, epsilon)
    torch.testing.assert_close(sample.velocity, jacobian.sum(dim=(-2, -1)), **tolerance)
    assert torch.equal(sample.s, s)


@settings(max_examples=30, deadline=None)
@given(s=st.floats(0, 1), t=st.floats(0, 1))
def test_the_path_is_straight(s, t):
    z_next, epsilon = torch.tensor([[[1.0, -2.0]], [[0.5, 3.0]]], dtype=torch.float64)
    at = lambda time: interpolate(z_next, torch.full((1, 1), time, dtype=torch.float64), epsilon)
    one, other = at(s), at(t)
    expected = one.u + (t - s) * one.velocity
    torch.testing.assert_close(other.u, expected, rtol=0, atol=1e-13)
    assert torch.equal(one.velocity, other.velocity)
