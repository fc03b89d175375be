r"""The method on one page, drawn: two alternating stages and the forecast.

Stage I trains the encoder E and the readout R against the frozen target encoder \bar E and the
frozen transition T; stage II trains T between latents of the refreshed \bar E. A forecast encodes
once, then samples z_{t+1} from T and reads y off it; no decoder anywhere. After the paper's
overview figure. One unit of the drawing is a tenth of an inch.

    python docs/images/schematic.py           # writes docs/images/schematic.png
    python docs/images/schematic.py FOLDER    # writes schematic.png and schematic.pdf elsewhere
"""

import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, PathPatch
from matplotlib.path import Path

from tampl.lab.report.figures import drawing, png_bytes, save_figure
from tampl.microstates.grids import STATES

__all__ = ["schematic"]

Point = tuple[float, float]

_NOW = (
    "........",
    "........",
    "..ii....",
    "..iii...",
    "...ii...",
    "........",
    "......i.",
    "........",
)

_NEXT = (
    "........",
    "..ii....",
    ".irri...",
    ".irrii..",
    "..irri..",
    "...ii.i.",
    ".....iri",
    "......i.",
)

_FADED = "#b4b4b4"
_FROZEN = "#7d8790"
_ICE = "#3d8fc6"
_FLAME = "#d1491b"
_MEAN = "#d55e00"

_TONGUE = (
    (0.0, -1.0),
    *((0.85, -1.0), (1.15, -0.25), (0.65, 0.45)),
    *((0.6, 0.15), (0.45, 0.05), (0.35, 0.05)),
    *((0.45, 0.7), (0.15, 1.2), (-0.35, 1.5)),
    *((-0.25, 0.9), (-0.95, 0.4), (-0.95, -0.2)),
    *((-0.95, -0.7), (-0.5, -1.0), (0.0, -1.0)),
)

_LOOKS = {
    "trains": drawing.Stroke(drawing.INK),
    "used": drawing.Stroke(drawing.INK),
    "frozen": drawing.Stroke(_FROZEN, (0, (3, 1.5))),
    "absent": drawing.Stroke(_FADED, (0, (3, 1.5))),
}


@dataclass(frozen=True)
class _Tint:
    """Colours of a panel: its ground, its title and the modules that train in it."""

    ground: str
    title: str
    trained: str


_YELLOW = _Tint("#fdf5dd", "#8a6100", "#f7cd58")
_GREEN = _Tint("#e5f4ec", "#00664a", "#7fcfa8")
_GRAY = _Tint("#f3f3f1", drawing.INK, "#ffffff")


@rc_context({**drawing.RC, "axes.grid": False})
def schematic() -> Figure:
    """Draws the method: representation stage, transition stage, forecast."""
    figure = Figure(figsize=(7.6, 5.05))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, 76), ylim=(0, 50.5))
    axis.set_axis_off()
    _representation(axis, 1.0, 22.3)
    _transition(axis, 41.0, 22.3)
    _alternation(axis)
    _forecast(axis, 1.0, 1.0)
    return figure


def _representation(axis: Axes, left: float, low: float) -> None:
    _panel(axis, (left, low), (34, 27), "Stage I: representation", _YELLOW)
    top, middle = low + 18.9, low + 12.0
    z = _latent(axis, (left + 18, top), "$z_t$")
    ahead = _latent(axis, (left + 31, top), r"$\hat z_{t+1}$")
    _chain(
        axis,
        _microstate(axis, (left + 4.2, top), "$x_t$", _NOW),
        _module(axis, (left + 11.7, top), "$E$", "trains", _YELLOW.trained),
        z,
        _module(axis, (left + 24.5, top), "$T$", "frozen"),
        ahead,
    )
    _target_row(axis, left, low + 5.1, ahead)
    readout = _module(axis, (z.x, middle), "$R$", "trains", _YELLOW.trained)
    _arrow(axis, (z.x, top - 2.4), (z.x, middle + 2.6))
    _chain(axis, readout, _text(axis, (left + 23.1, middle), r"$\hat y_t$"))
    _chain(axis, _Node(left + 23.1, middle, 0.7), _loss(axis, (left + 27.3, middle), "cur"))
    _no_decoder(axis, (left + 11.7, middle), z)


def _transition(axis: Axes, left: float, low: float) -> None:
    _panel(axis, (left, low), (34, 27), "Stage II: transition", _GREEN)
    top = low + 18.9
    ahead = _latent(axis, (left + 31, top), r"$\hat z_{t+1}$")
    _chain(
        axis,
        _microstate(axis, (left + 4.2, top), "$x_t$", _NOW),
        _module(axis, (left + 11.7, top), r"$\bar E$", "frozen"),
        _latent(axis, (left + 18, top), r"$\bar z_t$"),
        _module(axis, (left + 24.5, top), "$T$", "trains", _GREEN.trained),
        ahead,
    )
    _target_row(axis, left, low + 5.1, ahead)
    _key(axis, (left + 11.7, low + 12.0))


