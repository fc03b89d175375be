"""The command line end to end on a tiny lattice, and what it says to wrong input."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from command import call
from tampl.data import Store
from tampl.lab.runs import Run
from tampl.training import Trainer

RECIPE = (Path(__file__).parents[2] / "tiny.toml").read_text()


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def recipe(home):
    path = home / "tiny.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="session")
def data(home, recipe):
    assert call("simulate", recipe, "--out", home / "data").code == 0
    return home / "data"


@pytest.fixture(scope="session")
def run(home, recipe, data):
    outcome = call("train", recipe, "--data", data, "--out", home / "run", "--json")
    assert outcome.code == 0, outcome
    assert outcome.json["epochs"] == 4
    return home / "run"


@pytest.fixture(scope="session")
def evaluated(run, data):
    assert call("evaluate", run, "--data", data).code == 0
    return run


@pytest.fixture
def copy(tmp_path):
    """Copies a folder so that a test may damage it."""

    def make(folder: Path) -> Path:
        return Path(shutil.copytree(folder, tmp_path / folder.name))

    return make


def snapshot(folder: Path):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_check_is_content(data):
    outcome = call("check", data, "--json")
    assert outcome.code == 0
    assert outcome.json["ok"] is True
    assert outcome.json["problems"] == []


def test_simulate_again_changes_nothing(recipe, data):
    before = snapshot(data)
    assert call("simulate", recipe, "--out", data).code == 0
    assert snapshot(data) == before


def test_simulate_refuses_a_device_without_kernels(recipe, tmp_path):
    outcome = call("simulate", recipe, "--out", tmp_path / "data", "--device", "cuda")
    outcome.refused("`device` is 'cuda'", "sirs", "cpu")
    assert not (tmp_path / "data").exists()


def test_forecast_is_reproducible(run, data, tmp_path):
    initial = tmp_path / "initial.npy"
    np.save(initial, Store.open(data).references().x)
    options = ("--initial", initial, "--horizon", 7, "--samples", 5, "--seed", 3, "--json")
    for name in ("a.npz", "b.npz"):
        outcome = call("forecast", run, *options, "--out", tmp_path / name)
        assert outcome.code == 0, outcome
    assert outcome.json["members"] == 5
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz") as file:
        assert file["samples"].shape == (3, 5, 8, 3)
        np.testing.assert_allclose(file["mean"], file["samples"].mean(axis=1))


def test_members_of_several_runs_are_pooled(run, data, tmp_path):
    initial = tmp_path / "initial.npy"
    np.save(initial, Store.open(data).references().x)
    options = ("--initial", initial, "--horizon", 4, "--samples", 6, "--out", tmp_path / "a.npz")
    # The same run twice, once as a folder and once by its model's file.
    outcome = call("forecast", run, run / "best.safetensors", *options, "--json")
    assert outcome.code == 0 and outcome.json["members"] == 6
    assert len(outcome.json["disagreement"]) == 3 and outcome.json["held"] is not None
    assert call("forecast", run, tmp_path, *options).code == 2


@pytest.mark.filterwarnings("always::tampl.errors.ForecastWarning")
def test_a_state_unlike_the_training_set_is_warned_of_in_one_line(run, data, tmp_path):
    strange = np.full_like(Store.open(data).references().x[:1], 2)  # all recovered
    np.save(tmp_path / "strange.npy", strange)
    options = ("--initial", tmp_path / "strange.npy", "--horizon", 2, "--out", tmp_path / "a.npz")
    outcome = call("forecast", run, *options, "--json")
    assert outcome.code == 0 and "outside of the training data" in outcome.json["warnings"][0]
    (line, *_) = outcome.err.splitlines()
    assert line == f"tampl: warning: {outcome.json['warnings'][0]}"


def test_evaluate_says_how_far_to_trust(evaluated, data):
    outcome = call("evaluate", evaluated, "--data", data, "--json")
    trust = outcome.json["trust"]
    assert trust["held"] is not None and trust["plain"]["rmse"] > 0
    assert trust["calibration"]["symbols"] == ["S", "I", "R"]
    assert trust["markov"]["steps"][0] == 1
    text = call("evaluate", evaluated, "--data", data).out
    assert "80 % band covers" in text and "by number of steps" in text


def test_evaluate_prints_all_scores(evaluated, data):
    scores = call("evaluate", evaluated, "--data", data, "--json").json["scores"]
    assert list(scores) == [
        "tampl",
        "mean_field",
        "pair",
        "mean_trajectory",
        "persistence",
        "floor",
    ]
    assert scores["pair"]["mmd"] is None
    assert scores["tampl"]["mmd"] > 0
    said = call("evaluate", evaluated, "--data", data).out
    assert "TAMPL" in said and "CRPS" in said
    crps = call("evaluate", evaluated, "--data", data, "--json").json["crps"]
    assert crps == json.loads((evaluated / "evaluation.json").read_text())["crps"] > 0


def test_report_writes_page_scores_and_figures(evaluated, tmp_path):
    outcome = call("report", evaluated, "--out", tmp_path, "--json")
    page = Path(outcome.json["report"])
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert set(json.loads((tmp_path / "metrics.json").read_text())["scores"]) >= {"tampl", "floor"}
    assert len(list((tmp_path / "figures").glob("*.pdf"))) == 6
    for name in ("scores.md", "scores.tex", "scores.csv"):
        assert "TAMPL" in (tmp_path / name).read_text(), name


def test_report_of_two_seeds_has_a_row_each(evaluated, recipe, data, tmp_path):
    other = tmp_path / "other"
    assert call("train", recipe, "--data", data, "--out", other, "--seed", 7).code == 0
    assert call("evaluate", other, "--data", data).code == 0
    call("report", evaluated, other, "--out", tmp_path / "both")
    scores = json.loads((tmp_path / "both" / "metrics.json").read_text())["scores"]
    assert len([name for name in scores if name.startswith("tampl")]) == 2


def test_same_recipe_same_bytes(run, recipe, data, tmp_path):
    assert call("train", recipe, "--data", data, "--out", tmp_path / "again").code == 0
    for name in ("best.safetensors", "last.safetensors", "recipe.toml", "run.json"):
        assert (tmp_path / "again" / name).read_bytes() == (run / name).read_bytes(), name


def test_saved_recipe_can_be_run_again(run, data, tmp_path):
    resolved = run / "recipe.toml"
    assert call("train", resolved, "--data", data, "--out", tmp_path / "again").code == 0
    ours, theirs = (folder / "best.safetensors" for folder in (run, tmp_path / "again"))
    assert ours.read_bytes() == theirs.read_bytes()


# Wrong input: recipes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("this is not toml", ["not TOML"]),
        (RECIPE.replace("frames = 6", "frames = 6\nbeta = -1.0"), ["system.beta", "-1.0"]),
        (RECIPE.replace("frames = 6", "frames = 6\nbita = 1.0"), ["unknown key", "system.bita"]),
        (RECIPE.replace("epochs = 4", "epochs = 4\nfast = true"), ["training.fast"]),
        (RECIPE + "[surprise]\nkey = 1", ["unknown key", "surprise"]),
        (RECIPE.replace("test = 3", "test = 0"), ["test", "empty"]),
        (RECIPE.replace('name = "sirs"', 'name = "ising"'), ["ising", "sirs"]),
        (RECIPE.replace("\nsize = 8", "\nsize = 2"), ["system.size"]),
    ],
)
def test_bad_recipe(text, words, tmp_path):
    recipe = tmp_path / "bad.toml"
    recipe.write_text(text)
    call("simulate", recipe, "--out", tmp_path / "data").refused(recipe, *words)
    assert not (tmp_path / "data").exists()


def test_missing_recipe(tmp_path):
    missing = tmp_path / "no.toml"
    call("simulate", missing, "--out", tmp_path / "data").refused(missing, "does not exist")


def test_corrected_recipe_may_use_the_folder_of_a_refused_one(data, recipe, tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(RECIPE.replace('name = "lattice"\nwidths = [4, 6]', 'name = "mlp"'))
    out = tmp_path / "run"
    call("train", wrong, "--data", data, "--out", out).refused("vector")
    assert call("train", recipe, "--data", data, "--out", out).code == 0


# Wrong input: stores


def test_missing_shard(recipe, data, copy, tmp_path):
    damaged = copy(data)
    (shard := next(iter(sorted((damaged / "shards").glob("train*"))))).unlink()
    call("check", damaged).refused(shard.name, "missing")
    outcome = call("train", recipe, "--data", damaged, "--out", tmp_path / "run")
    outcome.refused(shard.name, "tampl simulate")
    assert call("simulate", recipe, "--out", damaged).code == 0
    assert call("check", damaged).code == 0


def test_truncated_shard(recipe, data, copy):
    damaged = copy(data)
    shard = next(iter(sorted((damaged / "shards").glob("test*"))))
    shard.write_bytes(shard.read_bytes()[:-200])
    before = snapshot(damaged)
    call("check", damaged).refused(shard.name)
    call("simulate", recipe, "--out", damaged).refused(shard.name)
    assert snapshot(damaged) == before


def test_foreign_shard(recipe, data, copy, tmp_path):
    other_recipe = tmp_path / "other.toml"
    other_recipe.write_text(RECIPE.replace("[data]", "[data]\nseed = 9"))
    assert call("simulate", other_recipe, "--out", tmp_path / "other").code == 0
    damaged = copy(data)
    shard = next(iter(sorted((damaged / "shards").glob("train*"))))
    shutil.copy(tmp_path / "other" / "shards" / shard.name, shard)
    call("check", damaged).refused(shard.name)
    call("train", recipe, "--data", damaged, "--out", tmp_path / "run").refused(shard.name)


def test_flipped_byte_is_not_trained_on(recipe, data, copy, tmp_path):
    damaged = copy(data)
    shard = next(iter(sorted((damaged / "shards").glob("train*"))))
    content = bytearray(shard.read_bytes())
    # A byte of the microstates, somewhere in the middle of them.
    lattice = Store.open(data).dataset("train").x[0].tobytes()
    content[bytes(content).index(lattice) + 100] ^= 1
    shard.write_bytes(content)
    outcome = call("train", recipe, "--data", damaged, "--out", tmp_path / "run")
    outcome.refused(shard.name, "checksum")


def test_store_of_another_recipe_is_not_overwritten(data, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(RECIPE.replace("[data]", "[data]\nseed = 9"))
    before = snapshot(data)
    call("simulate", other, "--out", data).refused(data, "seed")
    assert snapshot(data) == before


def test_no_store(recipe, tmp_path):
    call("train", recipe, "--data", tmp_path, "--out", tmp_path / "run").refused(tmp_path)
    call("check", tmp_path / "none").refused(tmp_path / "none")


# Wrong input: runs


def test_run_of_another_recipe_is_not_overwritten(run, data, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(RECIPE.replace("batch_size = 8", "batch_size = 9"))
    before = snapshot(run)
    outcome = call("train", other, "--data", data, "--out", run)
    outcome.refused(run, "training.batch_size", "8", "9")
    call("train", other, "--data", data, "--out", run, "--epochs", 9).refused("batch_size")
    outcome = call("train", run / "recipe.toml", "--data", data, "--out", run, "--epochs", 3)
    outcome.refused(run, "training.epochs", "4", "3")
    assert snapshot(run) == before


def test_a_finished_run_is_extended_with_more_epochs(evaluated, recipe, data, copy, tmp_path):
    run = copy(evaluated)
    log = json.loads((run / "history.json").read_text())
    outcome = call("train", recipe, "--data", data, "--out", run, "--epochs", 7, "--json")
    assert outcome.json["epochs"] == 7
    assert "extended from 4 to 7 epochs" in outcome.err and "cosine schedule of 7" in outcome.err
    assert json.loads((run / "history.json").read_text())[:4] == log
    call("report", run, "--out", tmp_path / "page").refused("trained further", "tampl evaluate")
    assert call("evaluate", run, "--data", data).code == 0
    page = Path(call("report", run, "--out", tmp_path / "page", "--json").json["report"])
    assert "extended from 4 to 7 epochs" in page.read_text()
    # The same length again is nothing new, and the old one is refused.
    assert call("train", recipe, "--data", data, "--out", run, "--epochs", 7).err == ""
    call("train", recipe, "--data", data, "--out", run).refused("training.epochs", "7", "4")


def test_an_extended_run_goes_on_from_its_last_state(run, recipe, data, copy, tmp_path):
    """Its first epochs are those before; the others those of no other training."""
    extended = copy(run)
    whole = tmp_path / "whole"
    assert call("train", recipe, "--data", data, "--out", extended, "--epochs", 6).code == 0
    assert call("train", recipe, "--data", data, "--out", whole, "--epochs", 6).code == 0
    losses = [
        [epoch["losses"] for epoch in json.loads((folder / "history.json").read_text())]
        for folder in (run, extended, whole)
    ]
    assert len(losses[1]) == len(losses[2]) == 6
    assert losses[1][:4] == losses[0] and losses[1][4:] != losses[2][4:]
    assert (extended / "last.safetensors").read_bytes() != (run / "last.safetensors").read_bytes()


def test_a_method_of_several_turns_is_not_extended(recipe, data, tmp_path):
    options = ("--data", data, "--out", tmp_path / "run", "--method", "vamp")
    assert call("train", recipe, *options).code == 0
    before = snapshot(tmp_path / "run")
    call("train", recipe, *options, "--epochs", 6).refused("vamp", "2 turns", "another folder")
    assert snapshot(tmp_path / "run") == before


def test_an_interrupted_run_says_what_is_saved_and_has_a_model(data, tmp_path, monkeypatch):
    """Ctrl-C in the third of ten epochs, before any validation."""
    recipe, out = tmp_path / "long.toml", tmp_path / "run"
    recipe.write_text(RECIPE.replace("epochs = 4", "epochs = 10"))
    begun, run_epoch = [], Trainer.run_epoch

    def interrupted(trainer):
        begun.append(trainer)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return run_epoch(trainer)

    monkeypatch.setattr(Trainer, "run_epoch", interrupted)
    outcome = call("train", recipe, "--data", data, "--out", out)
    assert outcome.code == 130
    assert f"saved in {out}: the state after epoch 2 of 10 and a first model" in outcome.err
    np.save(tmp_path / "x.npy", Store.open(data).references().x)
    options = ("--initial", tmp_path / "x.npy", "--horizon", 2, "--out", tmp_path / "y.npz")
    assert call("forecast", out, *options).code == 0
    assert Run.open(out).load_model().stochastic
    monkeypatch.undo()
    assert call("train", recipe, "--data", data, "--out", out, "--json").json["epochs"] == 10


def test_an_interrupted_first_epoch_leaves_nothing_and_says_so(
    recipe, data, tmp_path, monkeypatch
):
    def interrupted(trainer):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "run_epoch", interrupted)
    outcome = call("train", recipe, "--data", data, "--out", tmp_path / "run")
    assert outcome.code == 130 and "nothing is saved" in outcome.err


def test_folder_with_other_files_is_not_used(recipe, data, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    call("train", recipe, "--data", data, "--out", tmp_path).refused(tmp_path, "not empty")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_checkpoint_of_another_system(run, tmp_path):
    recipe = tmp_path / "large.toml"
    recipe.write_text(RECIPE.replace("\nsize = 8", "\nsize = 10"))
    assert call("simulate", recipe, "--out", tmp_path / "large").code == 0
    before = snapshot(run)
    call("evaluate", run, "--data", tmp_path / "large").refused("different systems", "10", "8")
    assert snapshot(run) == before


def test_recipe_of_another_system(data, tmp_path):
    recipe = tmp_path / "faster.toml"
    recipe.write_text(RECIPE.replace("frames = 6", "frames = 6\nbeta = 9.0"))
    outcome = call("train", recipe, "--data", data, "--out", tmp_path / "run")
    outcome.refused("beta", "9.0", "8.0")
    assert not (tmp_path / "run").exists()


def test_damaged_checkpoint(run, data, copy):
    damaged = copy(run)
    best = damaged / "best.safetensors"
    best.write_bytes(best.read_bytes()[:1000])
    call("evaluate", damaged, "--data", data).refused(best)


def test_unknown_method_and_device(recipe, data, tmp_path):
    out = tmp_path / "run"
    call("train", recipe, "--data", data, "--out", out, "--method", "magic").refused("magic")
    call("train", recipe, "--data", data, "--out", out, "--device", "abacus").refused("abacus")
    assert not out.exists()


def test_report_needs_an_evaluated_run(run, copy, tmp_path):
    fresh = copy(run)
    (fresh / "evaluation.json").unlink(missing_ok=True)
    call("report", fresh, "--out", tmp_path / "page").refused(fresh, "tampl evaluate")
    call("report", tmp_path / "none", "--out", tmp_path / "page").refused("holds no run")


def test_report_refuses_scores_of_another_model(evaluated, copy, tmp_path):
    """Scores belong to one checkpoint: training on makes them stale."""
    stale = copy(evaluated)
    shutil.copy(stale / "state.safetensors", stale / "best.safetensors")
    call("report", stale, "--out", tmp_path / "page").refused(stale, "evaluate")
    assert not (tmp_path / "page").exists()


def test_report_refuses_runs_of_different_data(evaluated, copy, tmp_path):
    other = copy(evaluated)
    record = json.loads((other / "evaluation.json").read_text())
    assert record.pop("checksum")
    older = {**record, "data": "another", "format": "tampl-run-1"}  # those have no checksum
    (other / "evaluation.json").write_text(json.dumps(older))
    call("report", evaluated, other, "--out", tmp_path / "page").refused("different data")


@pytest.mark.parametrize("change", [{"data": "another"}, {"crps": 0.0}, {"checksum": None}])
def test_report_refuses_a_changed_evaluation(evaluated, copy, tmp_path, change):
    other = copy(evaluated)
    record = json.loads((other / "evaluation.json").read_text())
    (other / "evaluation.json").write_text(json.dumps({**record, **change}))
    call("report", other, "--out", tmp_path / "page").refused("differs from its checksum")


def test_runs_of_one_name_keep_a_row_each(evaluated, copy, tmp_path):
    assert call("report", evaluated, copy(evaluated), "--out", tmp_path / "page").code == 0
    scores = json.loads((tmp_path / "page" / "metrics.json").read_text())["scores"]
    assert len([name for name in scores if name.startswith("tampl")]) == 2


def test_damaged_run(run, data, copy):
    damaged = copy(run)
    (damaged / "run.json").write_text("{")
    call("evaluate", damaged, "--data", data).refused("run.json", "damaged")


def test_killed_start_does_not_block_the_folder(recipe, data, tmp_path):
    """What a kill leaves in the very first write is not taken for somebody's file."""
    (tmp_path / ".run.json.123.tmp").write_text("{")
    assert call("train", recipe, "--data", data, "--out", tmp_path).code == 0
    assert not list(tmp_path.glob("*.tmp"))


