"""The wheel holds every file of the package; `make dist` builds and uses it, in minutes."""

import importlib
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))
wheel = importlib.import_module("check_wheel")


@pytest.fixture(scope="module")
def package():
    if not (ROOT / ".git").exists():
        pytest.skip("git lists the files of the package")
    try:
        return wheel.list_package()
    except (OSError, subprocess.SubprocessError):
        pytest.skip("git lists the files of the package")


def test_every_file_that_is_not_python_is_named_as_data_of_the_package(package):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = [f"tampl/{pattern}" for pattern in settings["package-data"]["tampl"]]
    data = {name for name in package if not name.endswith(".py")}
    assert data and all(any(fnmatch(name, each) for each in patterns) for name in data)
    for pattern in patterns:
        assert any(fnmatch(name, pattern) for name in data), pattern


def test_every_folder_of_the_package_is_a_package(package):
    folders = {name.rpartition("/")[0] for name in package if name.endswith(".py")}
    assert all(f"{folder}/__init__.py" in package for folder in folders)


def test_recipes_and_page_belong_to_the_package(package):
    for name in ("recipes/sirs-mini.toml", "studio/page/index.html", "py.typed", "version.py"):
        assert f"tampl/{name}" in package
    assert not any("test" in name.split("/") or "results" in name.split("/") for name in package)


def test_what_is_missing_or_too_much_is_said():
    with pytest.raises(SystemExit, match=r"x.whl: missing \['b'\], does not belong in \['c'\]"):
        wheel._compare("x.whl", {"a", "c"}, {"a", "b"})
