"""What the figures share: microstates, curves with their bands, labels, legends."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ....errors import InputError
from ....evaluation.cases import Curve
from . import style

__all__ = [
    "Legend",
    "draw_curve",
    "draw_microstate",
    "label_panel",
    "legend_above",
    "legend_entry",
]

Legend = list[tuple[Any, str]]
"""Marks with their texts; a mark is an artist, or several drawn over each other."""


_BAND = 0.2


# Of the mean distance of particles; those of the paper's liquid then nearly touch.
_RADIUS = 0.36


def draw_microstate(
    axis: Axes, microstate: NDArray[Any], kind: str, *, frame: str = style.INK
) -> None:
    """Draws one microstate in stored form.

    Arguments:
        axis: Where.
        microstate: The microstate.
        kind: Its kind, e.g. `description.microstate.kind`.
        frame: Colour of the frame; thicker where it says something.
    """
    if kind not in _DRAW:
        raise InputError(f"`kind` is {kind!r}; kinds that can be drawn are {sorted(_DRAW)}")
    _DRAW[kind](axis, microstate)
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set(visible=True, color=frame, linewidth=0.6 if frame == style.INK else 1.6)


def draw_curve(
    axes: Sequence[Axes], times: NDArray[np.float64], curve: Curve, line: style.Line
) -> None:
    """Draws a mean and, where there is one, its band: one panel for each observable."""
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
    style.tick(axis)


def legend_entry(line: style.Line, text: str, *, band: bool) -> tuple[Any, str]:
    """A line of the legend, with its band behind it where it has one."""
    curve = Line2D([], [], color=line.color, linestyle=line.dash, linewidth=line.width)
    mark = (Patch(facecolor=line.color, alpha=_BAND, linewidth=0), curve)
    return (mark if band else curve), text


def legend_above(figure: Figure | SubFigure, legend: Legend) -> None:
    """Puts the legend above all panels."""
    marks, texts = [mark for mark, _ in legend], [text for _, text in legend]
    box = figure.legend(marks, texts, loc="outside upper center", ncols=min(len(legend), 5))
    for text in box.get_texts():
        text.set_parse_math(False)


def _draw_lattice(axis: Axes, microstate: NDArray[Any]) -> None:
    states = len(style.STATES)
    norm = BoundaryNorm(np.arange(states + 1) - 0.5, states)
    # Neighbouring sites must not be blended: half infected is no state.
    axis.imshow(microstate, cmap=ListedColormap(style.STATES), norm=norm, interpolation="none")
    axis.set(xticks=[], yticks=[])


def _draw_particles(axis: Axes, microstate: NDArray[Any]) -> None:
    box = 2**16  # in levels, of which the stored form has as many for any box
    there = microstate[microstate[:, -1] > 0]
    x, y, types = there[:, 0] + 0.5, there[:, 1] + 0.5, there[:, -1].astype(int)
    size = 2 * _RADIUS * box / np.sqrt(max(1, len(there)))
    colors = [style.TYPES[(kind - 1) % len(style.TYPES)] for kind in types]
    # In units of the axes: circles grow and shrink with the panel.
    axis.add_collection(
        EllipseCollection(
            *(size, size, 0.0),
            units="xy",
            offsets=np.column_stack([x, y]),
            offset_transform=axis.transData,
            facecolors=colors,
            edgecolors="none",
        )
    )
    axis.set(xlim=(0, box), ylim=(0, box), xticks=[], yticks=[], aspect="equal")


def _draw_chain(axis: Axes, microstate: NDArray[Any]) -> None:
    # Seen along z, as the networks see it; beads in front hide those behind.
    beads = microstate[np.argsort(microstate[:, 2]), :2]
    axis.add_collection(
        EllipseCollection(
            *(1.0, 1.0, 0.0),
            units="xy",
            offsets=beads,
            offset_transform=axis.transData,
            facecolors=style.INK,
            edgecolors="white",
            linewidths=0.2,
        )
    )
    reach = np.abs(beads).max() + 1.0
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")


def _draw_image(axis: Axes, microstate: NDArray[Any]) -> None:
    axis.imshow(microstate, cmap="gray", vmin=0, vmax=255, interpolation="none")
    axis.set(xticks=[], yticks=[])


def _draw_vector(axis: Axes, microstate: NDArray[Any]) -> None:
    axis.plot(microstate, color=style.INK, linewidth=0.9)
    axis.margins(x=0)
    style.tick(axis)


_DRAW: dict[str, Callable[[Axes, NDArray[Any]], None]] = {
    "chain": _draw_chain,
    "image": _draw_image,
    "lattice": _draw_lattice,
    "particles": _draw_particles,
    "vector": _draw_vector,
}
