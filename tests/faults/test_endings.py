"""Trainings that end before their time or badly keep what they can, and say so."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from command import call
from tampl.data import Store
from tampl.lab.runs import Run
from tampl.methods import base
from tampl.training.stepper import Stepper

RECIPE = (Path(__file__).parents[1] / "tiny.toml").read_text()
# A job in the background ignores Ctrl-C, which the command is to see here.
COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tampl.lab.cli import main
main()
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endings")
    (folder / "tiny.toml").write_text(RECIPE)
    assert call("simulate", folder / "tiny.toml", "--out", folder / "data").code == 0
    return folder / "data"


def begin(data, folder, **settings):
    """The arguments of a training with other settings in place of the recipe's."""
    text = RECIPE
    for key, value in settings.items():
        text = re.sub(f"^{key} = .*", f"{key} = {value}", text, flags=re.MULTILINE)
    (folder / "recipe.toml").write_text(text)
    options = ("--data", data, "--out", folder / "run", "--device", "cpu")
    return ("train", folder / "recipe.toml", *options)


def wait_for(path, process, seconds=120):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end and process.poll() is None, f"no {path.name}"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_first_and_says_what_is_saved(data, tmp_path, number):
    arguments = begin(data, tmp_path, epochs=100_000, validate_every=100_000, save_every=7)
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    run = tmp_path / "run"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(run / "history.json", process)
            os.kill(process.pid, number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in said
    found = re.search(rf"saved in {run}: the state after epoch (\d+) of 100000 and a first", said)
    assert found, said
    assert len(json.loads((run / "history.json").read_text())) == int(found[1])
    assert Run.open(run).load_model().stochastic
    short = begin(data, tmp_path, epochs=100_000, validate_every=100_000, save_every=1)
    assert call(*short, "--epochs", 1).code == 2  # the run is known, and not begun anew


def test_a_loss_that_is_not_finite_says_epoch_stage_and_what_is_kept(data, tmp_path, monkeypatch):
    step = Stepper.step

    def spoil(stepper, *batch):
        losses = step(stepper, *batch)
        late = stepper.stage.name == "transition" and stepper.steps > 3 * stepper.total_steps // 4
        return {name: value * (np.nan if late else 1) for name, value in losses.items()}

    arguments = begin(data, tmp_path, epochs=8, validate_every=2, save_every=50)
    monkeypatch.setattr(Stepper, "step", spoil)
    ended = call(*arguments)
    assert ended.code == 2
    assert "transition stage of epoch 7: the loss is nan" in ended.err.splitlines()[-1]
    kept = "kept: the state after epoch 6 of 8 and the best model so far, of epoch 6"
    assert kept in ended.err.splitlines()[-1]
    monkeypatch.undo()
    done = call(*arguments, "--json")
    assert done.code == 0 and done.json["epochs"] == 8


def test_a_model_without_a_finite_validation_is_warned_of_everywhere(data, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "rollout_rmse", lambda *arguments, **options: np.inf)
    run, text = tmp_path / "run", "no validation"
    trained = call(*begin(data, tmp_path))
    assert trained.code == 0 and text in trained.err
    scored = call("evaluate", run, "--data", data)
    assert scored.code == 0 and text in scored.err
    np.save(tmp_path / "x.npy", Store.open(data).references().x)
    options = ("--initial", tmp_path / "x.npy", "--horizon", 2, "--out", tmp_path / "y.npz")
    forecast = call("forecast", run, *options)
    assert forecast.code == 0 and text in forecast.err
    assert call("report", run, "--out", tmp_path / "page").code == 0
    assert text in (tmp_path / "page" / "report.html").read_text()


def test_a_file_that_ends_too_early_is_no_interruption(data, tmp_path):
    """Click takes the end of a file for Ctrl-C."""
    run = tmp_path / "run"
    assert call(*begin(data, tmp_path)).code == 0
    assert call("evaluate", run, "--data", data).code == 0
    content = (run / "cases.npz").read_bytes()
    for keep in (0, 1, 40, 200, len(content) - 1):
        (run / "cases.npz").write_bytes(content[:keep])
        report = call("report", run, "--out", tmp_path / "page")
        report.refused(run / "cases.npz", "evaluate")
    assert call("evaluate", run, "--data", data).code == 0
    assert Run.open(run).read_record().cases.cases
