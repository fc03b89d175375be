"""Transitions: their losses, their draws, and noise that enters as data."""

import pytest
import torch
from torch import nn

from tampl.flow import flow_matching_loss, midpoint, solve
from tampl.models import CalibratedFlowTransition, DeterministicTransition, FlowTransition
from tampl.models.transitions import LEAST_WIDTH, Units
from tampl.nn import VelocityMLP
from tampl.seeding import ambient_seed, torch_generator

DIM = 3


@pytest.fixture
def flow(dtype, device):
    with ambient_seed(0, "flow"):
        velocity = VelocityMLP(DIM, hidden=[16], frequencies=2)
    return FlowTransition(velocity, DIM, step=midpoint, steps=2).to(device, dtype)


@pytest.fixture
def linear(dtype, device):
    with ambient_seed(0, "linear"):
        return DeterministicTransition(nn.Linear(DIM, DIM)).to(device, dtype)


@pytest.fixture
def pairs(dtype, device):
    return torch.randn(2, 6, DIM, generator=torch_generator(0, "pairs")).to(device, dtype)


def test_the_deterministic_loss_is_the_squared_norm(linear, pairs, tolerance):
    z, z_next = pairs
    by_hand = sum(
        torch.linalg.vector_norm(linear.network(a) - b) ** 2
        for a, b in zip(z, z_next, strict=True)
    )
    torch.testing.assert_close(linear.loss(z, z_next, {}), by_hand / 6, **tolerance)


def test_a_deterministic_transition_needs_no_noise(linear, pairs):
    z, _ = pairs
    assert linear.noise_dim == 0
    assert linear.draw(6, torch_generator(0)) == {}
    assert torch.equal(linear(z, z.new_empty(6, 0)), linear.network(z))


def test_the_loss_of_a_perfect_map_is_zero(pairs):
    z, _ = pairs
    assert DeterministicTransition(nn.Identity()).loss(z, z, {}) == 0


def test_the_flow_loss_is_that_of_flow_matching(flow, pairs, device):
    noise = flow.draw(6, torch_generator(0, device=device))
    assert torch.equal(
        flow.loss(*pairs, noise),
        flow_matching_loss(flow.velocity, *pairs, s=noise["s"], epsilon=noise["epsilon"]),
    )


def test_a_step_of_the_flow_solves_from_the_base_noise(flow, pairs):
    z, noise = pairs
    assert flow.noise_dim == DIM
    assert torch.equal(flow(z, noise), solve(flow.velocity, noise, z, step=midpoint, steps=2))


def test_draws_are_uniform_times_and_normal_noise(flow, dtype, device):
    n = 20_000
    noise = flow.draw(n, torch_generator(0, device=device))
    assert noise.keys() == {"s", "epsilon"}
    assert noise["s"].shape == (n, 1) and noise["epsilon"].shape == (n, DIM)
    assert all(draw.dtype == dtype and draw.device.type == device.type for draw in noise.values())
    s, epsilon = noise["s"].double(), noise["epsilon"].double()
    assert 0 <= s.min() and s.max() <= 1
    assert abs(s.mean().item() - 0.5) < 4.5 / (12 * n) ** 0.5
    assert abs(epsilon.mean().item()) < 4.5 / (DIM * n) ** 0.5
    assert abs(epsilon.var().item() - 1) < 4.5 * (2 / (DIM * n)) ** 0.5


def test_draws_follow_the_generator_and_nothing_ambient(flow, device):
    draw = lambda seed: flow.draw(5, torch_generator(seed, device=device))["epsilon"]
    before = torch.random.get_rng_state()
    first = draw(0)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(draw(0), first) and not torch.equal(draw(1), first)


def test_more_draws_average_the_loss_with_a_time_in_each_part(flow, pairs, device, tolerance):
    flow.draws = 4
    noise = flow.draw(6, torch_generator(0, device=device))
    parts = [
        dict(zip(noise, pair, strict=True))
        for pair in zip(*(value.chunk(4) for value in noise.values()), strict=True)
    ]
    for part, single in enumerate(parts):
        assert (single["s"] >= part / 4).all() and (single["s"] <= (part + 1) / 4).all()
    assert len(torch.unique(noise["epsilon"])) == 4 * 6 * DIM
    together = flow.loss(*pairs, noise)
    flow.draws = 1
    apart = torch.stack([flow.loss(*pairs, single) for single in parts])
    torch.testing.assert_close(together, apart.mean(), **tolerance)


@pytest.mark.parametrize("name", ["flow", "linear"])
def test_gradients_reach_every_parameter_and_both_ends(name, pairs, device, request):
    transition = request.getfixturevalue(name)
    z, z_next = (end.clone().requires_grad_() for end in pairs)
    transition.loss(z, z_next, transition.draw(6, torch_generator(0, device=device))).backward()
    for tensor in [*transition.parameters(), z, z_next]:
        assert tensor.grad.abs().sum() > 0


def make_calibrated(dtype, device):
    with ambient_seed(0, "flow"):
        velocity = VelocityMLP(DIM, hidden=[16], frequencies=2)
    flow = FlowTransition(velocity, DIM, step=midpoint, steps=2)
    return CalibratedFlowTransition(flow).to(device, dtype)


