"""The site holds what it promises; `make docs` itself, which runs the tutorials, takes minutes."""

import ast
import doctest
import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
import yaml

from tampl.lab.cli import app

ROOT = Path(__file__).parents[2]
DOCS, SITE = ROOT / "docs", ROOT / "docs" / "site"
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
OTHERS = ("README.md", "CONTRIBUTING.md", "benchmarks/README.md", "results/README.md")
READ = PAGES | {name: (ROOT / name).read_text() for name in OTHERS}
RUN_BY_THE_SITE = [p for p in PAGES if p == "docs/index.md" or p.startswith("docs/tutorials/")]

# Python that no build and no test runs, by page and first line, and why.
ILLUSTRATIVE = {
    ("docs/own_data.md", "# mine.py"): "the body of the function is left out",
    ("docs/studio.md", "import base64, json, urllib.request"): "needs a running studio",
    ("docs/scaling.md", "# simulate_slurm.py"): "needs a SLURM cluster",
    ("docs/scaling.md", "# compare_slurm.py"): "needs a SLURM cluster",
    ("docs/scaling.md", "# simulate_kubernetes.py"): "needs a Kubernetes cluster",
    (
        "docs/scaling.md",
        "# train.py, started by: torchrun --nproc-per-node 4 train.py",
    ): "needs torchrun; tests/training/test_ranks.py runs the same calls",
}
FORMER = {"tampl train --profile"}  # an option of an older version, of which there is a record
LANGUAGES = {"python", "sh", "toml", "bibtex"}
FENCE = re.compile(r"^(?:```|~~~)(.*)$", re.MULTILINE)
SPAN = re.compile(r"`(tampl [a-z][^`]*)`")
END = re.compile(r"\s{2,}#.*|\s[|>&;].*|\s#\s.*")


@pytest.fixture(scope="module")
def site():
    """The modules that build the site, by name."""
    sys.path.insert(0, str(SITE))
    yield importlib.import_module
    sys.path.remove(str(SITE))
    for path in SITE.glob("*.py"):
        sys.modules.pop(path.stem, None)


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml without making the objects that it names."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)


def configuration():
    return yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=_Loader)


def pages_of(nav):
    for entry in nav.values() if isinstance(nav, dict) else nav:
        if isinstance(entry, str):
            yield f"docs/{entry}"
        else:
            yield from pages_of(entry)


def test_every_page_has_its_place():
    listed = list(pages_of(configuration()["nav"]))
    assert sorted(listed) == sorted(PAGES)


def test_the_site_asks_no_other_host():
    settings = configuration()
    assert settings["theme"]["font"] is False
    assert "offline" in settings["plugins"]
    assert settings["strict"] is True
    text = (SITE / "style.css").read_text() + (SITE / "iframe-worker.js").read_text()
    assert "//" not in re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_with_what_it_is_for(name):
    title, opening = (part.strip() for part in PAGES[name].split("\n\n", 2)[:2])
    assert re.fullmatch(r"# .+", title)
    assert opening[0].isalpha() or opening.startswith("`"), opening
    assert re.search(r"\.(?:\s|$)", opening), opening


@pytest.mark.parametrize("name", RUN_BY_THE_SITE)
def test_tutorials_compile(name, site):
    for block in site("blocks").find_blocks(PAGES[name]):
        if block.kind == "python":
            compile("\n" * (block.line - 1) + block.text, name, "exec")
        else:
            subprocess.run(["bash", "-n", "-c", block.text], check=True)


def test_python_that_does_not_run_is_named_with_a_reason(site):
    blocks, found = site("blocks"), set()
    for name, text in READ.items():
        languages = [mark.strip() for mark in FENCE.findall(text)]
        assert set(languages[::2]) <= LANGUAGES, name
        assert not any(languages[1::2]), name
        for code in filter(blocks.is_python, blocks.read_indented(text)):
            ast.parse(code)
            found.add((name, code.partition("\n")[0]))
    assert found == set(ILLUSTRATIVE)


def test_shell_blocks_run_in_tutorials_only(site):
    for name, text in READ.items():
        kinds = {block.kind for block in site("blocks").find_blocks(text)}
        assert "sh" not in kinds or name in RUN_BY_THE_SITE, name


