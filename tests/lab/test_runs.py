"""A run in a folder: interruption and resume, best and last, one writer, refusals."""

import json
import math
import time
from itertools import pairwise

import pytest

from tampl.errors import InputError
from tampl.lab.runs import Run
from tampl.methods import Jld, Tampl
from tampl.models import load_model
from tampl.training import run_training


class Interrupt(Exception):
    """Stands for a killed process."""


def run_fit(
    bench,
    path,
    *,
    epochs=4,
    save_every=1,
    stop_after=None,
    errors=None,
    deadline=None,
    method=None,
):
    """Trains in a folder; raises after `stop_after` validations, as a kill would."""
    training = bench.training(epochs=epochs, validate_every=1, save_every=save_every)
    answers = iter(errors or [])
    calls = []

    def validate(model):
        calls.append(model)
        if stop_after is not None and len(calls) > stop_after:
            raise Interrupt
        return next(answers, 1.0 / len(calls))

    folder = Run(path)
    with folder.claim({"name": "a"}):
        return run_training(
            bench.trainer(method or Tampl(), training),
            folder,
            make_model=bench.model,
            validate=validate,
            deadline=deadline,
            progress=False,
        )


def without_times(path):
    history = json.loads((path / "history.json").read_text())
    return [{key: value for key, value in r.items() if key != "seconds"} for r in history]


def test_interrupted_run_ends_as_an_uninterrupted_one(bench, tmp_path):
    errors = [3.0, 1.0, 2.0]
    run_fit(bench, tmp_path / "whole", epochs=5, errors=errors)
    with pytest.raises(Interrupt):
        run_fit(bench, tmp_path / "parts", epochs=5, errors=errors, stop_after=1)
    run_fit(bench, tmp_path / "parts", epochs=5, errors=errors[1:])
    assert without_times(tmp_path / "whole") == without_times(tmp_path / "parts")
    for name in ("best.safetensors", "last.safetensors"):
        files = [(tmp_path / run / name).read_bytes() for run in ("whole", "parts")]
        assert files[0] == files[1], name


def test_finished_run_does_nothing_more(bench, tmp_path):
    first = run_fit(bench, tmp_path)
    files = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir() if p.name != "run.json"}
    again = run_fit(bench, tmp_path)
    assert again == first
    assert files == {
        p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir() if p.name != "run.json"
    }


def test_validation_is_in_the_second_half_and_at_the_end(bench, tmp_path):
    history = run_fit(bench, tmp_path, epochs=5)
    validated = [record["epoch"] for record in history.epochs if record["validation"] is not None]
    assert validated == [3, 4, 5]


def test_best_is_the_lowest_error(bench, tmp_path):
    history = run_fit(bench, tmp_path, epochs=5, errors=[0.5, 0.2, 0.4])
    assert (history.best, history.best_epoch) == (0.2, 4)
    best, last = (load_model(tmp_path / f"{name}.safetensors") for name in ("best", "last"))
    assert best.state_dict().keys() == last.state_dict().keys()
    assert any((a != b).any() for a, b in zip(best.parameters(), last.parameters(), strict=True))


def test_rollout_that_blows_up_does_not_stay_the_best(bench, tmp_path):
    history = run_fit(bench, tmp_path, epochs=5, errors=[math.nan, math.inf, 0.3])
    assert (history.best, history.best_epoch) == (0.3, 5)


def test_another_identity_is_refused(tmp_path):
    folder = Run(tmp_path / "run")
    with folder.claim({"recipe": {"seed": 1}}):
        folder.state_file.touch()
    with pytest.raises(InputError, match=r"recipe\.seed"), folder.claim({"recipe": {"seed": 2}}):
        pass


def test_a_start_that_learnt_nothing_does_not_block_the_folder(tmp_path):
    folder = Run(tmp_path / "run")
    for seed in (1, 2):
        with folder.claim({"recipe": {"seed": seed}}):
            pass
    assert folder.read_identity() == {"recipe": {"seed": 2}}


def test_a_model_without_its_state_is_not_overwritten(tmp_path):
    folder = Run(tmp_path / "run")
    with folder.claim({"recipe": {"seed": 1}}):
        folder.best_file.write_bytes(b"precious")
    with pytest.raises(InputError, match="another run"), folder.claim({"recipe": {"seed": 2}}):
        pass


def test_lost_files_of_a_finished_run(bench, tmp_path):
    run_fit(bench, tmp_path)
    last = (tmp_path / "last.safetensors").read_bytes()
    (tmp_path / "last.safetensors").unlink()
    (tmp_path / "history.json").unlink()
    run_fit(bench, tmp_path)
    assert (tmp_path / "last.safetensors").read_bytes() == last
    assert len(without_times(tmp_path)) == 4
    (tmp_path / "best.safetensors").unlink()
    with pytest.raises(InputError, match="is lost"):
        run_fit(bench, tmp_path)


def test_one_writer_at_a_time(tmp_path):
    folder = Run(tmp_path / "run")
    with (
        folder.claim({"a": 1}),
        pytest.raises(InputError, match="another run is writing"),
        folder.claim({"a": 1}),
    ):
        pass


def test_the_checkpoint_before_takes_the_place_of_a_damaged_one(bench, tmp_path, capsys):
    whole = run_fit(bench, tmp_path / "whole")
    run_fit(bench, tmp_path / "run")
    state = tmp_path / "run" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-100])
    again = run_fit(bench, tmp_path / "run")
    assert "the checkpoint before it, is taken" in capsys.readouterr().err
    assert len(again.epochs) == len(whole.epochs)
    files = [(tmp_path / run / "last.safetensors").read_bytes() for run in ("whole", "run")]
    assert files[0] == files[1]
    for name in ("state.safetensors", "state.previous.safetensors"):
        path = tmp_path / "run" / name
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="is damaged"):
        run_fit(bench, tmp_path / "run")


def test_a_deadline_leaves_a_run_to_resume(bench, tmp_path, monkeypatch):
    """An epoch takes a minute: two fit, and the rest follows later."""
    run_fit(bench, tmp_path / "whole", epochs=6)
    minutes = iter(range(1, 1000))
    monkeypatch.setattr(time, "monotonic", lambda: next(minutes))
    history = run_fit(bench, tmp_path / "parts", epochs=6, save_every=100, deadline=1.5)
    assert not history.finished and len(history.epochs) == 2
    assert not (tmp_path / "parts" / "last.safetensors").exists()
    monkeypatch.undo()
    resumed = run_fit(bench, tmp_path / "parts", epochs=6)
    assert resumed.finished
    assert without_times(tmp_path / "whole") == without_times(tmp_path / "parts")
    last = [(tmp_path / run / "last.safetensors").read_bytes() for run in ("whole", "parts")]
    assert last[0] == last[1]


def test_a_collapse_is_one_line_when_it_happens(bench, tmp_path, capsys):
    """Weights that shrink the encoding to nothing: the joint loss leaves only the noise."""
    history = run_fit(bench, tmp_path, method=Jld(lambda_cur=1e-6, lambda_tr=1.0), epochs=40)
    flags = [record["collapsed"] for record in history.epochs]
    assert flags[-1]
    lines = [line for line in capsys.readouterr().err.splitlines() if "collapsed" in line]
    turns = sum(now and not before for before, now in pairwise([False, *flags]))
    assert len(lines) == turns
    assert lines[0].startswith("tampl: the latent scale collapsed in epoch")
