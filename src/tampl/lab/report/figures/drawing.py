"""One look for all figures: strokes, colours and typography; microstates and curves; files.

Colours are those of Okabe and Ito and, where methods are many, of Tol: told apart by the common
forms of colour blindness. Strokes differ in dash as well, so that nothing depends on colour alone.
Fonts are those that come with matplotlib: a figure is the same on every machine, and the same
figure gives the same bytes.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from ....errors import InputError
from ....evaluation.cases import Curve
from ....files import replacing
from ....methods import METHODS
from ....microstates import Microstate, find_kind
from ....microstates.base import INK

__all__ = [
    "INK",
    "MUTED",
    "RC",
    "STAGES",
    "TWINS",
    "WIDTH",
    "Legend",
    "Stroke",
    "break_stroke",
    "draw_curve",
    "draw_microstate",
    "label_panel",
    "make_entry",
    "place_legend",
    "png_bytes",
    "save_figure",
    "set_ticks",
    "stroke_of",
]

Dash = tuple[float, tuple[float, ...]] | Literal["-"]

WIDTH = 7.4
"""Inches, a page's text width."""

MUTED = "#8c8c8c"

TWINS = ("#0072b2", "#d55e00")
STAGES = {"representation": "#d99400", "transition": "#00845f"}


@dataclass(frozen=True)
class Stroke:
    """How a curve is drawn."""

    color: str
    dash: Dash = "-"
    width: float = 1.3


_STROKES = {
    "reference": Stroke(INK, width=2.1),
    "tampl": Stroke("#d55e00"),
    "tampl+": Stroke("#b3001b", (0, (6, 1.2))),
    "jld": Stroke("#332288"),
    "jld-sig": Stroke("#56b4e9", (0, (5, 1.8))),
    "jld-vic": Stroke("#cc79a7", (0, (1.2, 1.3))),
    "vamp": Stroke("#e69f00", (0, (7, 1.5))),
    "jld-recon": Stroke("#aa3377", (0, (5, 1.5, 1.2, 1.5))),
    "two-stage-recon": Stroke("#117755", (0, (3, 1.2, 1, 1.2, 1, 1.2))),
    "macro-only": Stroke("#8a6d3b", (0, (2.2, 1.2))),
    "next-macro": Stroke("#7a8a00", (0, (4, 1.2, 2, 1.2))),
    "mean_field": Stroke("#0072b2", (0, (5, 1.8))),
    "pair": Stroke("#009e73", (0, (1.2, 1.3))),
    "mean_trajectory": Stroke(MUTED, (0, (5, 1.5, 1.2, 1.5))),
}

_SPARE = (
    Stroke("#cc79a7", (0, (3, 1.2, 1, 1.2))),
    Stroke("#e69f00", (0, (7, 1.5))),
    Stroke("#56b4e9", (0, (2, 1))),
)

RC: dict[Any, Any] = {
    "font.family": ["STIXGeneral"],
    "mathtext.fontset": "stix",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.width": 0.5,
    "ytick.minor.width": 0.5,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "xtick.minor.size": 1.8,
    "ytick.minor.size": 1.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "pdf.fonttype": 42,
    "savefig.facecolor": "white",
}


def stroke_of(key: str) -> Stroke:
    """The stroke of a curve; unknown names share a few spare ones."""
    # Not hash(): it differs from process to process, and a figure must not.
    spare = _SPARE[sum(key.encode()) % len(_SPARE)]
    if key in METHODS and METHODS[key].color is not None:
        return Stroke(METHODS[key].color or spare.color, spare.dash)
    return _STROKES.get(key, spare)


def break_stroke(key: str) -> Dash:
    """The dash of a curve where solid lines are taken by the simulations."""
    dash = stroke_of(key).dash
    return (0, (3.2, 1.4)) if dash == "-" else dash