def commands(text, site):
    """Every line of shell on a page that calls the command, and the calls in running text."""
    blocks = site("blocks")
    code = [*blocks.read_indented(text), *(b.text for b in blocks.find_blocks(text))]
    shell = [each for each in code if not blocks.is_python(each)]
    for each in shell:
        for line in each.replace("\\\n", " ").split("\n"):
            if re.match(r"\s*tampl ", line):
                yield line.strip()
    yield from set(SPAN.findall(text)) - FORMER


@pytest.mark.parametrize("name", READ)
def test_commands_exist_with_their_options(name, site):
    group = typer.main.get_command(app)
    for line in commands(READ[name], site):
        words = shlex.split(END.sub("", line))[1:]
        command, path = group, []
        while words and hasattr(command, "commands"):
            assert words[0] in command.commands, line
            path.append(words[0])
            command = command.commands[words.pop(0)]
        if "..." in words or hasattr(command, "commands"):
            continue
        context = command.context_class(command, info_name=" ".join(path))
        try:
            command.make_parser(context).parse_args(words)
        except Exception as error:
            # An option by itself, `tampl train --method`, names it and gives no value.
            if "requires an argument" not in str(error):
                raise AssertionError(f"{line}: {error}") from error


def test_code_beside_equations_is_found(site):
    excerpts = site("excerpts")
    names = [n for text in PAGES.values() for m in excerpts.MARK.findall(text) for n in m.split()]
    assert len(names) >= 20
    for name in names:
        excerpt = excerpts.read_excerpt(name)
        assert (ROOT / excerpt.file).is_file()
        ast.parse(excerpt.code)
    with pytest.raises(ValueError, match="not defined"):
        excerpts.read_excerpt("tampl.flow.nothing")


@pytest.mark.parametrize("name", PAGES)
def test_formulas_become_mathml(name, site):
    blocks, mathematics = site("blocks"), site("mathematics")
    prose = "".join(cell.text for cell in blocks.split_cells(PAGES[name]) if cell.block is None)
    prose = re.sub(r"`[^`]*`|<!--.*?-->", "", prose, flags=re.DOTALL)
    for long, short in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", prose, re.DOTALL):
        made = mathematics.to_mathml(f'<span class="arithmatex">{long or short}</span>')
        assert made.startswith("<math")


def test_links_to_the_repository_become_pages(site):
    repository = site("repository")
    text = "[a](../examples/minimal.py), [b](method.md#scores), `flow.py`, [c](images/studio.png)"
    shown = repository.relink("docs/own_data.md", text)
    assert shown == (
        "[a](source/examples/minimal.py.md), [b](method.md#scores), "
        "[`flow.py`](source/src/tampl/flow.py.md), [c](images/studio.png)"
    )
    assert repository.find_files("docs/own_data.md", text) == {
        "examples/minimal.py",
        "src/tampl/flow.py",
    }


def test_a_link_with_the_name_of_a_page_has_its_title_on_the_site(site):
    relink = site("repository").relink
    shown = relink("docs/cli.md", "see [method.md](method.md#scores)")
    assert shown == "see [The method](method.md#scores)"


def test_pages_become_notebooks(site):
    page = "# Title\n\nSee [this](other.md).\n\n```python\nprint(1)\n```\n\n```sh\nls\n```\n"
    cells, output = site("blocks").split_cells(page), site("execution").Output
    notebook = json.loads(site("notebooks").write_notebook(cells, [output("1\n", ("QQ==",))] * 2))
    text, python, shell = notebook["cells"]
    assert "".join(text["source"]) == "# Title\n\nSee this."
    assert [each["output_type"] for each in python["outputs"]] == ["stream", "display_data"]
    assert "".join(shell["source"]) == "%%bash\nls"


def test_the_paper_and_the_software_are_cited_as_in_the_citation_file():
    entry = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    page = PAGES["docs/citing.md"]
    paper = entry["preferred-citation"]
    for told in (entry["title"], f"{{{entry['version']}}}", paper["title"], str(paper["year"])):
        assert told in page, told
    for author in paper["authors"]:
        assert f"{author['family-names']}, {author['given-names']}" in page


@pytest.mark.parametrize("module", ["blocks", "repository"])
def test_examples_of_the_builder(module, site):
    assert doctest.testmod(site(module)).failed == 0
