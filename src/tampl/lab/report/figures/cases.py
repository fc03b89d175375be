"""Cases as figures: initial microstates with their futures, and twins that part."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ....errors import InputError
from ....evaluation.cases import Case, Cases, Curve
from ..names import name_of
from . import style
from .panels import Legend, draw_curve, draw_microstate, label_panel, legend_above, legend_entry

__all__ = ["predictions", "twins"]

_TWIN_NAMES = ("A", "B")


@rc_context(style.RC)
def predictions(
    cases: Cases, kind: str = "lattice", *, labels: Sequence[str] | None = None
) -> Figure:
    """Initial microstates and what became of them: simulation, TAMPL and the closures.

    Arguments:
        cases: The cases kept by the evaluation.
        kind: Kind of the microstates, e.g. `description.microstate.kind`.
        labels: Families to show, one row each; all of them by default.
    """
    rows, columns = _first_of_labels(cases, labels), len(cases.symbols)
    figure = Figure(figsize=(style.WIDTH, 0.55 + 1.45 * len(rows)), layout="constrained")
    # One scale for each observable, so that rows can be compared.
    axes = figure.subplots(
        len(rows),
        1 + columns,
        sharex="col",
        sharey="col",
        squeeze=False,
        width_ratios=[0.78, *[1.0] * columns],
    )
    for row, case in zip(axes, rows, strict=True):
        draw_microstate(row[0], case.microstate, kind)
        row[0].set_ylabel(case.label, parse_math=False)
        _draw_futures(row[1:], cases.times, case)
    _label_grid(axes, cases)
    legend_above(figure, _prediction_legend(rows))
    return figure


@rc_context(style.RC)
def twins(cases: Cases, kind: str = "lattice") -> Figure:
    """Two microstates with the same macrostate and their different futures.

    Simulations are solid with a band, predictions broken. What predicts the same for both, as a
    closure in the macrostate must, is drawn once and in gray.
    """
    pair = [cases.case(index) for index in cases.twins]
    figure = Figure(figsize=(style.WIDTH, 3.0), layout="constrained")
    panels = [f"panel {j}" for j in range(len(cases.symbols))]
    axes = figure.subplot_mosaic(
        [[name, *panels] for name in _TWIN_NAMES], width_ratios=[0.7, *[1.0] * len(panels)]
    )
    columns = [axes[panel] for panel in panels]
    for name, case, color in zip(_TWIN_NAMES, pair, style.TWINS, strict=True):
        draw_microstate(axes[name], case.microstate, kind, frame=color)
        axes[name].set_ylabel(f"{name}: {case.label}", parse_math=False, color=color)
        draw_curve(columns, cases.times, case.reference, style.Line(color, width=1.9))
    same = {name: _same(pair, name) for name in _common(pair)}
    for name in same:
        _draw_twin_prediction(columns, cases.times, pair, name=name, same=same[name])
    for axis, symbol in zip(columns, cases.symbols, strict=True):
        label_panel(axis, cases.times, title=symbol)
        axis.set_xlabel("time")
    legend_above(figure, _twin_legend(pair, same))
    return figure


def _first_of_labels(cases: Cases, labels: Sequence[str] | None) -> list[Case]:
    first: dict[str, Case] = {}
    for case in cases.cases:
        first.setdefault(case.label, case)
    wanted = list(first) if labels is None else list(labels)
    if not wanted or not first.keys() >= set(wanted):
        raise InputError(f"`labels` is {wanted}; the cases have the labels {list(first)}")
    return [first[label] for label in wanted]


def _draw_futures(axes: Sequence[Axes], times: NDArray[np.float64], case: Case) -> None:
    draw_curve(axes, times, case.reference, style.line_of("reference"))
    # Ensembles last, above deterministic curves: they are what the figure is about.
    for name, curve in sorted(case.predictions.items(), key=lambda item: item[1].std is not None):
        draw_curve(axes, times, curve, style.line_of(name))


def _draw_twin_prediction(
    axes: Sequence[Axes],
    times: NDArray[np.float64],
    pair: Sequence[Case],
    *,
    name: str,
    same: bool,
) -> None:
    colors = (style.MUTED,) if same else style.TWINS
    for case, color in zip(pair, colors, strict=False):
        line = style.Line(color, style.broken(name), 1.2)
        draw_curve(axes, times, Curve(case.predictions[name].mean, None), line)


def _common(pair: Sequence[Case]) -> list[str]:
    return [name for name in pair[0].predictions if name in pair[1].predictions]


def _same(pair: Sequence[Case], name: str) -> bool:
    one, two = (case.predictions[name].mean for case in pair)
    return bool(np.allclose(one, two, atol=1e-9))


def _label_grid(axes: NDArray[Any], cases: Cases) -> None:
    for number, row in enumerate(axes):
        for axis, symbol in zip(row[1:], cases.symbols, strict=True):
            label_panel(axis, cases.times, title="" if number else symbol)
    axes[0][0].set_title("initial state")
    for axis in axes[-1][1:]:
        axis.set_xlabel("time")


def _prediction_legend(rows: Sequence[Case]) -> Legend:
    legend = [legend_entry(style.line_of("reference"), name_of("reference"), band=True)]
    for name in dict.fromkeys(name for case in rows for name in case.predictions):
        curves = [case.predictions[name] for case in rows if name in case.predictions]
        band = any(curve.std is not None for curve in curves)
        legend.append(legend_entry(style.line_of(name), name_of(name), band=band))
    return legend


def _twin_legend(pair: Sequence[Case], same: Mapping[str, bool]) -> Legend:
    legend = [
        legend_entry(style.Line(color, width=1.9), f"Simulation from {name}", band=True)
        for name, color in zip(_TWIN_NAMES, style.TWINS, strict=True)
    ]
    for name, both in same.items():
        line = style.Line(style.MUTED if both else style.INK, style.broken(name), 1.2)
        text = f"{name_of(name)} (both)" if both else name_of(name)
        legend.append(legend_entry(line, text, band=False))
    return legend
