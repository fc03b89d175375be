"""The page of licences has a line for every dependency, and says who asks for it."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))
licences = importlib.import_module("licences")


def test_every_dependency_has_a_line():
    asked = {name: ", ".join(groups) for name, groups in licences.read_dependencies().items()}
    assert {name: groups for name, (_, groups) in licences.read_page().items()} == asked


def test_the_page_is_the_one_that_the_script_writes(tmp_path, monkeypatch):
    former = licences.PAGE.read_text()
    monkeypatch.setattr(licences, "PAGE", tmp_path / "licences.md")
    licences.PAGE.write_text(former)
    monkeypatch.setattr(licences, "find_licence", lambda package: None)  # all keep their lines
    licences.main()
    assert licences.PAGE.read_text() == former


@pytest.mark.parametrize(
    ("told", "licence"),
    [
        ({"License-Expression": "MIT AND Zlib", "License": "MIT"}, "MIT AND Zlib"),
        ({"License": "ISC"}, "ISC"),
        ({"License": "All rights\n..."}, "Apache-2.0"),
    ],
)
def test_what_packages_state(told, licence, monkeypatch):
    class Told(dict):
        def get_all(self, key):
            return ["Topic :: X", "License :: OSI Approved :: Apache Software License"]

    monkeypatch.setattr(licences, "metadata", lambda package: Told(told))
    assert licences.find_licence("some-package") == licence


def test_a_licence_that_is_not_known_is_not_guessed(monkeypatch):
    class Told(dict):
        def get_all(self, key):
            return ["License :: OSI Approved :: BSD License"]

    monkeypatch.setattr(licences, "metadata", lambda package: Told())
    with pytest.raises(SystemExit, match="some-package states no licence"):
        licences.find_licence("some-package")
