"""One look for all figures: colours, lines and typography.

Colours are those of Okabe and Ito and, where methods are many, of Tol: told apart by the common
forms of colour blindness. Lines differ in dash as well, so that nothing depends on colour alone.
Fonts are those that come with matplotlib: a figure is the same on every machine.
"""

from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

__all__ = [
    "INK",
    "MUTED",
    "RC",
    "STAGES",
    "STATES",
    "TWINS",
    "TYPES",
    "WIDTH",
    "Line",
    "broken",
    "line_of",
    "tick",
]

Dash = tuple[float, tuple[float, ...]] | Literal["-"]


WIDTH = 7.4
"""Inches, a page's text width."""


INK = "#262626"


MUTED = "#8c8c8c"


STATES = ("#e4e4e2", "#c8322b", "#3f7fb5", "#e0a526", "#4d9a6a", "#8b6bb1")
"""Sites of a lattice by state: susceptible light gray, infected red, recovered blue, others."""


TYPES = ("#1f6aa5", "#eba83a", "#c8322b", "#4d9a6a", "#8b6bb1")
"""Particles by type: blue and amber first, apart in brightness too."""


TWINS = ("#0072b2", "#d55e00")


STAGES = {"representation": "#d99400", "transition": "#00845f"}


@dataclass(frozen=True)
class Line:
    """How a curve is drawn."""

    color: str
    dash: Dash = "-"
    width: float = 1.3


_LINES = {
    "reference": Line(INK, width=2.1),
    "tampl": Line("#d55e00"),
    "tampl+": Line("#b3001b", (0, (6, 1.2))),
    "jld": Line("#332288"),
    "jld-sig": Line("#56b4e9", (0, (5, 1.8))),
    "jld-vic": Line("#cc79a7", (0, (1.2, 1.3))),
    "vamp": Line("#e69f00", (0, (7, 1.5))),
    "jld-recon": Line("#aa3377", (0, (5, 1.5, 1.2, 1.5))),
    "two-stage-recon": Line("#117755", (0, (3, 1.2, 1, 1.2, 1, 1.2))),
    "macro-only": Line("#8a6d3b", (0, (2.2, 1.2))),
    "next-macro": Line("#7a8a00", (0, (4, 1.2, 2, 1.2))),
    "mean_field": Line("#0072b2", (0, (5, 1.8))),
    "pair": Line("#009e73", (0, (1.2, 1.3))),
    "mean_trajectory": Line(MUTED, (0, (5, 1.5, 1.2, 1.5))),
}


_SPARE = (
    Line("#cc79a7", (0, (3, 1.2, 1, 1.2))),
    Line("#e69f00", (0, (7, 1.5))),
    Line("#56b4e9", (0, (2, 1))),
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


def line_of(key: str) -> Line:
    """The line of a curve; names without one of their own share a few spare lines."""
    # Not hash(): it differs from process to process, and a figure must not.
    return _LINES.get(key) or _SPARE[sum(key.encode()) % len(_SPARE)]


def broken(key: str) -> Dash:
    """The dash of a curve where solid lines are taken by the simulations."""
    dash = line_of(key).dash
    return (0, (3.2, 1.4)) if dash == "-" else dash


def tick(axis: Axes) -> None:
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
