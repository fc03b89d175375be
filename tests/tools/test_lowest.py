"""The lower bounds are those that were tried; `make lowest`, which tries them, takes minutes."""

import importlib
import json
import sys
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))
lowest = importlib.import_module("lowest")

BOUNDS = lowest.read_bounds()


def test_the_list_has_every_dependency_at_its_bound():
    pins = lowest.read_pins(lowest.LIST)
    constraints = lowest.read_pins(ROOT / "constraints.txt")
    for name, bound in BOUNDS.items():
        kept = name in lowest.KEPT
        assert pins[lowest.plain(name)] == (constraints[name] if kept else bound), name


def test_no_bound_is_above_the_version_of_the_constraints():
    constraints = lowest.read_pins(ROOT / "constraints.txt")
    for name, bound in BOUNDS.items():
        assert Version(bound) <= Version(constraints[lowest.plain(name)]), name


def test_the_record_is_of_these_bounds():
    record = json.loads((ROOT / "results" / "lowest_versions.json").read_text())
    for name, bound in BOUNDS.items():
        if name not in record["kept"]:
            assert Version(record["versions"][name]) == Version(bound), f"{name}: make lowest"
    assert record["tests"]["passed"] > 0


@pytest.mark.parametrize("name", ["MDAnalysis", "tomli_w", "zope.x--y"])
def test_two_spellings_are_one_name(name):
    assert lowest.plain(name) in ("mdanalysis", "tomli-w", "zope-x-y")