def _target_row(axis: Axes, left: float, y: float, ahead: "_Node") -> None:
    """The next microstate through the frozen target encoder, and the loss it anchors."""
    _chain(
        axis,
        _microstate(axis, (left + 4.2, y), "$x_{t+1}$", _NEXT),
        _module(axis, (left + 11.7, y), r"$\bar E$", "frozen"),
        _latent(axis, (ahead.x, y), r"$\bar z_{t+1}$", above=False),
    )
    _arrow(axis, (ahead.x, y + 2.5), (ahead.x, ahead.y - 2.5), both=True)
    _loss(axis, (ahead.x, (y + ahead.y) / 2), "tr")


def _forecast(axis: Axes, left: float, low: float) -> None:
    _panel(axis, (left, low), (74, 19.5), "Forecast: encode once, sample, read out", _GRAY)
    y = low + 11.3
    nodes = [
        _microstate(axis, (left + 4.2, y), "$x_0$", _NOW),
        _module(axis, (left + 11.7, y), "$E$"),
    ]
    for step, x in enumerate((left + 18, left + 30, left + 42)):
        nodes += [_latent(axis, (x, y), f"$z_{step}$"), _module(axis, (x + 6, y), "$T$")]
        if step:
            _reading(axis, (x, low + 4.2), step, y)
    _chain(axis, *nodes, _text(axis, (left + 53.4, y), r"$\cdots$"))
    _text(axis, (left + 53.4, low + 4.2), r"$\cdots$")
    _fan(axis, (left + 57.5, low + 2.8), (14.5, 11.5))


def _reading(axis: Axes, center: Point, step: int, top: float) -> None:
    x, y = center
    _arrow(axis, (x, top - 2.4), (x, y + 2.6))
    text = _text(axis, (x + 5.6, y), rf"$\hat y_{step}$")
    _chain(axis, _module(axis, center, "$R$"), text)


def _alternation(axis: Axes) -> None:
    """Between the stages: the target is refreshed, then the turn begins again."""
    _arrow(axis, (35.3, 41), (40.7, 41), bend=-0.35, width=1.4)
    axis.text(38, 43.0, r"$\bar E \leftarrow E$", ha="center", fontsize=10.5)
    _arrow(axis, (40.7, 27), (35.3, 27), bend=-0.35, width=1.4)
    axis.text(38, 24.6, "repeat", ha="center", va="center", fontsize=10)


@dataclass(frozen=True)
class _Node:
    """Where something was drawn and how far it reaches to each side."""

    x: float
    y: float
    reach: float


def _panel(axis: Axes, corner: Point, size: Point, title: str, tint: _Tint) -> None:
    shape = "round,pad=0,rounding_size=1.2"
    axis.add_patch(
        FancyBboxPatch(corner, *size, boxstyle=shape, facecolor=tint.ground, linewidth=0)
    )
    x, y = corner[0] + 1.6, corner[1] + size[1] - 1.3
    axis.text(x, y, title, color=tint.title, fontsize=11.5, fontweight="bold", va="top")


def _module(
    axis: Axes, center: Point, text: str, state: str = "used", fill: str = "#ffffff"
) -> _Node:
    """A network: filled and with a flame where it trains, dashed and iced where frozen."""
    (x, y), look = center, _LOOKS[state]
    shape = "round,pad=0,rounding_size=0.8"
    box = FancyBboxPatch(
        (x - 2.2, y - 2.2), 4.4, 4.4, boxstyle=shape, facecolor=fill, linewidth=1.0, zorder=3
    )
    box.set(edgecolor=look.color, linestyle=look.dash)
    axis.add_patch(box)
    axis.text(x, y - 0.1, text, ha="center", va="center", fontsize=13, color=look.color, zorder=4)
    _MARKS[state](axis, (x + 2.1, y + 2.1))
    return _Node(x, y, 2.2)


def _microstate(axis: Axes, center: Point, text: str, rows: tuple[str, ...]) -> _Node:
    x, y = center
    sites = np.array([[".ir".index(site) for site in row] for row in reversed(rows)])
    edges = np.linspace(-2.6, 2.6, len(rows) + 1)
    colors = ListedColormap(STATES[:3])
    mesh = axis.pcolormesh(x + edges, y + edges, sites, cmap=colors, vmin=0, vmax=2, zorder=3)
    mesh.set(edgecolor="white", linewidth=0.4)
    axis.text(x, y - 2.9, text, ha="center", va="top")
    return _Node(x, y, 2.6)


def _latent(axis: Axes, center: Point, text: str, *, above: bool = True) -> _Node:
    (x, y), shades = center, np.array([0.0, 0.75, 0.35, 1.0])[:, None]
    edges = y + np.linspace(-2.0, 2.0, 5)
    mesh = axis.pcolormesh(x + np.array([-0.5, 0.5]), edges, shades, cmap="Purples", zorder=3)
    mesh.set(edgecolor=drawing.INK, linewidth=0.5, clim=(-0.2, 1.3))
    place = (y + 2.3, "bottom") if above else (y - 2.3, "top")
    axis.text(x, place[0], text, ha="center", va=place[1])
    return _Node(x, y, 0.5)


