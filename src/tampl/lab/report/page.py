"""A report as one HTML file that needs no other file and no network.

It is light, readable on a phone and in print. Style is inline, images are PNG data inside the
page, and a content security policy forbids the browser to fetch anything. Every text that comes
from outside is escaped.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template

from ...files import replacing
from ...version import __version__
from .grids import Grid

__all__ = ["PAGE", "STYLE", "Report", "render_page", "write_page"]

PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<header>
<h1>$title</h1>
$summary
$introduction
$tiles
</header>
<main>
$sections
</main>
<footer>Made by tampl $version.</footer>
</body>
</html>
""")

STYLE = """\
:root { color-scheme: light; --ink: #262626; --soft: #66696d; --rule: #dcdcd8; --mark: #b34700; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 3rem; max-width: 56rem; background: #fff;
  color: var(--ink); font: 1.05rem/1.55 Charter, "Bitstream Charter", "Source Serif 4",
  "STIX Two Text", Georgia, serif; overflow-wrap: break-word; }
h1 { margin: 0 0 .4rem; font-size: 2rem; line-height: 1.2; font-weight: 600; }
h2 { margin: 3rem 0 1rem; padding-top: .8rem; border-top: 1px solid var(--rule);
  font-size: 1.35rem; line-height: 1.3; font-weight: 600; }
h3 { margin: 0 0 .5rem; font-size: 1rem; font-weight: 600; }
p { margin: 0 0 1rem; max-width: 44rem; }
.lead { font-size: 1.15rem; color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: .9rem 2.6rem; margin: 1.4rem 0 0; padding: 0; }
.tiles div { margin: 0; }
.tiles dt { color: var(--soft); font-size: .9rem; }
.tiles dd { margin: 0; font-size: 1.6rem; line-height: 1.25;
  font-variant-numeric: lining-nums tabular-nums; }
.tiles div:first-child dd { color: var(--mark); }
.groups { display: grid; gap: 1.8rem 2rem; margin: 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 11.5rem), 1fr)); }
.facts { margin: 0; font-size: .95rem; }
.facts div { display: flex; justify-content: space-between; gap: 1.2rem; padding: .22rem 0;
  border-bottom: 1px solid #efefec; }
.facts dt { color: var(--soft); max-width: 75%; }
.facts dd { margin: 0; text-align: right; min-width: 0; font-variant-numeric: lining-nums; }
.facts.plain div { justify-content: flex-start; }
.facts.plain dt { flex: 0 0 9rem; max-width: 40%; }
.facts.plain dd { text-align: left; font: .85rem/1.7 ui-monospace, "SF Mono", Menlo, Consolas,
  "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 0 0 1rem; }
table { border-collapse: collapse; border-top: 2px solid var(--ink);
  border-bottom: 2px solid var(--ink); font-variant-numeric: lining-nums tabular-nums; }
th, td { padding: .34rem 1.1rem; text-align: right; font-weight: 400; white-space: nowrap; }
th:first-child { text-align: left; padding-left: .2rem; }
thead th { border-bottom: 1px solid var(--ink); color: var(--soft); }
td.soft { color: var(--soft); }
tr.strong > * { font-weight: 600; }
.remarks { margin: 0 0 1rem; padding-left: 1.2rem; color: var(--mark); font-size: .95rem; }
tr:not(.baseline) + .baseline > * { border-top: 1px solid var(--rule); }
figure { margin: 0 0 2rem; }
img { display: block; width: 100%; height: auto; }
figcaption, .note { margin-top: .6rem; max-width: 44rem; color: var(--soft); font-size: .95rem; }
figure.narrow img { max-width: 40rem; }
.colours { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .4rem 0 0; padding: 0;
  list-style: none; color: var(--soft); font-size: .95rem; }
.colours i { display: inline-block; width: .8em; height: .8em; margin-right: .4em;
  border: 1px solid #b9b9b4; }
footer { margin-top: 3rem; padding-top: .8rem; border-top: 1px solid var(--rule);
  color: var(--soft); font-size: .9rem; }
@media (max-width: 36rem) {
  body { padding: 1.4rem 1rem 2rem; font-size: 1rem; }
  h1 { font-size: 1.6rem; }
  th, td { padding: .3rem .2rem; font-size: .74rem; line-height: 1.3; white-space: normal; }
  .groups { gap: 1.4rem; }
  .tiles { gap: .8rem 1.6rem; } .tiles dd { font-size: 1.3rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; margin-top: 1.6rem; }
  figure, table, .facts { break-inside: avoid; }
}
"""

Facts = Mapping[str, object]

_SECTIONS = {
    "Predictions": ("predictions",),
    "The methods side by side": ("comparison",),
    "Alike at first, different later": ("twins",),
    "How far to trust it": ("calibration", "markov"),
    "Training": ("training", "latent", "latent scales"),
    "Time series": ("series",),
    "Short trainings": ("trainings",),
}

_CAPTIONS = {
    "training": (
        "Losses of each training stage, and the error of rollouts from validation microstates "
        "where it was measured."
    ),
    "latent": (
        "Standard deviation of the latent coordinates over the data and their effective rank. A "
        "collapse would show as a fall by orders of magnitude."
    ),
}
"""Captions that fit any data; the others come with the report."""

_NARROW = ("latent", "latent scales", "markov")

_PICTURED = ("predictions", "comparison", "twins")
"""Figures that show microstates."""


