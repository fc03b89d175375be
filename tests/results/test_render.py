"""README's numbers are those of the records, and each record says where it comes from."""

import importlib.util
import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "results"


def load(name):
    spec = importlib.util.spec_from_file_location(name, RESULTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_agrees_with_the_records():
    render = load("render")
    block = render.README.read_text().split(render.MARKS[0])[1].split(render.MARKS[1])[0]
    assert block == render.render(), "run `make results`"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.name)
def test_every_record_has_its_provenance(path):
    provenance = json.loads(path.read_text())["provenance"]
    assert {"cpu", "cores", "device", "packages", "commit", "command"} <= provenance.keys()
    assert provenance["commit"]
    assert "/tmp" not in provenance["command"]
