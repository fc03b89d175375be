"""The documentation holds: its examples run, its links lead somewhere, its paths are relative."""

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from tampl.methods import METHODS
from tampl.methods.penalties import PENALTIES
from tampl.microstates import KINDS
from tampl.models.decoders import DECODERS
from tampl.models.encoders import ENCODERS
from tampl.models.readouts import READOUTS
from tampl.models.transitions import TRANSITIONS
from tampl.observables import OBSERVABLES
from tampl.systems import SYSTEMS

REGISTRIES = (
    *(SYSTEMS, METHODS, PENALTIES, KINDS, OBSERVABLES),
    *(ENCODERS, TRANSITIONS, READOUTS, DECODERS),
)
ROOT = Path(__file__).parents[2]
FOLDERS = (".", "benchmarks", "docs", "docs/api", "docs/systems", "docs/tutorials", "results")
# The code of these runs when the site is built, which takes minutes.
RUN_BY_THE_SITE = ("docs/index.md", "docs/tutorials/")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("*.md"))
}

# Stands for recipes/sirs-mini.toml, which takes minutes.
RECIPE = (ROOT / "tests" / "tiny.toml").read_text(encoding="utf-8")

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# (\w+)\.py\n")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}.*$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ABSOLUTE = re.compile(r"(?<![\w.~/-])/(?:home|mnt|opt|private|root|tmp|Users|usr|var|work)\b.*")

EXAMPLES = [
    name
    for name, text in PAGES.items()
    if BLOCK.search(text) and not name.startswith(RUN_BY_THE_SITE)
]


@pytest.fixture
def one_thread():
    """Networks this small gain nothing from a second thread, and lose much on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def workplace(tmp_path, monkeypatch, one_thread):
    """An empty folder with a small recipe, left again with the registries as they were."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "sirs-mini.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with ExitStack() as stack:
        for registry in REGISTRIES:
            stack.enter_context(patch.dict(registry))
        yield tmp_path
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_the_pages_are_found():
    assert {"README.md", "docs/extending.md"} <= set(EXAMPLES)


# Models that are trained for seconds leave their training data, of which forecasts warn.
@pytest.mark.filterwarnings(r"ignore:in \d+ of \d+ forecasts")
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_in_the_order_of_the_page(name, workplace):
    text, namespace = PAGES[name], {"__name__": "example"}
    for block in BLOCK.finditer(text):
        if file := FILE_NAME.match(block[1]):
            (workplace / f"{file[1]}.py").write_text(block[1])
        # Empty lines above the block, so that a traceback has the line numbers of the page.
        padding = "\n" * text[: block.start(1)].count("\n")
        exec(compile(padding + block[1], name, "exec"), namespace)


def links(name):
    """Targets of the page's relative links, without those in code."""
    prose = INDENTED.sub("", FENCED.sub("", PAGES[name]))
    return [target for target in LINK.findall(prose) if not re.match(r"[a-z]+:", target)]


def anchors(text):
    """The anchors that GitHub makes of headings."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in words}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files_and_headings(name):
    for target in links(name):
        file, _, anchor = target.partition("#")
        path = (ROOT / name).parent / file if file else ROOT / name
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("name", PAGES)
def test_no_page_names_a_path_of_one_machine(name):
    assert ABSOLUTE.findall(PAGES[name]) == []


def test_the_searches_find_what_they_look_for():
    found = ABSOLUTE.findall("see `/tmp/a`, runs/tmp, ~/work and /work; tests/home")
    assert found == ["/tmp/a`, runs/tmp, ~/work and /work; tests/home"]
    assert "the-folder-of-a-run" in anchors("text\n## The folder of a run\n")
