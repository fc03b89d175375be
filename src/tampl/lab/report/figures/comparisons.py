"""The methods side by side, below a trajectory of microstates; and such trajectories alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

from ....errors import InputError
from ....evaluation.cases import Cases, Curve
from ...snapshots import Snapshots
from ..names import name_of
from . import style
from .panels import draw_curve, draw_microstate, label_panel, legend_above, legend_entry

__all__ = ["comparison", "strip"]

_ROW, _SNAPSHOTS, _EDGE = 0.82, 1.45, 0.75
"""Inches: a row of curves, the row of microstates, and what legend and time axis take."""


_ROOM = 0.25
"""How far panels reach beyond the simulation's band, as a part of its range."""


@rc_context(style.RC)
def comparison(
    predictions: Mapping[str, Cases], snapshots: Snapshots, *, index: int, kind: str = "lattice"
) -> Figure:
    """What the methods say of one initial microstate, against simulations of it.

    Arguments:
        predictions: The cases of each method's run, all of the same data; one row each.
        snapshots: A trajectory of microstates for the row on top.
        index: The test microstate.
        kind: Kind of the microstates, e.g. `description.microstate.kind`.
    """
    if not predictions:
        raise InputError("`predictions` is empty; give the cases of one method at least")
    heights = [_SNAPSHOTS, _EDGE + _ROW * len(predictions)]
    figure = Figure(figsize=(style.WIDTH, sum(heights)), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_snapshots(above, snapshots, kind)
    _draw_rows(below, predictions, index)
    return figure


@rc_context(style.RC)
def strip(rows: Mapping[str, Snapshots], kind: str = "lattice") -> Figure:
    """Microstates along trajectories.

    Arguments:
        rows: One trajectory for each row, by the row's label.
        kind: Kind of the microstates, e.g. `description.microstate.kind`.
    """
    if not rows:
        raise InputError("`rows` is empty; give one trajectory at least")
    figure = Figure(figsize=(style.WIDTH, _SNAPSHOTS * len(rows)), layout="constrained")
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for part, (label, snapshots) in zip(parts, rows.items(), strict=True):
        first = _draw_snapshots(part, snapshots, kind)
        first.set_ylabel(label, parse_math=False)
    return figure


def _draw_snapshots(figure: SubFigure, snapshots: Snapshots, kind: str) -> Axes:
    """Draws a row of microstates and returns the first one's axes."""
    count = len(snapshots.times)
    # As many places as six snapshots take, so that a single one does not fill the page.
    axes = figure.subplots(1, max(count, 6), squeeze=False)[0]
    for axis in axes[count:]:
        axis.set_visible(False)
    for axis, time, microstate in zip(axes, snapshots.times, snapshots.microstates, strict=False):
        draw_microstate(axis, microstate, kind)
        axis.set_title(f"$t = {time:g}$")
    return axes[0]


def _draw_rows(figure: SubFigure, predictions: Mapping[str, Cases], index: int) -> None:
    first = next(iter(predictions.values()))
    axes = figure.subplots(
        len(predictions), len(first.symbols), sharex=True, sharey="col", squeeze=False
    )
    for row, (method, cases) in zip(axes, predictions.items(), strict=True):
        _draw_row(row, method, cases, index=index)
    _label(axes, first)
    _set_ranges(axes[0], first.case(index).reference)
    marks = [
        legend_entry(style.line_of("reference"), name_of("reference"), band=True),
        legend_entry(style.Line(style.MUTED), "Method, in its colour", band=True),
    ]
    legend_above(figure, marks)


def _draw_row(row: Sequence[Axes], method: str, cases: Cases, *, index: int) -> None:
    case, line = cases.case(index), style.line_of(method)
    draw_curve(row, cases.times, case.reference, style.line_of("reference"))
    draw_curve(row, cases.times, case.predictions[method], style.Line(line.color, width=1.5))
    row[0].set_ylabel(
        name_of(method),
        rotation=0,
        ha="right",
        va="center",
        color=line.color,
        fontweight="bold",
        parse_math=False,
    )


def _label(axes: NDArray[Any], cases: Cases) -> None:
    for number, row in enumerate(axes):
        for axis, symbol in zip(row, cases.symbols, strict=True):
            label_panel(axis, cases.times, title="" if number else symbol)
    for axis in axes[-1]:
        axis.set_xlabel("time")


def _set_ranges(row: Sequence[Axes], reference: Curve) -> None:
    """One range for each observable: a method that goes astray must not flatten the others."""
    std = np.zeros_like(reference.mean) if reference.std is None else reference.std
    low, high = (reference.mean - std).min(axis=0), (reference.mean + std).max(axis=0)
    room = _ROOM * np.maximum(high - low, 1e-9)
    for axis, bottom, top in zip(row, low - room, high + room, strict=True):
        axis.set_ylim(bottom, top)
