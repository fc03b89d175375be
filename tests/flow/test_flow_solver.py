"""Solvers converge at their order, are exact where they must be, and carry noise to the target."""

import math
from itertools import pairwise

import pytest
import torch
from gaussian_flow import GaussianFlow
from hypothesis import given
from hypothesis import strategies as st

from tampl.flow import SOLVERS, euler, midpoint, rk4, solve
from tampl.seeding import torch_generator

ORDERS = {"euler": 1, "midpoint": 2, "rk4": 4}


def column(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


def logistic(w, s, z):
    return z * w * (1 - w)


def observed_order(velocity, w, z, exact, *, step):
    """The slope of the error against the number of steps, between 16 and 32 of them."""
    errors = [
        (solve(velocity, w, z, step=step, steps=steps) - exact).abs().max().item()
        for steps in (16, 32)
    ]
    return math.log2(errors[0] / errors[1])


def test_every_solver_has_an_order():
    assert SOLVERS.keys() == ORDERS.keys()


@pytest.mark.parametrize("name", ORDERS)
def test_order_on_the_logistic_equation(name):
    w, z = column(0.1, 0.3, 0.9), column(2.0, -1.0, 3.0)
    exact = w * z.exp() / (1 - w + w * z.exp())
    order = observed_order(logistic, w, z, exact, step=SOLVERS[name])
    assert order == pytest.approx(ORDERS[name], abs=0.15)


@pytest.mark.parametrize("name", ORDERS)
def test_order_where_the_velocity_depends_on_the_flow_time(name):
    # w' = -2 z s w^2 has the solution w / (1 + z w s^2); a wrong time would cost the order.
    w, z = column(0.5, 1.0, 2.0), column(1.0, 3.0, 0.7)
    exact = w / (1 + z * w)
    velocity = lambda w, s, z: -2 * z * s * w**2
    order = observed_order(velocity, w, z, exact, step=SOLVERS[name])
    assert order == pytest.approx(ORDERS[name], abs=0.15)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.0])
def test_the_flow_of_the_optimal_velocity_is_affine_in_the_noise(sigma):
    w, z = column(-1.5, 0.4, 2.0), column(1.0, -2.0, 0.5)
    solved = solve(GaussianFlow(sigma).velocity, w, z, step=rk4, steps=100)
    torch.testing.assert_close(solved, z + sigma * w, rtol=0, atol=1e-5)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(("step", "degree"), [(euler, 0), (midpoint, 1), (rk4, 3)])
def test_a_velocity_polynomial_in_time_is_integrated_exactly(step, degree, steps):
    w, z = column(1.0, -2.0), column(0.5, 3.0)
    solved = solve(lambda w, s, z: z * s**degree, w, z, step=step, steps=steps)
    torch.testing.assert_close(solved, w + z / (degree + 1), rtol=0, atol=1e-14)
    # One degree more is too much.
    beyond = solve(lambda w, s, z: z * s ** (degree + 1), w, z, step=step, steps=steps)
    assert (beyond - w - z / (degree + 2)).abs().max() > 1e-3 / steps**4


@pytest.mark.parametrize("name", ORDERS)
def test_a_linear_velocity_gives_the_exponential_series(name):
    # One step of a method of order p is the Taylor polynomial of the exponential of degree p.
    w, z = column(1.0, -2.0), column(0.5, -1.5)
    series = sum(z**k / math.factorial(k) for k in range(ORDERS[name] + 1))
    solved = solve(lambda w, s, z: z * w, w, z, step=SOLVERS[name], steps=1)
    torch.testing.assert_close(solved, w * series, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("name", "evaluations"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_evaluations_their_times_and_the_fixed_condition(name, evaluations):
    calls = []

    def velocity(w, s, z):
        assert s.shape == (1, 1)
        calls.append((s[0].item(), z))
        return torch.zeros_like(w)

    w, z = torch.randn(2, 5, 3, generator=torch_generator(0))
    assert torch.equal(solve(velocity, w, z, step=SOLVERS[name], steps=4), w)
    assert len(calls) == 4 * evaluations
    assert all(condition is z for _, condition in calls)
    times = [s for s, _ in calls]
    assert times[::evaluations] == [0.0, 0.25, 0.5, 0.75] and max(times) <= 1


@pytest.mark.parametrize(("name", "steps"), [("euler", 400), ("midpoint", 20), ("rk4", 5)])
def test_the_optimal_velocity_carries_noise_to_the_target(name, steps, device):
    n, mu, sigma = 100_000, 1.5, 0.4
    noise = torch.randn((n, 1), generator=torch_generator(0), dtype=torch.float64).to(device)
    z = torch.full_like(noise, mu)
    w = solve(GaussianFlow(sigma).velocity, noise, z, step=SOLVERS[name], steps=steps)
    assert abs(w.mean().item() - mu) < 4.5 * sigma / n**0.5 + 2e-3
    assert abs(w.std().item() - sigma) < 4.5 * sigma / (2 * n) ** 0.5 + 2e-3
    standard = (w - w.mean()) / w.std()
    assert abs(standard.pow(3).mean().item()) < 4.5 * (6 / n) ** 0.5
    assert abs(standard.pow(4).mean().item() - 3) < 4.5 * (24 / n) ** 0.5


def test_gradients_pass_through_the_solution():
    w, z = column(0.3), column(1.2).requires_grad_()
    solve(logistic, w, z, step=rk4, steps=20).sum().backward()
    y = 0.3 * math.exp(1.2) / (0.7 + 0.3 * math.exp(1.2))
    assert z.grad.item() == pytest.approx(y * (1 - y), abs=1e-6)


@given(grading=st.floats(1, 4), steps=st.integers(1, 12))
def test_graded_steps_shorten_towards_the_end_and_fill_the_interval(grading, steps):
    times = []

    def velocity(w, s, z):
        times.append(s[0].item())
        return torch.ones_like(w)

    w = solve(velocity, column(0.0), column(0.0), step=euler, steps=steps, grading=grading)
    assert w.item() == pytest.approx(1)
    lengths = [b - a for a, b in pairwise([*times, 1.0])]
    assert all(a >= b - 1e-12 for a, b in pairwise(lengths)) and min(lengths) > 0


@pytest.mark.parametrize(("grading", "least"), [(1.0, 0.55), (2.0, 0.93)])
def test_grading_keeps_a_narrow_width(grading, least):
    # The width of the flow to N(m, 0.05^2) is a linear function of the noise: one point shows it.
    sigma = 0.05
    w = solve(
        GaussianFlow(sigma).velocity,
        column(1.0, -1.0),
        column(0.0, 0.0),
        step=midpoint,
        steps=5,
        grading=grading,
    )
    assert least < w[0].item() / sigma < least + 0.1
    assert w[1].item() == pytest.approx(-w[0].item())