# Wrong input: forecasts


@pytest.mark.parametrize(
    ("lattice", "words"),
    [
        (np.zeros((9, 9), np.uint8), ["(9, 9)", "(8, 8)"]),
        (np.zeros((0, 8, 8), np.uint8), ["empty"]),
        (np.zeros((1, 2, 8, 8), np.uint8), ["one axis"]),
        (np.full((8, 8), 3, np.uint8), ["state 3"]),
        (np.full((8, 8), 0.5), ["whole numbers"]),
        (np.zeros((8, 8), "U3"), ["whole numbers"]),
    ],
)
def test_bad_lattice(run, tmp_path, lattice, words):
    initial = tmp_path / "initial.npy"
    np.save(initial, lattice)
    out = tmp_path / "forecast.npz"
    call("forecast", run, "--initial", initial, "--horizon", 3, "--out", out).refused(*words)
    assert not out.exists()


def test_bad_initial_file(run, tmp_path):
    initial = tmp_path / "initial.npy"
    options = ("--horizon", 3, "--out", tmp_path / "forecast.npz")
    call("forecast", run, "--initial", initial, *options).refused(initial, "does not exist")
    initial.write_text("not an array")
    call("forecast", run, "--initial", initial, *options).refused(initial)


def test_several_arrays_in_one_file(run, tmp_path):
    initial = tmp_path / "initial.npz"
    np.savez(initial, a=np.zeros((8, 8), np.uint8))
    options = ("--horizon", 3, "--out", tmp_path / "forecast.npz")
    call("forecast", run, "--initial", initial, *options).refused(initial, "several arrays")


