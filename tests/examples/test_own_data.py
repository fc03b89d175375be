"""The examples of one's own data: one short file each, from files to a forecast."""

import runpy
import sys
from pathlib import Path

import pytest

import tampl
from tampl.methods import METHODS

ROOT = Path(__file__).parents[2]
EXAMPLES = [ROOT / "examples" / f"own_{name}.py" for name in ("arrays", "lattice", "images", "md")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # MDAnalysis warns of much that is no matter
def test_from_files_to_a_forecast(example, tmp_path, monkeypatch, capsys):
    if example.stem == "own_md":
        pytest.importorskip("MDAnalysisTests")
    # One epoch and the small refit of the tests; the examples take a minute.
    arguments = [str(example), str(tmp_path / "out"), "1"]
    assert len(example.read_text().splitlines()) < 40
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(tampl, "TamplPlus", lambda: METHODS["tampl+"])
    runpy.run_path(str(example), run_name="__main__")
    assert "RMSE" in capsys.readouterr().out
    assert (tmp_path / "out" / "forecast.png").stat().st_size > 0
    assert (tmp_path / "out" / "store" / "source.json").exists()
