"""Advice on data as one page: the remarks in words, the numbers, the pictures.

advice.html, advice.json, figures/
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...advice import Advice
from ...description import Description
from ...files import strict_json, write_texts
from .figures import advice as figures
from .figures import png_bytes, save_figure
from .grids import Column, Grid, Line, name_of
from .page import Report, write_page

__all__ = ["write_advice"]

_SERIES = (
    "Trajectories (thin) and their mean; the autocorrelation, with the correlation time; and the "
    "root mean square change over a lag in units of the spread, with the lag after which it "
    "stands out. A dotted line is the change by what is new in every frame."
)
_TRAININGS = (
    "Errors of short trainings on the validation set, in standard deviations: with and without "
    "the microstate, by the size of the latent state z, and by the number of trajectories with "
    "the fitted learning curve and where it ends (dotted)."
)
_NOTE = (
    "The spread is the standard deviation over all trajectories and times. The correlation time "
    "is the integrated autocorrelation time; > says that trajectories are too short to tell. "
    "Change is the root mean square change from frame to frame, and noise the share of the "
    "variance that is new in every frame."
)


def write_advice(
    advice: Advice,
    out: Path,
    *,
    description: Description,
    y: NDArray[np.float64],
    source: str,
    provenance: dict[str, Any],
) -> Path:
    """Writes the page and its files; returns the page's path.

    Arguments:
        advice: The advice.
        out: The folder.
        description: What the data are of.
        y: The macrostates that it is about, (n, F, m).
        source: What the page calls the data.
        provenance: Versions, hardware, command.
    """
    out.mkdir(parents=True, exist_ok=True)
    drawn, captions = {}, {}
    if any(facts.moves for facts in advice.series):
        drawn["series"], captions["series"] = figures.series(advice, y), _SERIES
    if advice.study is not None:
        drawn["trainings"] = figures.trainings(advice.study)
        captions["trainings"] = _TRAININGS
    for name, figure in drawn.items():
        (out / "figures").mkdir(exist_ok=True)
        save_figure(figure, out / "figures" / name)
    warnings = [r for r in advice.remarks if r.level == "warning"]
    count = f"{len(warnings)} thing{'s' * (len(warnings) != 1)} to change"
    page = Report(
        title=f"Advice on {source}",
        summary=(
            f"{advice.trajectories} trajectories of {description.microstate.in_words}: "
            f"{count if warnings else 'nothing that must be changed'}."
        ),
        introduction=[
            *(f"To change. {_begin(remark.words)}." for remark in warnings),
            *(
                f"{remark.topic}. {_begin(remark.words)}."
                for remark in advice.remarks
                if remark.level != "warning"
            ),
        ],
        numbers={
            "Trajectories": str(advice.trajectories),
            "Initial states": str(advice.initial_states),
            "Frames": str(advice.frames),
            "Lag to train with": f"{advice.lag} frame{'s' * (advice.lag > 1)}",
        },
        tables=[_tabulate_series(advice), *_tabulate_trainings(advice)],
        heading="Numbers",
        note=_NOTE,
        figures={name: png_bytes(figure) for name, figure in drawn.items()},
        captions=captions,
        provenance=provenance,
    )
    write_page(page, out / "advice.html")
    text = strict_json({**advice.as_dict(), "provenance": provenance}, indent=1)
    write_texts(out, {"advice.json": text + "\n"})
    return out / "advice.html"


def _begin(words: str) -> str:
    """A sentence begins with a capital, unless with a symbol or a number."""
    first = words.split(" ", 1)[0]
    return words[:1].upper() + words[1:] if first in _STARTS else words


_STARTS = ("all", "from", "with", "the")


def _tabulate_series(advice: Advice) -> Grid:
    heads = ("", "mean", "spread", "correlation time", "change", "noise", "seen after")
    lines = []
    for facts in advice.series:
        unit = f" ({facts.unit})" if facts.unit else ""
        cells = [f"{facts.symbol}{unit}", f"{facts.mean:.4g}", f"{facts.std:.4g}"]
        if facts.memory is None:
            cells += ["constant" if facts.constant else "conserved", "0", "0", "never"]
        else:
            mark = "" if facts.resolved else "> "
            cells += [
                f"{mark}{advice.interval * facts.memory:.3g}",
                f"{facts.change:.3g}",
                f"{facts.noise:.2g}",
                "never" if facts.lag is None else f"{advice.interval * facts.lag:.3g}",
            ]
        lines.append(Line(tuple(cells)))
    return Grid(tuple(map(Column, heads)), tuple(lines))


def _tabulate_trainings(advice: Advice) -> list[Grid]:
    if advice.study is None:
        return []
    heads = ("", "size of z", "trajectories", "RMSE", "seconds")
    lines = tuple(
        Line(
            (
                name_of(t.method),
                str(t.latent_dim),
                str(t.trajectories),
                f"{t.rmse:.3g}",
                f"{t.seconds:.0f}",
            )
        )
        for t in advice.study.trainings
    )
    return [Grid(tuple(map(Column, heads)), lines)]
