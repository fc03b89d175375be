"""Every verb works on a store that no simulator made."""

import json
import tomllib
from itertools import pairwise

import numpy as np
import pytest
import torch

from command import call
from tampl import Forecast
from tampl.data import Store
from tampl.lab.commented import write_commented
from tampl.lab.recipes import propose_recipe, read_recipe
from tampl.methods import METHODS
from tampl.methods.defaults import complete_architecture, default_training
from tampl.models import load_model

RUNS, FRAMES, SIZE = 20, 6, 3


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Whole trajectories, with some frames missing, and several from every initial state."""
    folder, generator = tmp_path_factory.mktemp("foreign"), np.random.default_rng(0)
    starts = np.repeat(generator.normal(size=(RUNS // 2, SIZE)), 2, axis=0)
    walk = starts[:, None] + generator.normal(size=(RUNS, FRAMES, SIZE)).cumsum(axis=1)
    walk[:, 0] = starts
    np.save(folder / "shared.npy", walk)
    lonely = walk + generator.normal(size=(RUNS, 1, 1))
    for k, x in enumerate(lonely):
        kept = np.arange(FRAMES - k % 2)
        np.savez(folder / f"{k}.npz", x=x[kept], t=0.5 * kept)
    options = ("--observable", "end-to-end-distance:dim=1", "--observable", "extension:dim=1")
    files = [folder / f"{k}.npz" for k in range(RUNS)]
    for arguments, out in (
        ((folder / "shared.npy", "--interval", 0.5), "shared"),
        ((*files, "--times", "{file}:t"), "holes"),
    ):
        done = call("import", *arguments, *options, "--out", folder / out)
        assert done.code == 0, done
    return folder


@pytest.fixture(scope="module")
def run(stores):
    out = stores / "run"
    done = call("train", "--data", stores / "shared", "--out", out, "--epochs", 2)
    assert done.code == 0, done
    return out


def test_training_without_a_recipe_is_fit_with_its_defaults(stores, run):
    assert json.loads((run / "run.json").read_text())["method"] == "tampl+"
    store = Store.open(stores / "shared")
    fit = METHODS["tampl+"].fit
    model = fit(store.dataset("train"), store.dataset("valid"), epochs=2, progress=False)
    kept = load_model(run / "best.safetensors", device="cpu").state_dict()
    assert kept.keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert torch.equal(value, kept[name]), name


def test_a_recipe_is_complete_and_commented_and_gives_the_same_run(stores, run):
    printed = call("recipe", stores / "shared").out
    (stores / "mine.toml").write_text(printed)
    recipe, store = read_recipe(stores / "mine.toml"), Store.open(stores / "shared")
    proposed = propose_recipe(store)
    assert recipe.as_tables() == proposed.as_tables()
    tables = tomllib.loads(printed)
    assert tables["training"].keys() == type(recipe.training).model_fields.keys()
    usual = {"lag": 1, "order": "random", "partitions": 1}
    assert {key: tables["training"].pop(key) for key in usual} == usual
    assert tables == proposed.as_tables()  # which leave out what is usual
    assert recipe.system is None and recipe.data is None
    train = store.dataset("train")
    assert recipe.model == complete_architecture(train)
    assert recipe.training == default_training(train)
    lines = printed.splitlines()
    assert "# lags =" in lines  # off by default, and so not among the values
    bare = [
        line
        for above, line in pairwise(lines)
        if " = " in line and not line.startswith("#") and not above.startswith(("#", "["))
    ]
    assert len(bare) < 10, bare
    again = stores / "again"
    options = ("--data", stores / "shared", "--out", again, "--method", "tampl+", "--epochs", 2)
    assert call("train", stores / "mine.toml", *options).code == 0
    assert (again / "best.safetensors").read_bytes() == (run / "best.safetensors").read_bytes()


def test_a_recipe_of_a_simulated_store_names_its_simulator(tmp_path):
    from tampl.data import write_miniature
    from tampl.systems import SIRS

    store = write_miniature(SIRS(size=8, frames=6, clusters=(1, 2)), tmp_path / "sirs")
    (tmp_path / "sirs.toml").write_text(write_commented(propose_recipe(store)))
    recipe = read_recipe(tmp_path / "sirs.toml")
    assert recipe.system == SIRS(size=8, frames=6, clusters=(1, 2))
    assert recipe.data.splits == store.manifest.splits


def test_scores_have_a_floor_where_test_states_have_several_trajectories(stores, run):
    scores = call("evaluate", run, "--data", stores / "shared", "--json").json["scores"]
    assert scores.keys() == {"tampl+", "floor", "mean_trajectory", "persistence"}


@pytest.mark.parametrize("method", ["tampl", "macro-only"])
def test_trajectories_that_stand_alone_with_missing_frames(stores, method, tmp_path):
    out, data = tmp_path / "run", stores / "holes"
    assert Store.open(data).manifest.splits["train"].holes
    options = ("--data", data, "--out", out, "--epochs", 2, "--method", method)
    assert call("train", *options).code == 0
    scores = call("evaluate", out, "--data", data, "--json").json["scores"]
    assert scores.keys() == {method, "mean_trajectory", "persistence"}
    assert all(np.isfinite(score["rmse"]) for score in scores.values())
    assert call("report", out, "--out", tmp_path / "page").code == 0
    page = (tmp_path / "page" / "report.html").read_text()
    assert "own data" in page and "end-to-end distance" in page


def test_forecasts_start_from_a_store_or_from_files(stores, run, tmp_path):
    store = Store.open(stores / "shared")
    test = store.references()
    np.save(tmp_path / "x0.npy", test.x)
    np.save(tmp_path / "y0.npy", test.y[:, 0, 0])
    options = ("--horizon", 4, "--samples", 3)
    command = ("forecast", run, *options, "--initial")
    done = call(*command, store.path, "--out", tmp_path / "a.npz")
    assert done.code == 0, done
    given = call(
        *command, tmp_path / "x0.npy", "--y0", tmp_path / "y0.npy", "--out", tmp_path / "b.npz"
    )
    assert given.code == 0, given
    ours, theirs = (Forecast.load(tmp_path / name) for name in ("a.npz", "b.npz"))
    np.testing.assert_array_equal(ours.samples, theirs.samples)
    np.testing.assert_allclose(ours.samples[:, :, 0], np.repeat(test.y[:, :1, 0], 3, axis=1))
    call(*command, stores / "holes" / "shards", "--out", tmp_path / "c.npz").refused(
        "has no manifest.json"
    )


def test_methods_are_compared_and_settings_swept(stores, tmp_path):
    recipe, data = tmp_path / "mine.toml", ("--data", stores / "shared")
    text = call("recipe", stores / "shared").out
    changed = [("epochs", 2), ("validate_every", 1)]
    for key, value in changed:
        text = "\n".join(
            f"{key} = {value}" if line.startswith(f"{key} = ") else line
            for line in text.split("\n")
        )
    recipe.write_text(text)
    out = tmp_path / "compared"
    done = call("compare", recipe, *data, "--out", out, "--methods", "tampl,vamp", "--json")
    assert done.code == 0, done
    assert {"tampl", "vamp", "floor"} <= done.json["scores"].keys()
    ledger = json.loads((out / "plan.json").read_text())
    assert {line["system"] for line in ledger} == {"own data"}
    swept = call(
        "sweep", recipe, *data, "--out", tmp_path / "swept", "--method", "tampl", "--set",
        "latent_dim=2,3", "--epochs", 1, "--json",
    )  # fmt: skip
    assert swept.code == 0, swept
    assert [row["value"] for row in swept.json["rows"]] == [2, 3]


def test_what_needs_a_simulator_or_a_store_says_so(stores, tmp_path):
    recipe = tmp_path / "mine.toml"
    recipe.write_text(call("recipe", stores / "shared").out)
    words = ("the recipe mine is of own data, which nothing simulates", "`--data`")
    call("simulate", recipe, "--out", tmp_path / "x").refused(*words)
    call("compare", recipe, "--out", tmp_path / "y").refused(*words)
    text = recipe.read_text()
    recipe.write_text(text.replace('name = "own data"', 'name = "own data"\nsize = 3', 1))
    command = ("train", recipe, "--data", stores / "shared", "--out", tmp_path / "z")
    call(*command).refused("unknown key `system.size`; own data has no parameters")
    recipe.write_text(text + "\n[data]\ntrain = 1\n")
    call(*command).refused("[data] says what to simulate, and own data is not")
