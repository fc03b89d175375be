"""The pages say what the records say, name what exists, and change with what was measured."""

import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tampl.errors import InputError
from tampl.lab.comparisons import compare
from tampl.lab.pipeline import record_runs
from tampl.lab.recipes import read_recipe

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
TINY = Path(__file__).parents[1] / "tiny.toml"
FIGURES = ("predictions", "comparison", "strip", "latent_scale")

sys.path.append(str(RESULTS))
RENDER = importlib.import_module("render")
OPEN = importlib.import_module("pages.records").Records
DRAW = importlib.import_module("pages.figures").draw_column

CARDS = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs/systems").glob("*.md"))]
RECORDS = [path for path in sorted(RESULTS.rglob("*.json")) if path.name != "plan.json"]


@pytest.mark.parametrize("page", RENDER.PAGES)
def test_pages_agree_with_the_records(page):
    assert (ROOT / page).read_text() == RENDER.rendered(ROOT, page), "run `make results`"


@pytest.mark.parametrize("page", [*RENDER.PAGES, *CARDS])
def test_what_a_page_names_exists(page):
    text = (ROOT / page).read_text()
    records = re.findall(r"`(results/[^` ]+)", text)
    images = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    missing = [name for name in records if not (ROOT / name).exists()]
    missing += [name for name in images if not (ROOT / page).parent.joinpath(name).exists()]
    assert not missing


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_every_record_has_its_provenance(path):
    record = json.loads(path.read_text())
    for key in ("provenance", *({"training_provenance"} & record.keys())):
        provenance = record[key]
        assert {"cpu", "cores", "device", "packages", "commit", "command"} <= provenance.keys()
        assert provenance["commit"]
        assert "/tmp" not in provenance["command"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("compared")
    methods = ["tampl", "jld", "vamp"]
    return compare(read_recipe(TINY), out, methods=methods, seeds=[42, 43])


@pytest.fixture
def tree(compared, tmp_path):
    """The pages and records, and as `results/sirs` tiny runs with one of them missing."""
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(RESULTS, tmp_path / "results", ignore=shutil.ignore_patterns("sirs"))
    runs = [path for path in (compared.out / "runs").iterdir() if path.name != "jld-43"]
    record_runs(runs, tmp_path / "results" / "sirs")
    shutil.copy(compared.out / "plan.json", tmp_path / "results")
    columns = [f"{recipe}-{name}" for recipe in ("sirs", "mixing") for name in FIGURES]
    for name in (*columns, "polymer-regimes"):
        (tmp_path / "docs" / "images" / f"{name}.png").unlink(missing_ok=True)
    return tmp_path


def test_kept_runs_make_their_sections_and_figures(tree, compared):
    RENDER.write(tree)
    page, readme = (tree / "docs" / "results.md").read_text(), (tree / "README.md").read_text()
    tampl = compared.comparison.scores["tampl"]
    assert f"| TAMPL | {tampl.rmse.mean:.4f} ± {tampl.rmse.std:.4f} |" in page
    for text in (page, readme):
        assert f"{tampl.rmse.mean:.4f} ± {tampl.rmse.std:.4f}" in text
        assert "0.1056 ± 0.0201" in text
    assert "(n = 1)" in page and "Not there: JLD 43." in page
    assert "Not run at this size: JLD-SIG, JLD-VIC, JLD-Recon, TwoStage-Recon." in page
    assert (tree / "docs/images/polymer-regimes.png").stat().st_size > 5_000
    for name in (f"{recipe}-{name}" for recipe in ("sirs", "mixing") for name in FIGURES):
        assert (tree / f"docs/images/{name}.png").stat().st_size > 5_000
        assert f"images/{name}.png" in page


def test_a_page_is_stable_until_a_record_changes(tree):
    RENDER.write(tree)
    page = "docs/results.md"
    assert RENDER.rendered(tree, page) == (tree / page).read_text()
    kept = tree / "results" / "sirs" / "tampl-42.json"
    record = json.loads(kept.read_text())
    record["scores"]["tampl"]["rmse"] += 1.0
    kept.write_text(json.dumps(record))
    assert RENDER.rendered(tree, page) != (tree / page).read_text()


def test_a_page_is_not_made_without_its_records(tree):
    (tree / "results" / "accuracy.json").unlink()
    with pytest.raises(InputError, match=r"lacks accuracy\.json"):
        RENDER.rendered(tree, "docs/results.md")


def test_figures_need_the_shown_seed(tree):
    (tree / "results" / "sirs" / "jld-42.json").unlink()
    with pytest.raises(InputError, match="lack jld with seed 42"):
        DRAW(OPEN(tree / "results"), "sirs", tree)