def test_bad_output(run, tmp_path):
    initial = tmp_path / "initial.npy"
    np.save(initial, np.zeros((8, 8), np.uint8))
    options = ("--initial", initial, "--horizon", 3, "--out")
    call("forecast", run, *options, tmp_path / "forecast.csv").refused(".npz")
    call("forecast", run, *options, tmp_path / "no" / "forecast.npz").refused("does not exist")


def test_usage_errors_are_one_line(run):
    call("nonsense").refused("nonsense")
    call("train").refused("--data")
    call("forecast", run, "--initial", "x.npy", "--horizon", 0, "--out", "y.npz").refused(
        "horizon"
    )


def test_one_reference_for_each_state_goes_the_whole_way(tmp_path):
    """Single trajectories are scored by the error of the mean and by CRPS, without a floor."""
    recipe = tmp_path / "single.toml"
    recipe.write_text(RECIPE.replace("members = 4", "members = 1"))
    assert call("simulate", recipe, "--out", tmp_path / "data").code == 0
    options = ("--data", tmp_path / "data", "--device", "cpu")
    assert call("train", recipe, *options, "--out", tmp_path / "run").code == 0
    scored = call("evaluate", tmp_path / "run", "--data", tmp_path / "data", "--json")
    assert scored.code == 0, scored.err
    assert "floor" not in scored.json["scores"] and scored.json["scores"]["tampl"]["mmd"] is None
    assert call("report", tmp_path / "run", "--out", tmp_path / "page").code == 0
