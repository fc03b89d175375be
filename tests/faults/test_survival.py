"""The recorded script on kills and full disks, two of each; workers that lose their parent."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "tiny.toml"
LONG = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from dataclasses import replace
from pathlib import Path
from tampl.lab.campaign import Resources
from tampl.lab.comparisons import compare
from tampl.lab.recipes import read_recipe
if __name__ == "__main__":
    recipe = read_recipe(sys.argv[1]).with_value("training.epochs", 100_000)
    methods = ["tampl", "jld"]
    compare(recipe, Path(sys.argv[2]), methods=methods, resources=Resources(side_by_side=2))
"""


@pytest.mark.slow
def test_kills_and_full_disks_lose_nothing():
    script = ROOT / "benchmarks" / "faults.py"
    command = [sys.executable, str(script), "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    record = json.loads(done.stdout)
    assert done.returncode == 0 and record["sound"], record
    for verb in ("simulate", "train", "compare"):
        assert record[f"kill_{verb}"]["kills"] == 2
    if record.get("full_disk"):
        pytest.skip(record["full_disk"])
    for verb in ("simulate", "train"):
        assert record[f"full_disk_{verb}"]["runs"] == 2
        codes = record[f"full_disk_{verb}"]["exit_codes"].values()
        assert any("2" in each for each in codes)


def children(pid):
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


def workers(pid):
    """The workers of a process, without the process that tracks its resources."""
    lines = ((child, Path(f"/proc/{child}/cmdline")) for child in children(pid))
    return [child for child, line in lines if b"spawn_main" in line.read_bytes()]


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.1)
    return None


def is_alive(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_and_leave_the_folders_free(tmp_path, number):
    script = tmp_path / "long.py"
    script.write_text(LONG)
    command = [sys.executable, str(script), str(TINY), str(tmp_path / "out")]
    own = []
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        try:
            runs = tmp_path / "out" / "runs"
            begun = lambda: len(list(runs.glob("*/run.json"))) == 2
            assert wait_until(begun, 120), "the workers did not begin"
            own = workers(parent.pid)
            assert len(own) == 2
            os.kill(parent.pid, number)
            assert wait_until(lambda: not any(map(is_alive, own)), 20), "workers train on"
            parent.wait(20)
        finally:
            for pid in [parent.pid, *own]:
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
