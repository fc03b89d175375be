"""Data that are not those of the paper: single trajectories, units, no labels, one test split."""

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from tampl.data.manifest import DataPlan, Split
from tampl.description import Observable
from tampl.errors import InputError
from tampl.evaluation import Cases
from tampl.lab.campaign import Resources
from tampl.lab.comparisons import compare
from tampl.lab.pipeline import evaluate_run, report_runs, simulate, train
from tampl.lab.recipes import read_recipe
from tampl.lab.runs import Run
from tampl.system import InitialState
from tampl.systems import SIRS, SYSTEMS, register_system

TINY = Path(__file__).parents[1] / "tiny.toml"


class Culture(SIRS):
    """Cells in a dish, measured in per cent and hours."""

    state_names: ClassVar[tuple[str, ...]] = ("sane", "ill")

    @property
    def description(self):
        names = (("sane", "S", "%"), ("ill", "I", "%"), ("immune", "R", ""))
        observables = tuple(Observable(name=n, symbol=s, unit=u) for n, s, u in names)
        # Not what SIRS knows of its observables.
        changes = {"system": "culture", "observables": observables, "time_unit": "h", "totals": ()}
        return super().description.model_copy(update=changes)

    def initial(self, generator):
        return InitialState(super().initial(generator).microstate, "")

    def initial_states(self, split, generators, *, start=0):
        return [self.initial(generator) for generator in generators]

    def closures(self):
        return {}


@pytest.fixture(scope="module", autouse=True)
def registered():
    register_system("culture", Culture)
    yield
    del SYSTEMS["culture"]


@pytest.fixture(scope="module")
def recipe():
    """One trajectory from each test microstate, which a plan refuses and a store may hold."""
    tiny = read_recipe(TINY)
    return replace(
        tiny,
        system=Culture(size=8, frames=6, clusters=(1, 2)),
        data=tiny.data.model_copy(update={"members": 1}),
    )


@pytest.fixture(scope="module")
def compared(recipe, tmp_path_factory):
    return compare(recipe, tmp_path_factory.mktemp("single"), methods=["tampl", "vamp"])


def test_single_trajectories_are_scored_without_floor_and_mmd(compared):
    scores = compared.record["scores"]
    assert list(scores) == ["tampl", "vamp", "mean_trajectory", "persistence"]
    assert all(row["mmd"] is None and row["rmse"]["mean"] > 0 for row in scores.values())
    assert compared.record["crps"]["tampl"]["42"] > 0
    header = compared.table.splitlines()[0]
    assert header == "| Method | RMSE | CRPS | latent std | collapsed |"


def test_single_trajectories_have_a_page_that_fits_them(compared):
    page = compared.page.read_text()
    assert "one trajectory: RMSE compares" in page
    assert "neither a noise floor nor an MMD" in page
    assert "The simulation is a single trajectory" in page and "by one simulation" in page
    assert "trained once, with seed 42" in page and "Training seed 42." in page
    for words in ("closures", "textbook", "95 % interval", "many simulations", "faint", "N/A:"):
        assert words not in page, words


def test_the_page_explains_system_observables_methods_and_colours(compared):
    page = compared.page.read_text()
    assert "Cells in a dish, measured in per cent and hours" in page
    assert "S (sane, in %), I (ill, in %) and R (immune), at 6 times 0.5 h apart." in page
    assert "VAMP: latent states by the VAMP-2 score" in page
    for text, color in {"sane": "#e4e4e2", "ill": "#c8322b", "state 2": "#3f7fb5"}.items():
        assert f'<i style="background: {color}"></i>{text}</li>' in page
    assert "<dt>time between frames</dt><dd>0.5 h</dd>" in page
    assert "<dt>S</dt><dd>sane, in %</dd>" in page


def test_the_page_of_one_run_fits_too(compared, tmp_path):
    page = report_runs([compared.out / "runs" / "tampl-42"], tmp_path).read_text()
    assert "single trajectory" in page and "sane, in %" in page and "background: #c8322b" in page
    assert "MMD²" not in page and "closures" not in page
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["crps"]["tampl"] == compared.record["crps"]["tampl"]["42"]


def test_cases_carry_the_units(compared):
    cases = Run.open(compared.out / "runs" / "tampl-42").read_record().cases
    assert cases.axis_labels == ("S / %", "I / %", "R") and cases.time_label == "time / h"
    assert all(case.reference.std is None for case in cases.cases)


def test_cases_from_before_there_were_units_are_read(compared, tmp_path):
    path = compared.out / "runs" / "tampl-42" / "cases.npz"
    with np.load(path) as file:
        old = {key: file[key] for key in file.files if key not in ("units", "time_unit")}
    np.savez(tmp_path / "old.npz", **old)
    cases = Cases.load(tmp_path / "old.npz")
    assert cases.axis_labels == ("S", "I", "R") and cases.time_label == "time"


class Whole(DataPlan):
    """A plan whose test split holds trajectories, as a store from outside may."""

    @property
    def splits(self):
        return super().splits | {"test": Split(count=self.test)}


def test_a_test_split_of_whole_trajectories_is_scored(recipe, tmp_path):
    plan = Whole.model_construct(**recipe.data.model_dump())
    simulate(replace(recipe, data=plan), tmp_path / "data")
    train(recipe, tmp_path / "data", tmp_path / "run")
    scores = evaluate_run(tmp_path / "run", tmp_path / "data")
    assert "floor" not in scores and scores["tampl"].rmse > 0 and scores["tampl"].mmd is None


def test_a_training_that_is_out_of_time_says_what_is_saved(recipe, compared, tmp_path, capsys):
    history = train(recipe, compared.out / "data", tmp_path / "run", deadline=0.0)
    assert not history.finished
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"saved in {tmp_path / 'run'}: the state after epoch 1 of 4 and a first model" in line
    assert Run.open(tmp_path / "run").load_model().stochastic
    assert evaluate_run(tmp_path / "run", compared.out / "data")["tampl"].rmse > 0


def test_a_comparison_does_not_extend_its_runs(recipe, compared):
    """Runs of one length beside runs that were extended to it would be no comparison."""
    longer = replace(recipe, training=recipe.training.model_copy(update={"epochs": 5}))
    with pytest.raises(InputError, match=r"training\.epochs"):
        compare(longer, compared.out, methods=["tampl"], resources=Resources(budget_s=0.0))
