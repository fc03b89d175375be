"""The laws that may follow TAMPL's representation are compared on equal terms."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tampl.lab.pipeline import simulate, train
from tampl.lab.recipes import read_recipe
from tampl.methods import Tampl
from tampl.methods.base import make_trainer
from tampl.methods.tampl import Refit

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "tiny.toml"

sys.path.append(str(ROOT / "benchmarks"))
laws = importlib.import_module("laws")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("laws") / "data"
    simulate(read_recipe(TINY), folder)
    return folder


@pytest.fixture(scope="module")
def problem(data):
    return laws.find_problem(str(TINY), data)


@pytest.fixture(scope="module")
def trained(problem):
    trainer = make_trainer(
        laws.Laws(plus=problem.plus),
        problem.train,
        architecture=problem.architecture,
        training=problem.training,
    )
    for _ in trainer.schedule:
        trainer.run_epoch()
    return trainer


def test_the_representation_is_that_of_tampl(problem, trained):
    alone = make_trainer(
        Tampl(),
        problem.train,
        architecture=problem.architecture,
        training=problem.training,
    )
    for _ in alone.schedule:
        alone.run_epoch()
    for name in ("encoder", "readout"):
        theirs = alone.modules.get_submodule(name).state_dict()
        for key, value in trained.modules.get_submodule(name).state_dict().items():
            assert torch.equal(value, theirs[key])


def test_a_run_of_tampl_gives_what_a_training_gives(data, problem, tmp_path):
    recipe = read_recipe(TINY)
    train(recipe, data, tmp_path / "tampl-42", method="tampl", device="cpu")
    taken, trained = (laws.fit_laws(problem, 42, run=run) for run in (tmp_path / "tampl-42", None))
    assert taken["as trained"] == trained["as trained"]
    for name, scores in trained.items():
        assert taken[name]["rmse"] == pytest.approx(scores["rmse"], rel=1e-3)


def test_all_laws_have_the_same_budget(trained):
    stages = [trained.steppers[name] for name in ("refit", "latent", "stochastic", "chain")]
    assert len({(s.steps, s.stage.batch_size, s.stage.optimiser) for s in stages}) == 1
    assert all(s.steps == s.total_steps for s in stages)


def test_a_law_starts_at_the_known_macrostate_where_its_state_holds_it(problem, trained):
    y0 = torch.from_numpy(problem.references.y[:, 0, 0].copy())
    made = laws.make_laws(trained.averaged(), problem)
    for name in ("residual chain", "(z, y)", "(z, y), one-step map"):
        assert torch.allclose(made[name].read(made[name].start), y0, atol=1e-5)


def test_the_flow_and_its_map_are_two_laws_and_the_model_keeps_both(problem, trained):
    made = laws.make_laws(trained.averaged(), problem)
    start, noise = made["(z, y)"].start, torch.zeros_like(made["(z, y)"].start)
    with torch.no_grad():
        first = [made["(z, y), one-step map"].step(start, noise) for _ in range(2)]
        flow = made["(z, y)"].step(start, noise)
        again = made["(z, y), one-step map"].step(start, noise)
    assert torch.equal(first[0], again) and not torch.equal(flow, again)


def test_a_residual_flow_finds_a_linear_law():
    """r' = a r + s eps given (z', r): mean and spread come out."""
    torch.manual_seed(0)
    flow = laws.ResidualFlow(1, 2, Refit(hidden=(64, 64)))
    generator = torch.Generator().manual_seed(0)
    condition = torch.randn(20_000, 2, generator=generator)
    r_next = 0.8 * condition[:, 1:] + 0.3 * torch.randn(20_000, 1, generator=generator)
    flow.calibrate(condition, r_next)
    optimiser = torch.optim.Adam(flow.parameters(), 3e-3)
    for step in range(600):
        optimiser.param_groups[0]["lr"] = 3e-3 * (1 - step / 600)
        batch = torch.randint(20_000, (256,), generator=generator)
        noise = flow.draw(None, 256, generator)
        loss = flow.loss(condition[batch], r_next[batch], noise)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        at = torch.tensor([[0.5, 1.0]]).repeat(8000, 1)
        drawn = flow(at, torch.randn(8000, 1, generator=generator))
    assert drawn.mean() == pytest.approx(0.8, abs=0.06)
    assert drawn.std() == pytest.approx(0.3, abs=0.06)


def test_the_band_of_a_perfect_ensemble_covers_what_it_says():
    drawn = np.random.default_rng(0).normal(size=(300, 64, 9, 1))
    assert laws.coverage(drawn[:, :32], drawn[:, 32:]) == pytest.approx([laws.BAND], abs=0.01)


def test_the_script_prints_a_score_for_each_law_and_seed(data, monkeypatch, capsys):
    command = ["laws.py", str(TINY), "--data", str(data), "--seeds", "1", "2", "--epochs", "1"]
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    laws.main()
    found = json.loads(capsys.readouterr().out)
    assert {len(rows) for rows in found["laws"].values()} == {2}
    assert found["laws"]["z"][0] != found["laws"]["z"][1]
    assert found["initial_states"] == 2 and found["members"] == laws.MEMBERS
    assert 0 < found["floor"]["rmse"] and found["refit"]["steps"] == 10