def _text(axis: Axes, center: Point, text: str) -> _Node:
    axis.text(*center, text, ha="center", va="center", fontsize=10.5)
    return _Node(*center, 0.7)


def _loss(axis: Axes, center: Point, name: str) -> _Node:
    box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": drawing.INK}
    text = rf"$L_\mathrm{{{name}}}$"
    axis.text(*center, text, ha="center", va="center", bbox={**box, "linewidth": 0.7}, zorder=5)
    return _Node(*center, 1.5)


def _chain(axis: Axes, *nodes: _Node) -> None:
    """Arrows from each thing to the next."""
    for one, two in pairwise(nodes):
        _arrow(axis, (one.x + one.reach + 0.35, one.y), (two.x - two.reach - 0.35, two.y))


def _arrow(
    axis: Axes,
    start: Point,
    end: Point,
    *,
    both: bool = False,
    bend: float = 0.0,
    width: float = 1.0,
) -> None:
    arrow = FancyArrowPatch(
        start, end, arrowstyle="<|-|>" if both else "-|>", connectionstyle=f"arc3,rad={bend}"
    )
    arrow.set(mutation_scale=7.5, linewidth=width, color=drawing.INK, zorder=2)
    axis.add_patch(arrow)


def _no_decoder(axis: Axes, center: Point, source: _Node) -> None:
    x, y = center
    arrow = {"arrowstyle": "-|>", "linestyle": (0, (3, 2)), "color": _FADED, "shrinkA": 0}
    axis.annotate("", (x + 2.3, y + 1.0), (source.x - 0.9, source.y - 2.0), arrowprops=arrow)
    _module(axis, center, "$D$", "absent")
    axis.text(
        x - 7.5,
        y,
        "no\ndecoder",
        ha="center",
        va="center",
        color=_FROZEN,
        fontsize=9.5,
        linespacing=0.95,
    )
    for rise in (1.9, -1.9):
        axis.plot([x - 1.9, x + 1.9], [y - rise, y + rise], color=_FLAME, lw=1.6, zorder=5)


def _fan(axis: Axes, corner: Point, size: Point) -> None:
    """A small plot of the outcome: members, their mean and their spread."""
    (left, low), (width, height) = corner, size
    t = np.linspace(0, 1, 80)
    wave = lambda late: 0.08 + 2.9 * t * np.exp(-3.0 * t * late) - 0.2 * t * np.sin(12 * t * late)
    x, level = left + 0.94 * width * t, lambda value: low + height * (0.06 + value)
    members = [level(wave(late)) for late in (0.87, 0.92, 0.96, 1.04, 1.08, 1.13)]
    mean, spread = level(wave(1.0)), 0.8 * np.std(members, axis=0) + 0.1
    axis.fill_between(x, mean - spread, mean + spread, color=_MEAN, alpha=0.22, linewidth=0)
    for member in members:
        axis.plot(x, member, color=_MEAN, linewidth=0.5, alpha=0.55)
    axis.plot(x, mean, color=_MEAN, linewidth=1.8)
    _arrow(axis, corner, (left + width, low), width=0.8)
    _arrow(axis, corner, (left, low + height), width=0.8)
    axis.text(left + width, low - 0.5, "$t$", ha="right", va="top")
    axis.text(left + 0.8, low + height, r"$\hat y_t$", va="top")


def _key(axis: Axes, center: Point) -> None:
    x, y = center
    for shift, state in ((-1.8, "trains"), (7.2, "frozen")):
        _MARKS[state](axis, (x + shift, y))
        axis.text(x + shift + 1.4, y, state, va="center", fontsize=10)


def _snowflake(axis: Axes, center: Point) -> None:
    axis.plot(*center, marker=(6, 2, 0), ms=8.5, mec=_ICE, mew=1.2, zorder=6)


def _flame(axis: Axes, center: Point) -> None:
    for size, color in ((1.0, _FLAME), (0.5, "#f9b233")):
        # The tongues share their foot.
        points = [(center[0] + size * u, center[1] - 1 + size * (v + 1)) for u, v in _TONGUE]
        path = Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1))
        axis.add_patch(PathPatch(path, facecolor=color, linewidth=0, zorder=6))


def _unmarked(axis: Axes, center: Point) -> None:
    pass


_MARKS: dict[str, Callable[[Axes, Point], None]] = {
    "trains": _flame,
    "used": _unmarked,
    "frozen": _snowflake,
    "absent": _unmarked,
}


def main() -> None:
    """Writes the drawing."""
    if len(sys.argv) > 1:
        save_figure(schematic(), pathlib.Path(sys.argv[1]) / "schematic")
    else:
        path = pathlib.Path(__file__).with_suffix(".png")
        path.write_bytes(png_bytes(schematic()))


if __name__ == "__main__":
    main()
