"""The comparison of devices: ensembles that are alike, that are not, and constants."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tampl.seeding import numpy_generator
from tampl.systems import Mixing

ROOT = Path(__file__).parents[2]
SMALL = Mixing(particles=24, box=10.0, interval=0.2, frames=6, equilibration=400)


@pytest.fixture(scope="module")
def script():
    path = ROOT / "results" / "mixing_devices.py"
    spec = importlib.util.spec_from_file_location("mixing_devices", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def initial():
    states = SMALL.initial_states("test", [numpy_generator(1, i) for i in range(6)])
    return np.stack([state.microstate for state in states])


def test_ensembles_of_one_system_agree_and_of_another_temperature_do_not(script, initial):
    cold = SMALL.model_copy(update={"temperature": 0.1})
    cpu, same, other = (
        script.run_ensembles(system, initial, members=40, name=name)[:, :, 1:]
        for name, system in {"cpu": SMALL, "device": SMALL, "cold": cold}.items()
    )
    agree, differ = script.compare_ensembles(cpu, same), script.compare_ensembles(cpu, other)
    assert agree["pooled_within_limit"] and agree["comparisons"] == {"pooled": 10, "single": 60}
    assert 0.5 < agree["rms_z"]["single"] < 1.5
    assert not differ["pooled_within_limit"] and differ["largest_z"]["pooled"] > 8


def test_z_of_normal_numbers_is_theirs(script):
    rng = np.random.default_rng(0)
    reference = rng.normal(0, 2, (6, 16, 50, 2))
    other = rng.normal(0, 1, (6, 64, 50, 2))
    found = script.compare_ensembles(reference, other)
    assert found["rms_z"]["pooled"] == pytest.approx(1, abs=0.25)
    # A standard error of sqrt((4 / 16 + 1 / 64) / 6) = 0.21.
    assert np.mean(found["pooled"]["K"]["standard_error"]) == pytest.approx(0.21, abs=0.01)
    shifted = script.compare_ensembles(reference, other + 1.2)
    shift = np.subtract(shifted["pooled"]["S"]["z"], found["pooled"]["S"]["z"])
    assert np.mean(shift) == pytest.approx(1.2 / 0.21, rel=0.05)


def test_constants_are_equal_up_to_rounding(script):
    constant = np.full((2, 3, 4, 2), 0.1)
    rounded = np.full((2, 7, 4, 2), 0.3 - 0.2)
    assert script.compare_ensembles(constant, rounded)["largest_z"]["single"] < 1e-3
    assert not script.compare_ensembles(constant, rounded + 1 / 512)["pooled_within_limit"]


def test_another_step_shows_in_the_first_steps_and_in_the_energy(script, initial):
    coarse = SMALL.model_copy(update={"dt": 0.004})
    first = script.compare_first_steps(SMALL, coarse, initial)
    assert first["device"]["position"] > 1000 * first["moved"]["position"]
    assert first["float32_spacing"] == 2.0**-20
    assert 0.5 < first["moved"]["position"] / first["float32_spacing"] < 20
    fine, rough = (script.energy_change(system, initial)["rms"] for system in (SMALL, coarse))
    assert 0 < fine < rough < 0.05


def test_the_script_runs_on_the_tiny_recipe(script, tmp_path, monkeypatch):
    record, recipe = tmp_path / "record.json", ROOT / "tests" / "tiny_mixing.toml"
    options = ["--device", "cpu", "--members", "4", "--reference-members", "3"]
    files = ["--recipe", str(recipe), "--record", str(record)]
    monkeypatch.setattr(sys, "argv", ["mixing_devices.py", *options, *files])
    script.main()
    found = json.loads(record.read_text())
    assert found["first_steps"]["device"] == {"position": 0, "energy_per_particle": 0}
    assert found["first_steps"]["same_bytes_again"]
    assert found["energy"]["cpu"] == found["energy"]["device"] and found["energy"]["runs"] == 6
    assert found["ensembles"]["frames"] == [2] and found["microstates"][1] == "four-bands"
    assert found["ensembles"]["members"] == {"cpu": 3, "device": 4}


@pytest.mark.parametrize(
    "wrong", [["--members", "1"], ["--recipe", str(ROOT / "tests" / "tiny.toml")]]
)
def test_what_cannot_be_compared_is_refused(script, monkeypatch, wrong):
    monkeypatch.setattr(sys, "argv", ["mixing_devices.py", "--device", "cpu", *wrong])
    with pytest.raises(SystemExit):
        script.main()
