"""The lines of the notebook run as they stand, on two cores in well under two minutes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook.py"


@pytest.mark.slow
def test_the_notebook_runs_and_leaves_a_picture_and_a_model(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"forecast.png", "model.safetensors"}
    scores = done.stdout.splitlines()[-1]
    assert scores.startswith("RMSE") and "persistence" in scores