def test_units_are_uncorrelated_and_of_one_size():
    """Whatever linear mixture the values are of, and back to the same values."""
    generator = torch_generator(0, "units")
    mixture = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    x = torch.randn(500, 4, generator=generator, dtype=torch.float64) @ mixture + 7.0
    units = Units(4).double()
    units.calibrate(x)
    u = units(x)
    torch.testing.assert_close(u.mean(dim=0), torch.zeros(4, dtype=torch.float64))
    covariance = u.T @ u / (len(u) - 1)
    torch.testing.assert_close(covariance, torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-8)
    torch.testing.assert_close(units.inverse(u), x)


def conserving(count, dtype=torch.float64):
    """Values whose sum is conserved, and whose third dimension follows the others closely."""
    x = torch.randn(count, 3, generator=torch_generator(0, "fixed"), dtype=torch.float64)
    x[:, 2] = x[:, 0] + 0.003 * x[:, 2]
    return torch.cat([x, 1 - x.sum(dim=1, keepdim=True)], dim=1).to(dtype)


def test_units_do_not_blow_up_what_hardly_varies():
    """A narrow direction keeps a width beside the widest; one that is fixed has no coordinate."""
    x = conserving(500)
    units = Units(4).double()
    units.calibrate(x)
    widths = torch.linalg.svdvals(units.back / x.std(dim=0))
    torch.testing.assert_close(widths[2], LEAST_WIDTH * widths[0])
    assert widths[3] < 1e-12
    torch.testing.assert_close(units.inverse(units(x)), x)
    # Along it nothing is seen.
    torch.testing.assert_close(units(x + 5.0 * x.std(dim=0) ** 2), units(x))


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_what_is_conserved_stays_conserved(precision):
    """Whatever the network says: here it has random weights."""
    z = conserving(400, precision)
    order = torch.randperm(400, generator=torch_generator(0, "order"))
    with ambient_seed(0, "flow"):
        velocity = VelocityMLP(4, hidden=[16], frequencies=2)
    flow = FlowTransition(velocity, 4, step=midpoint, steps=2)
    calibrated = CalibratedFlowTransition(flow).to(precision)
    calibrated.calibrate(z, z[order])
    generator = torch_generator(0, "noise")
    ahead = z
    for _ in range(20):
        ahead = calibrated(ahead, torch.randn(z.shape, generator=generator).to(precision))
    assert (ahead - z).abs().max() > 0.1
    rounding = 1e4 * torch.finfo(precision).eps * ahead.abs().max()
    assert (ahead.sum(dim=1) - 1).abs().max() < rounding


def test_a_number_of_each_trajectory_stays_its_own():
    """It varies between states and never in time, as the magnetisation of a closed system."""
    generator = torch_generator(0, "own number")
    z, z_next = (torch.randn(300, 3, generator=generator) for _ in range(2))
    z_next[:, 1] = z[:, 1]
    with ambient_seed(0, "flow"):
        velocity = VelocityMLP(3, hidden=[16], frequencies=2)
    calibrated = CalibratedFlowTransition(FlowTransition(velocity, 3, step=midpoint, steps=2))
    calibrated.calibrate(z, z_next)
    step = calibrated(z, torch.randn(300, 3, generator=generator))
    torch.testing.assert_close(step[:, 1], z[:, 1], rtol=1e-6, atol=1e-6)
    other = z + torch.tensor([0.0, 0.5, 0.0])
    noise = torch.randn(300, 3, generator=generator)
    assert (calibrated(other, noise) - other - (calibrated(z, noise) - z)).abs().max() > 1e-4


def test_a_calibrated_flow_has_the_loss_of_increments_in_their_units(dtype, device, pairs):
    calibrated = make_calibrated(dtype, device)
    z, z_next = pairs
    calibrated.calibrate(z, z_next)
    state, increment = Units(DIM).to(device, dtype), Units(DIM).to(device, dtype)
    state.calibrate(z)
    increment.calibrate(z_next - z)
    noise = calibrated.draw(6, torch_generator(0, device=device))
    expected = flow_matching_loss(
        calibrated.flow.velocity,
        state(z),
        increment(z_next - z),
        s=noise["s"],
        epsilon=noise["epsilon"],
    )
    torch.testing.assert_close(calibrated.loss(z, z_next, noise), expected)


def test_a_calibrated_step_does_not_depend_on_the_units(dtype, device, pairs):
    """Latent states in other units, calibrated in them, take the same step in those units."""
    z, z_next = pairs
    noise = torch.randn(6, DIM, generator=torch_generator(0, "noise")).to(device, dtype)
    scale = torch.tensor([0.01, 1.0, 300.0], device=device, dtype=dtype)
    shift = torch.tensor([5.0, -1.0, 0.0], device=device, dtype=dtype)
    plain, other = make_calibrated(dtype, device), make_calibrated(dtype, device)
    plain.calibrate(z, z_next)
    other.calibrate(z * scale + shift, z_next * scale + shift)
    found = (other(z * scale + shift, noise) - shift) / scale
    torch.testing.assert_close(found, plain(z, noise), rtol=1e-3, atol=2e-3)


def test_a_dimension_that_does_not_vary_calibrates_to_finite_steps(dtype, device, pairs):
    z, z_next = (states.clone() for states in pairs)
    z[:, 1] = z_next[:, 1] = 0.5
    calibrated = make_calibrated(dtype, device)
    calibrated.calibrate(z, z_next)
    noise = calibrated.draw(6, torch_generator(0, device=device))
    assert calibrated.loss(z, z_next, noise).isfinite()
    step = calibrated(z, noise["epsilon"])
    assert step.isfinite().all()
    torch.testing.assert_close(step[:, 1], z[:, 1], rtol=0, atol=1e-5)
