"""Laws that differ in their units alone, and members that leave."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tampl.models.transitions import FlowTransitionSpec

ROOT = Path(__file__).parents[2]

sys.path.append(str(ROOT / "benchmarks"))
runaway = importlib.import_module("runaway")


@pytest.fixture
def problem():
    """An autoregression of width 0.05 in two dimensions."""
    generator = torch.Generator().manual_seed(0)
    z = 0.05 * torch.randn(4000, 2, generator=generator)
    z_next = 0.8 * z + 0.03 * torch.randn(4000, 2, generator=generator)
    transition = FlowTransitionSpec(name="flow", hidden=(32, 32), draws=4)
    spec = SimpleNamespace(transition=transition, latent_dim=2)
    return SimpleNamespace(model=SimpleNamespace(spec=spec), z=z, z_next=z_next)


@pytest.mark.parametrize("name", ["unit width", "unit target", "increments"])
def test_a_law_finds_the_mean_of_a_step(problem, name):
    step = runaway.fit(runaway.LAWS[name], problem, seed=0, steps=1500)
    error = runaway.find_one_step_error(problem, step)
    true = (problem.z_next - 0.8 * problem.z).square().mean().sqrt()
    best = true / (problem.z_next - problem.z).square().mean().sqrt()
    assert error == pytest.approx(float(best), rel=0.1)


@torch.no_grad()
def test_a_unit_width_flow_is_the_flow_of_scaled_states(problem):
    torch.manual_seed(0)
    law = runaway.LAWS["unit width"](problem)
    z, noise = problem.z[:5], torch.randn(5, 2)
    width = problem.z.std(dim=0).mean()
    assert torch.allclose(law(z, noise), width * law.flow(z / width, noise))
    s, scaled = torch.rand(5, 1), (problem.z[:5] / width, problem.z_next[:5] / width)
    draws = {"s": s, "epsilon": noise}
    own = runaway.flow_matching_loss(law.flow.velocity, *scaled, **draws)
    assert law.loss(z, problem.z_next[:5], draws) == pytest.approx(float(own))


@torch.no_grad()
def test_condition_and_target_have_units_of_their_own(problem):
    torch.manual_seed(0)
    z, noise, width = problem.z[:5], torch.randn(5, 2), problem.z.std(dim=0).mean()
    target, condition = (runaway.LAWS[f"unit {name}"](problem) for name in ("target", "condition"))
    assert torch.allclose(target(z, noise), width * target.flow(z, noise))
    assert torch.allclose(condition(z, noise), condition.flow(z / width, noise))


def test_laws_start_from_the_same_weights(problem):
    made = [runaway.fit(build, problem, seed=3, steps=1) for build in runaway.LAWS.values()]
    first, *others = (
        next(p for name, p in law.named_parameters() if name.endswith("mlp.0.bias"))
        for law in made
    )
    assert all(torch.allclose(first, other, atol=1e-2) for other in others)  # one step of 2e-3


def test_macrostates_beyond_the_doubled_range_have_run_away():
    truth = np.linspace(-1, 1, 9).reshape(1, 1, 9, 1)
    y = np.zeros((1, 2, 9, 1))
    y[0, 1, 3:, 0], y[0, 1, 8, 0] = 3.5, np.nan
    gone = runaway.find_runaways(y, truth)
    assert gone[0].tolist() == [[False] * 9, [False] * 3 + [True] * 6]


def test_the_widths_are_those_of_principal_axes():
    z = torch.randn(20_000, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 1])
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    assert runaway.find_widths(z @ turn) == pytest.approx([3, 1], rel=0.02)
