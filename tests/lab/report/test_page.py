import base64
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from tampl.lab.report.grids import Column, Grid, Line
from tampl.lab.report.page import Report, _write_duration, render_page, write_page

PNG = b"\x89PNG fake"
HOSTILE = "<script>alert('x')</script>\"&"


def grid(name):
    return Grid((Column("Method"), Column("RMSE")), (Line((name, "0.1")),))


REPORT = Report(
    title="SIRS",
    tables=[grid("TAMPL")],
    note="What it means.",
    remarks=["JLD, seed 42: the latent scale collapsed"],
    summary="What this is.",
    numbers={"TAMPL, RMSE": "0.1083"},
    facts={"System": {"beta": 8.0, "sizes": [100, 100]}, "Empty": {}},
    wall_times={"train": 184.0, "evaluate": 3.2},
    figures={"predictions": PNG, "twins": PNG, "training": PNG, "latent": PNG, "mine": PNG},
    provenance={"command": "tampl run", "versions": {"torch": "2.13"}},
)


class Balance(HTMLParser):
    """Fails on a tag that is closed in the wrong place."""

    void = ("meta", "img", "br", "link")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def headings(text):
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_the_page_has_its_sections_in_order():
    assert headings(render_page(REPORT)) == [
        "Scores",
        "Predictions",
        "Alike at first, different later",
        "Training",
        "Further figures",
        "What was done",
        "Provenance",
    ]


def test_what_is_missing_is_left_out():
    text = render_page(Report("Bare"))
    assert headings(text) == []
    assert "$" not in text


def test_nothing_is_fetched_from_anywhere():
    text = render_page(REPORT)
    assert not re.search(r"https?://|//[a-z]|@import|url\(|<link|<script", text)
    sources = re.findall(r'src="(.*?)"', text)
    assert len(sources) == 5
    prefix = "data:image/png;base64,"
    assert all(base64.b64decode(source.removeprefix(prefix)) == PNG for source in sources)


def test_text_from_outside_is_escaped():
    report = Report(
        title=HOSTILE,
        tables=[grid(HOSTILE)],
        note=HOSTILE,
        remarks=[HOSTILE],
        summary=HOSTILE,
        numbers={HOSTILE: HOSTILE},
        facts={HOSTILE: {HOSTILE: HOSTILE, "list": [HOSTILE], "map": {HOSTILE: HOSTILE}}},
        wall_times={HOSTILE: 1.0},
        figures={HOSTILE: PNG},
        provenance={HOSTILE: HOSTILE},
    )
    text = render_page(report)
    assert "<script" not in text
    assert "alert('x')</script>\"" not in text
    assert text.count("&lt;script&gt;") >= 12


def test_the_first_numbers_and_the_remarks_are_shown():
    text = render_page(REPORT)
    assert "<dt>TAMPL, RMSE</dt><dd>0.1083</dd>" in text
    assert "<dt>Wall time</dt><dd>3 min 07 s</dd>" in text
    assert "<li>JLD, seed 42: the latent scale collapsed</li>" in text


@pytest.mark.parametrize("report", [REPORT, Report("Bare")])
def test_the_page_is_well_formed(report):
    parser = Balance()
    parser.feed(render_page(report))
    assert parser.open == []


def test_facts_and_times_are_readable():
    text = render_page(REPORT)
    assert "<dt>beta</dt><dd>8</dd>" in text
    assert "<dt>sizes</dt><dd>100, 100</dd>" in text
    assert "<dt>versions</dt><dd>torch 2.13</dd>" in text
    assert "<dt>total</dt><dd>3 min 07 s</dd>" in text
    assert "Empty" not in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (3599.6, "1 h 00 min")],
)
def test_durations(seconds, text):
    assert _write_duration(seconds) == text


def test_written_as_utf8(tmp_path):
    write_page(REPORT, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == render_page(REPORT)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_the_package_does_not_load_matplotlib():
    code = "import sys, tampl.lab.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_the_introduction_and_the_colours_are_escaped_and_shown():
    report = Report(
        title="Page",
        introduction=["Two sentences.", HOSTILE],
        figures={"predictions": PNG, "training": PNG},
        captions={"predictions": HOSTILE},
        colours={HOSTILE: "#123456"},
    )
    text = render_page(report)
    assert "<p>Two sentences.</p>" in text and "<script" not in text
    assert text.count('<i style="background: #123456"></i>&lt;script') == 1
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
