"""The names a user types: all in `tampl`, loaded when used, with nothing heavy behind them."""

import subprocess
import sys

import numpy as np
import pytest

import tampl

HEAVY = ("torch", "numba", "matplotlib", "h5py", "scipy", "pydantic")


def loaded(code, *arguments):
    """The modules that a new process has loaded after some code."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert loaded("import tampl; dir(tampl)").isdisjoint(HEAVY)


def test_every_public_name_is_there_and_shown():
    assert set(dir(tampl)) == set(tampl.__all__)
    for name in tampl.__all__:
        assert getattr(tampl, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Tample'"):
        _ = tampl.Tample


def test_a_saved_model_forecasts_without_simulators(macro_model, lattices, tmp_path):
    macro_model.save(tmp_path / "model.safetensors")
    np.save(tmp_path / "x.npy", lattices)
    code = (
        "import numpy, tampl\n"
        "model = tampl.load(sys.argv[1])\n"
        "model.forecast(numpy.load(sys.argv[2]), horizon=2, members=2, progress=False)"
    )
    found = loaded(code, tmp_path / "model.safetensors", tmp_path / "x.npy")
    assert found.isdisjoint({"numba", "h5py", "matplotlib"})
    assert [name for name in found if name.startswith(("tampl.systems", "tampl.lab"))] == []