@dataclass(frozen=True)
class Report:
    """The contents of the page.

    Arguments:
        title: Heading of the page.
        tables: The scores.
        heading: Heading of the tables.
        note: The meaning of the columns.
        remarks: Remarks on the scores, one line each.
        summary: One or two sentences under the title; may be empty.
        introduction: What the system, the observables and the methods are, one sentence each.
        numbers: The main numbers, by name.
        facts: The settings, in groups, e.g. `{"System": {"beta": 8.0}, "Data": {"seed": 1}}`.
        wall_times: Seconds that each part took, e.g. `{"simulate": 61.2}`.
        figures: PNG images by name; those without a section come last.
        captions: Captions by name of a figure, where they depend on the data.
        colours: What the colours in pictures of microstates mean: `{"infected": "#c8322b"}`.
        provenance: Versions, hardware, command.
    """

    title: str
    tables: Sequence[Grid] = ()
    heading: str = "Scores"
    note: str = ""
    remarks: Sequence[str] = ()
    summary: str = ""
    introduction: Sequence[str] = ()
    numbers: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Facts] = field(default_factory=dict)
    wall_times: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, bytes] = field(default_factory=dict)
    captions: Mapping[str, str] = field(default_factory=dict)
    colours: Mapping[str, str] = field(default_factory=dict)
    provenance: Facts = field(default_factory=dict)


def write_page(report: Report, path: str | Path) -> None:
    """Writes the page; the file appears complete or not at all."""
    with replacing(Path(path)) as temporary:
        temporary.write_text(render_page(report), encoding="utf-8")


def render_page(report: Report) -> str:
    """The whole page as text; sections without content are left out."""
    shown = {name for names in _SECTIONS.values() for name in names}
    others = tuple(name for name in report.figures if name not in shown)
    sections = [
        _wrap_section(report.heading, _render_scores(report)),
        *(
            _wrap_section(title, _render_figures(report, names))
            for title, names in _SECTIONS.items()
        ),
        _wrap_section("Further figures", _render_figures(report, others)),
        _wrap_section("What was done", _render_groups(report)),
        _wrap_section("Provenance", _render_facts(report.provenance, "facts plain")),
    ]
    return PAGE.substitute(
        title=escape(report.title),
        summary=f'<p class="lead">{escape(report.summary)}</p>' if report.summary else "",
        introduction="\n".join(f"<p>{escape(line)}</p>" for line in report.introduction),
        tiles=_render_tiles(report),
        style=STYLE,
        sections="\n".join(section for section in sections if section),
        version=escape(__version__),
    )


def _wrap_section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>" if content else ""


def _render_tiles(report: Report) -> str:
    numbers = {**report.numbers}
    if report.wall_times:
        numbers["Wall time"] = _write_duration(sum(report.wall_times.values()))
    return _render_pairs(numbers, "tiles") if numbers else ""


def _render_groups(report: Report) -> str:
    groups = {title: {**facts} for title, facts in report.facts.items() if facts}
    if report.wall_times:
        times = {part: _write_duration(seconds) for part, seconds in report.wall_times.items()}
        groups["Wall time"] = {**times, "total": _write_duration(sum(report.wall_times.values()))}
    lists = (
        f"<div><h3>{escape(title)}</h3>{_render_facts(facts)}</div>"
        for title, facts in groups.items()
    )
    return f'<div class="groups">{"".join(lists)}</div>' if groups else ""


def _render_scores(report: Report) -> str:
    parts = [f'<div class="wide">{grid.html()}</div>' for grid in report.tables]
    if report.remarks:
        items = "".join(f"<li>{escape(line)}</li>" for line in report.remarks)
        parts.append(f'<ul class="remarks">{items}</ul>')
    if report.note:
        parts.append(f'<p class="note">{escape(report.note)}</p>')
    return "\n".join(parts)


def _render_figures(report: Report, names: Sequence[str]) -> str:
    figures = []
    for name in names:
        if name not in report.figures:
            continue
        source = base64.b64encode(report.figures[name]).decode("ascii")
        caption = escape(report.captions.get(name) or _CAPTIONS.get(name, name))
        group = ' class="narrow"' if name in _NARROW else ""
        image = f'<img src="data:image/png;base64,{source}" alt="{escape(name)}: {caption}">'
        figures.append(
            f'<figure{group}><div class="wide">{image}</div>'
            f"<figcaption>{caption}{_render_colours(report, name)}</figcaption></figure>"
        )
    return "\n".join(figures)


def _render_colours(report: Report, name: str) -> str:
    """The legend of the colours, where a figure shows microstates."""
    if not report.colours or name.partition(",")[0] not in _PICTURED:
        return ""
    items = (
        f'<li><i style="background: {escape(color)}"></i>{escape(text)}</li>'
        for text, color in report.colours.items()
    )
    return f'<ul class="colours">{"".join(items)}</ul>'


def _render_facts(facts: Facts, group: str = "facts") -> str:
    return (
        _render_pairs({key: _write_value(value) for key, value in facts.items()}, group)
        if facts
        else ""
    )


def _render_pairs(pairs: Mapping[str, str], group: str) -> str:
    items = (
        f"<div><dt>{escape(key)}</dt><dd>{escape(text)}</dd></div>" for key, text in pairs.items()
    )
    return f'<dl class="{group}">{"".join(items)}</dl>'


def _write_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_write_value(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_write_value(part) for part in value) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _write_duration(seconds: float) -> str:
    """Seconds as a person would say them.

    Example:
        >>> _write_duration(3.24), _write_duration(184.0), _write_duration(7500.0)
        ('3.2 s', '3 min 04 s', '2 h 05 min')
    """
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
