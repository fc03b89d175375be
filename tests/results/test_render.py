"""The pages' numbers are those of the records, and each record says where it comes from."""

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


RENDER = load("render")


@pytest.mark.parametrize("page", RENDER.PAGES, ids=lambda page: page.name)
def test_pages_agree_with_the_records(page):
    text = page.read_text()
    assert text == RENDER.filled(text, RENDER.PAGES[page]()), "run `make results`"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.name)
def test_every_record_has_its_provenance(path):
    provenance = json.loads(path.read_text())["provenance"]
    assert {"cpu", "cores", "device", "packages", "commit", "command"} <= provenance.keys()
    assert provenance["commit"]
    assert "/tmp" not in provenance["command"]
