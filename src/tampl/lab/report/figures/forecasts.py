"""Forecasts as figures: microstates with their futures, twins, and methods side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

from ....errors import InputError
from ....evaluation.cases import Case, Cases, Curve
from ....microstates import Microstate
from ...snapshots import Snapshots
from ..grids import name_of
from . import drawing
from .drawing import draw_curve, draw_microstate, label_panel, make_entry, place_legend

__all__ = ["comparison", "predictions", "strip", "twins"]

Kind = Microstate | str
"""A kind of microstates, or its name where no more is known."""

_TWIN_NAMES = ("A", "B")

_ROW, _SNAPSHOTS, _EDGE = 0.82, 1.45, 0.75
"""Inches: a row of curves, the row of microstates, and legend with time axis."""

_ALONE = 3
"""Rows where all microstates are of one family."""

_ROOM = 0.25
"""How far panels reach beyond the simulation's band, as a part of its range."""


@rc_context(drawing.RC)
def predictions(
    cases: Cases, kind: Kind = "lattice", *, labels: Sequence[str] | None = None
) -> Figure:
    """Initial microstates and their futures: simulation, model and closures.

    Arguments:
        cases: The cases kept by the evaluation.
        kind: Kind of the microstates, or its name.
        labels: Families to show, one row each; all of them by default. Where all microstates are
            of one family, the first few of them are shown.
    """
    rows, columns = _choose_rows(cases, labels), len(cases.symbols)
    texts = _label_rows(rows)
    figure = Figure(figsize=(drawing.WIDTH, 0.55 + 1.45 * len(rows)), layout="constrained")
    axes = figure.subplots(
        len(rows), 1 + columns, squeeze=False, width_ratios=[0.78, *[1.0] * columns]
    )
    # One scale for each observable, so that rows can be compared; a picture has its own.
    for row in axes[1:, 1:]:
        for axis, first in zip(row, axes[0, 1:], strict=True):
            axis.sharex(first)
            axis.sharey(first)
    for axis in axes[:-1, 1:].flat:
        axis.tick_params(labelbottom=False)
    spread = {"reference": any(case.reference.std is not None for case in rows)}
    for (picture, *panels), case, text in zip(axes, rows, texts, strict=True):
        draw_microstate(picture, case.microstate, kind)
        picture.set_ylabel(text, parse_math=False)
        draw_curve(panels, cases.times, case.reference, drawing.stroke_of("reference"))
        # Ensembles are drawn last, above deterministic curves: they are the subject of the figure.
        order = sorted(case.predictions.items(), key=lambda item: item[1].std is not None)
        for name, curve in order:
            draw_curve(panels, cases.times, curve, drawing.stroke_of(name))
        for name, curve in case.predictions.items():
            spread[name] = spread.get(name, False) or curve.std is not None
    _label_grid(axes[:, 1:], cases)
    axes[0][0].set_title("initial state")
    place_legend(
        figure,
        [make_entry(drawing.stroke_of(k), name_of(k), band=band) for k, band in spread.items()],
    )
    return figure


@rc_context(drawing.RC)
def twins(cases: Cases, kind: Kind = "lattice") -> Figure:
    """Two microstates with the same macrostate and their different futures.

    Simulations are solid with a band, predictions broken. A prediction that is the same for both,
    as that of a closure in the macrostate must be, is drawn once and in gray.
    """
    pair = [cases.case(index) for index in cases.twins]
    if not pair:
        raise InputError("`cases` has no twins; a single test microstate has none")
    figure = Figure(figsize=(drawing.WIDTH, 3.0), layout="constrained")
    panels = [f"panel {j}" for j in range(len(cases.symbols))]
    axes = figure.subplot_mosaic(
        [[name, *panels] for name in _TWIN_NAMES], width_ratios=[0.7, *[1.0] * len(panels)]
    )
    columns, legend = [axes[panel] for panel in panels], []
    for name, case, color in zip(_TWIN_NAMES, pair, drawing.TWINS, strict=True):
        draw_microstate(axes[name], case.microstate, kind, frame=color)
        text = f"{name}: {case.label}" if case.label else name
        axes[name].set_ylabel(text, parse_math=False, color=color)
        line = drawing.Stroke(color, width=1.9)
        draw_curve(columns, cases.times, case.reference, line)
        band = case.reference.std is not None
        legend.append(make_entry(line, f"Simulation from {name}", band=band))
    for name in pair[0].predictions:
        if name not in pair[1].predictions:
            continue
        one, two = (case.predictions[name].mean for case in pair)
        same, dash = np.allclose(one, two, atol=1e-9), drawing.break_stroke(name)
        colors = [drawing.MUTED] if same else drawing.TWINS
        for mean, color in zip((one, two), colors, strict=False):
            draw_curve(columns, cases.times, Curve(mean, None), drawing.Stroke(color, dash, 1.2))
        line = drawing.Stroke(drawing.MUTED if same else drawing.INK, dash, 1.2)
        legend.append(make_entry(line, name_of(name) + " (both)" * same, band=False))
    _label_grid(np.array([columns]), cases)
    place_legend(figure, legend)
    return figure


