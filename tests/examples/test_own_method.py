"""The example of a method of one's own: one short file, and a run as any other."""

import json
import runpy
import sys
from pathlib import Path
from unittest.mock import patch

from tampl.methods import METHODS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_method.py"


def test_it_is_one_short_file():
    assert len(EXAMPLE.read_text().splitlines()) <= 150


def test_it_is_checked_trained_and_compared(tmp_path, monkeypatch, capsys):
    tiny = ROOT / "tests" / "tiny.toml"
    arguments = [str(EXAMPLE), "--recipe", str(tiny), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", arguments)
    with patch.dict(METHODS):  # the example registers its method
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "Detached" in capsys.readouterr().out
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())["scores"]
    assert {"tampl", "jld", "detached", "floor"} <= scores.keys()