def set_ticks(axis: Axes) -> None:
    """Few ticks at round numbers; on a logarithmic axis plain numbers instead of powers."""
    steps = [1, 2, 2.5, 5, 10]
    axis.xaxis.set_major_locator(MaxNLocator(5, steps=steps))
    if axis.get_yscale() == "log":
        low, high = axis.get_ylim()
        within_two_decades = high < 100 * low
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if within_two_decades else (1,)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_locator(NullLocator())
    else:
        axis.yaxis.set_major_locator(MaxNLocator(5, steps=steps))


Legend = list[tuple[Any, str]]
"""Marks with their texts; a mark is an artist, or several drawn over each other."""

_BAND = 0.2


def draw_microstate(
    axis: Axes, microstate: NDArray[Any], kind: str | Microstate, *, frame: str = INK
) -> None:
    """Draws one microstate in stored form, as its kind draws it.

    Arguments:
        axis: Where.
        microstate: The microstate.
        kind: Its kind, or the name of its kind where no more is known.
        frame: Colour of the frame; thicker where it says something.
    """
    try:
        draw = kind.show if isinstance(kind, Microstate) else find_kind(kind).draw
    except InputError:  # a record can be read without the plug-in that made it
        draw = Microstate.draw
        if microstate.ndim > 2:  # a picture: the first axis downwards, all others side by side
            microstate = microstate.reshape(len(microstate), -1)
    draw(axis, microstate)
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set(visible=True, color=frame, linewidth=0.6 if frame == INK else 1.6)


def draw_curve(
    axes: Sequence[Axes], times: NDArray[np.float64], curve: Curve, line: Stroke
) -> None:
    """Draws a mean and, unless it is deterministic, its band: one panel for each observable."""
    for j, axis in enumerate(axes):
        mean = curve.mean[:, j]
        if curve.std is not None:
            low, high = mean - curve.std[:, j], mean + curve.std[:, j]
            axis.fill_between(times, low, high, color=line.color, alpha=_BAND, linewidth=0)
        axis.plot(times, mean, color=line.color, linestyle=line.dash, linewidth=line.width)


def label_panel(axis: Axes, times: NDArray[np.float64], *, title: str) -> None:
    """Titles a panel of curves and gives it round ticks."""
    axis.set_title(title, fontstyle="italic", parse_math=False)
    axis.set_xlim(times[0], times[-1])
    set_ticks(axis)


def make_entry(line: Stroke, text: str, *, band: bool) -> tuple[Any, str]:
    """A line of the legend, with its band behind it where it has one."""
    curve = Line2D([], [], color=line.color, linestyle=line.dash, linewidth=line.width)
    mark = (Patch(facecolor=line.color, alpha=_BAND, linewidth=0), curve)
    return (mark if band else curve), text


def place_legend(figure: Figure | SubFigure, legend: Legend) -> None:
    """Puts the legend above all panels."""
    marks, texts = [mark for mark, _ in legend], [text for _, text in legend]
    box = figure.legend(marks, texts, loc="outside upper center", ncols=min(len(legend), 5))
    for text in box.get_texts():
        text.set_parse_math(False)


def save_figure(figure: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Writes `stem`.png (150 dpi) and `stem`.pdf and returns both paths."""
    stem = Path(stem)
    png, pdf = (stem.with_name(f"{stem.name}.{form}") for form in ("png", "pdf"))
    for path in (png, pdf):
        with replacing(path) as temporary:
            temporary.write_bytes(_render(figure, path.suffix[1:]))
    return png, pdf


def png_bytes(figure: Figure) -> bytes:
    """The figure as a PNG image (150 dpi), for a page that holds its images itself."""
    return _render(figure, "png")


@rc_context(RC)
def _render(figure: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    # Without a date the same figure gives the same bytes.
    metadata = {"CreationDate": None} if form == "pdf" else None
    figure.savefig(
        buffer, format=form, dpi=150, bbox_inches="tight", pad_inches=0.05, metadata=metadata
    )
    return buffer.getvalue()
