"""Provenance is plain data, and never an error."""

import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

import tampl.lab.provenance
from tampl.lab.provenance import provenance
from tampl.version import __version__


@pytest.fixture(autouse=True)
def ask_git_anew():
    tampl.lab.provenance._find_commit.cache_clear()
    yield
    tampl.lab.provenance._find_commit.cache_clear()


def test_git_is_asked_once(monkeypatch):
    first = provenance()["commit"]
    monkeypatch.setattr(subprocess, "run", None)
    assert provenance()["commit"] == first


def test_it_is_plain_data_about_this_process(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/tampl", "train", "--seed", "1"])
    record = provenance()
    assert json.loads(json.dumps(record)) == record
    assert record["tampl"] == __version__
    assert record["python"] == sys.version.split()[0]
    assert record["packages"]["numpy"] == numpy.__version__
    assert record["packages"]["torch"] == torch.__version__
    assert record["threads"] == torch.get_num_threads()
    assert record["command"] == "tampl train --seed 1"
    assert record["device"] == "cpu" and record["cpu"] and record["cores"] >= 1


@pytest.mark.parametrize(
    ("program", "called"),
    [("tools/speed.py", "python tools/speed.py"), ("/elsewhere/speed.py", "speed.py")],
)
def test_a_script_is_named_as_it_is_called(monkeypatch, tmp_path, program, called):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [program, "--json"])
    assert provenance()["command"] == f"{called} --json"


def test_a_package_that_is_absent_has_no_version(monkeypatch):
    monkeypatch.setattr(tampl.lab.provenance, "PACKAGES", ("numpy", "no-such-package"))
    assert provenance()["packages"] == {"numpy": numpy.__version__, "no-such-package": None}


def test_it_does_without_git_and_without_proc(monkeypatch):
    def fail(*args, **kwargs):
        raise FileNotFoundError("git")

    def read(path, *args, **kwargs):
        if path.parts[:2] == ("/", "proc"):
            raise FileNotFoundError(path)
        return read_text(path, *args, **kwargs)

    read_text = Path.read_text
    monkeypatch.setattr(subprocess, "run", fail)
    monkeypatch.setattr(Path, "read_text", read)
    record = provenance()
    assert record["commit"] is None and isinstance(record["cpu"], str)


def test_a_failing_git_gives_no_commit(monkeypatch):
    def fail(command, **kwargs):
        raise subprocess.CalledProcessError(128, command)

    monkeypatch.setattr(subprocess, "run", fail)
    assert provenance()["commit"] is None


def test_the_device_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU of {device}")
    assert provenance("cuda:1")["device"] == "GPU of cuda:1"
