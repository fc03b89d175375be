"""The loss has the conditional mean as its optimum, and the known value there."""

import pytest
import torch
from gaussian_flow import GaussianFlow

from tampl.flow import flow_matching_loss
from tampl.nn import VelocityMLP
from tampl.seeding import ambient_seed, torch_generator

SAMPLES = 200_000


def draw(sigma, device):
    """Latent pairs with z_next ~ N(z, sigma^2), and the draws of the loss."""
    generator = torch_generator(0, "draws")
    shape = (SAMPLES, 2)
    z, xi, epsilon = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in "abc")
    s = torch.rand((SAMPLES, 1), generator=generator, dtype=torch.float64)
    return tuple(tensor.to(device) for tensor in (z, z + sigma * xi, s, epsilon))


def error(estimates):
    """Standard error of the mean of per-sample estimates."""
    return (estimates.std() / len(estimates) ** 0.5).item()


def residual(velocity, z, z_next, s, epsilon):
    return velocity((1 - s) * epsilon + s * z_next, s, z) - (z_next - epsilon)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0, 2.0])
def test_the_optimum_of_a_gaussian_has_the_known_loss(sigma, device):
    flow = GaussianFlow(sigma)
    z, z_next, s, epsilon = draw(sigma, device)
    loss = flow_matching_loss(flow.velocity, z, z_next, s=s, epsilon=epsilon).item()
    squares = residual(flow.velocity, z, z_next, s, epsilon).square().mean(dim=-1)
    assert abs(loss - flow.loss) < 4.5 * error(squares)
    assert error(squares) < 0.01 * flow.loss


def test_the_known_loss_is_the_integral_over_the_flow_time():
    s = (torch.arange(100_000, dtype=torch.float64) + 0.5) / 100_000
    for sigma in (0.1, 0.5, 1.0, 2.0):
        integral = (sigma**2 / GaussianFlow(sigma).variance(s)).mean().item()
        assert integral == pytest.approx(GaussianFlow(sigma).loss, rel=1e-8)


PERTURBATIONS = {
    "constant": lambda u, s, z: torch.ones_like(u),
    "state": lambda u, s, z: u,
    "time": lambda u, s, z: (s - 0.5).expand_as(u),
    "condition": lambda u, s, z: z,
    "all": lambda u, s, z: torch.sin(u + 3 * s - 2 * z),
}


@pytest.mark.parametrize("name", PERTURBATIONS)
@pytest.mark.parametrize("size", [-0.3, 0.3])
def test_a_perturbed_optimum_costs_the_square_of_the_perturbation(name, size, device):
    flow, perturbation = GaussianFlow(0.5), PERTURBATIONS[name]
    z, z_next, s, epsilon = draw(0.5, device)
    perturbed = lambda u, s, z: flow.velocity(u, s, z) + size * perturbation(u, s, z)
    best, worse = (
        flow_matching_loss(velocity, z, z_next, s=s, epsilon=epsilon).item()
        for velocity in (flow.velocity, perturbed)
    )
    delta = size * perturbation((1 - s) * epsilon + s * z_next, s, z)
    cross = 2 * (delta * residual(flow.velocity, z, z_next, s, epsilon)).mean(dim=-1)
    assert abs(worse - best - delta.square().mean().item()) < 4.5 * error(cross)
    assert worse > best


def test_the_loss_is_the_mean_over_batch_and_dimensions(dtype, device, tolerance):
    generator = torch_generator(0, "batch")
    z, z_next, epsilon = torch.randn(3, 4, 3, generator=generator).to(device, dtype)
    s = torch.rand(4, 1, generator=generator).to(device, dtype)
    velocity = lambda u, s, z: u * s + z
    rows = [
        flow_matching_loss(
            velocity, z[n, None], z_next[n, None], s=s[n, None], epsilon=epsilon[n, None]
        )
        for n in range(4)
    ]
    whole = flow_matching_loss(velocity, z, z_next, s=s, epsilon=epsilon)
    torch.testing.assert_close(whole, torch.stack(rows).mean(), **tolerance)
    u = (1 - s) * epsilon + s * z_next
    by_hand = ((u * s + z - z_next + epsilon) ** 2).sum(dim=-1).mean() / 3
    torch.testing.assert_close(whole, by_hand, **tolerance)


def test_gradients_reach_parameters_condition_and_target(dtype, device):
    with ambient_seed(0, "velocity"):
        velocity = VelocityMLP(3, hidden=[8], frequencies=2).to(device, dtype)
    generator = torch_generator(0, "batch")
    z, z_next, epsilon = torch.randn(3, 4, 3, generator=generator).to(device, dtype)
    s = torch.rand(4, 1, generator=generator).to(device, dtype)
    z.requires_grad_()
    z_next.requires_grad_()
    flow_matching_loss(velocity, z, z_next, s=s, epsilon=epsilon).backward()
    for tensor in [*velocity.parameters(), z, z_next]:
        assert tensor.grad.abs().sum() > 0