@rc_context(drawing.RC)
def comparison(
    predictions: Mapping[str, Cases],
    snapshots: Snapshots,
    *,
    index: int,
    kind: Kind = "lattice",
) -> Figure:
    """The forecasts of several methods from one initial microstate, against simulations.

    Arguments:
        predictions: The cases of each method's run, all of the same data; one row each.
        snapshots: A trajectory of microstates for the row on top.
        index: The test microstate.
        kind: Kind of the microstates, or its name.
    """
    if not predictions:
        raise InputError("`predictions` is empty; give the cases of one method at least")
    heights = [_SNAPSHOTS, _EDGE + _ROW * len(predictions)]
    figure = Figure(figsize=(drawing.WIDTH, sum(heights)), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    first, simulation = next(iter(predictions.values())), drawing.stroke_of("reference")
    _draw_snapshots(above, snapshots, kind, first.time_unit)
    axes = below.subplots(
        len(predictions), len(first.symbols), sharex=True, sharey="col", squeeze=False
    )
    for row, (method, cases) in zip(axes, predictions.items(), strict=True):
        case, color = cases.case(index), drawing.stroke_of(method).color
        draw_curve(row, cases.times, case.reference, simulation)
        draw_curve(row, cases.times, case.predictions[method], drawing.Stroke(color, width=1.5))
        row[0].set_ylabel(
            name_of(method),
            rotation=0,
            ha="right",
            va="center",
            color=color,
            fontweight="bold",
            parse_math=False,
        )
    _label_grid(axes, first)
    _set_ranges(axes[0], first.case(index).reference)
    found = [(name, cases.case(index)) for name, cases in predictions.items()]
    spread = any(case.predictions[name].std is not None for name, case in found)
    legend = {
        name_of("reference"): (simulation, first.case(index).reference.std is not None),
        "Method, in its colour": (drawing.Stroke(drawing.MUTED), spread),
    }
    place_legend(below, [make_entry(line, t, band=band) for t, (line, band) in legend.items()])
    return figure


@rc_context(drawing.RC)
def strip(rows: Mapping[str, Snapshots], kind: Kind = "lattice", *, time_unit: str = "") -> Figure:
    """Microstates along trajectories.

    Arguments:
        rows: One trajectory for each row, by the row's label.
        kind: Kind of the microstates, or its name.
        time_unit: Unit of the times.
    """
    if not rows:
        raise InputError("`rows` is empty; give one trajectory at least")
    figure = Figure(figsize=(drawing.WIDTH, _SNAPSHOTS * len(rows)), layout="constrained")
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for part, (label, snapshots) in zip(parts, rows.items(), strict=True):
        first = _draw_snapshots(part, snapshots, kind, time_unit)
        first.set_ylabel(label, parse_math=False)
    return figure


def _choose_rows(cases: Cases, labels: Sequence[str] | None) -> list[Case]:
    if labels is None and len({case.label for case in cases.cases}) == 1:
        return list(cases.cases[:_ALONE])
    first: dict[str, Case] = {}
    for case in cases.cases:
        first.setdefault(case.label, case)
    wanted = list(first) if labels is None else list(labels)
    if not wanted or not first.keys() >= set(wanted):
        raise InputError(f"`labels` is {wanted}; the cases have the labels {list(first)}")
    return [first[label] for label in wanted]


def _label_rows(rows: Sequence[Case]) -> list[str]:
    """The family of each microstate, with its number where the family alone does not tell."""
    families = [case.label for case in rows]
    return [
        case.label
        if case.label and families.count(case.label) == 1
        else ", ".join(filter(None, [case.label, f"test {case.index}"]))
        for case in rows
    ]


def _label_grid(panels: NDArray[Any], cases: Cases) -> None:
    """Labels panels of curves, one column for each observable."""
    for number, row in enumerate(panels):
        for axis, label in zip(row, cases.axis_labels, strict=True):
            label_panel(axis, cases.times, title="" if number else label)
    for axis in panels[-1]:
        axis.set_xlabel(cases.time_label, parse_math=False)


def _draw_snapshots(figure: SubFigure, snapshots: Snapshots, kind: Kind, time_unit: str) -> Axes:
    """Draws a row of microstates and returns the first one's axes."""
    count = len(snapshots.times)
    # As many places as six snapshots take, so that a single one does not fill the page.
    axes = figure.subplots(1, max(count, 6), squeeze=False)[0]
    for axis in axes[count:]:
        axis.set_visible(False)
    for axis, time, microstate in zip(axes, snapshots.times, snapshots.microstates, strict=False):
        draw_microstate(axis, microstate, kind)
        if time_unit:  # which may hold any sign, and is no formula
            axis.set_title(f"t = {time:g} {time_unit}", parse_math=False)
        else:
            axis.set_title(f"$t = {time:g}$")
    return axes[0]


def _set_ranges(row: Sequence[Axes], reference: Curve) -> None:
    """One range for each observable: a method that runs away must not flatten the others."""
    std = np.zeros_like(reference.mean) if reference.std is None else reference.std
    # Frames may be missing in the reference, and single trajectories have no spread.
    low, high = reference.mean - np.nan_to_num(std), reference.mean + np.nan_to_num(std)
    low, high = np.nanmin(low, axis=0), np.nanmax(high, axis=0)
    room = _ROOM * np.maximum(high - low, 1e-9)
    for axis, bottom, top in zip(row, low - room, high + room, strict=True):
        axis.set_ylim(bottom, top)
