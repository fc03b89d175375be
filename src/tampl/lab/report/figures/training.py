"""Trainings as figures: learning curves, latent scales, and errors against a setting.

A log has one record for each epoch, `{"epoch": 1, "losses": {stage: {"total": ..., "cur": ...,
"tr": ...}}, "latent": {"std_mean": ..., "std_min": ..., "effective_rank": ...},
"validation": RMSE or None}`; a curve leaves out the epochs that did not measure its value.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from ....evaluation.comparison import Comparison, ScoreRow
from ....evaluation.health import Log
from ..grids import name_of
from . import drawing

__all__ = ["latent_scale", "latent_scales", "sensitivity", "training_curves"]

_COLOR = "#0072b2"
_OTHER: drawing.Dash = (0, (3, 1.2, 1, 1.2))
_VALIDATION = drawing.Stroke(_COLOR, (0, (5, 1.8)))
_TEST, _LATENT = drawing.Stroke("#d55e00"), drawing.Stroke("#332288")
_WIDE = 20.0
"""Positive values whose extremes are further apart than this factor get a logarithmic axis."""

_LOSSES: dict[str, tuple[str, drawing.Dash]] = {
    "total": ("total", "-"),
    "cur": ("$L_\\mathrm{cur}$", (0, (5, 1.6))),
    "tr": ("$L_\\mathrm{tr}$", (0, (1.3, 1.3))),
}

_SCALES: dict[str, tuple[str, drawing.Dash]] = {
    "std_mean": ("mean", "-"),
    "std_min": ("smallest", (0, (5, 1.6))),
}


@rc_context(drawing.RC)
def training_curves(history: Log) -> Figure:
    """Losses of each stage over epochs, and the validation RMSE where it was measured."""
    stages = list(dict.fromkeys(stage for epoch in history for stage in epoch.get("losses", {})))
    figure = Figure(figsize=(drawing.WIDTH, 2.4), layout="constrained")
    axes = figure.subplots(1, len(stages) + 1, squeeze=False)[0]
    for axis, stage in zip(axes, stages, strict=False):
        _draw_losses(axis, history, stage)
    _draw_validation(axes[-1], history)
    return figure


@rc_context(drawing.RC)
def latent_scale(history: Log) -> Figure:
    """Spread of the latent coordinates and their effective rank over epochs.

    A representation that collapses shows as a spread that falls by orders of magnitude.
    """
    figure = Figure(figsize=(drawing.WIDTH * 0.7, 2.4), layout="constrained")
    scale, rank = figure.subplots(1, 2)
    for key, (text, dash) in _SCALES.items():
        _draw_line(scale, history, ("latent", key), line=drawing.Stroke(_COLOR, dash), text=text)
    _finish_panel(scale, "Latent scale", "standard deviation", log=True)
    _draw_line(rank, history, ("latent", "effective_rank"), line=drawing.Stroke(_COLOR))
    rank.set_ylim(bottom=0.0)
    _finish_panel(rank, "Effective rank", "latent dimensions in use")
    return figure


@rc_context(drawing.RC)
def latent_scales(histories: Mapping[str, Sequence[Log]]) -> Figure:
    """Spread of the latent coordinates over epochs, all methods in one panel.

    Arguments:
        histories: The histories of each method's runs; the first is drawn strong.
    """
    figure = Figure(figsize=(drawing.WIDTH * 0.86, 3.1), layout="constrained")
    axis = figure.subplots()
    path = ("latent", "std_mean")
    for method, (first, *others) in histories.items():
        line = drawing.stroke_of(method)
        for history in others:
            _draw_line(axis, history, path, line=drawing.Stroke(line.color, line.dash, 0.8))
            axis.lines[-1].set_alpha(0.45)
        strong = drawing.Stroke(line.color, line.dash, 1.7)
        _draw_line(axis, first, path, line=strong, text=name_of(method))
    axis.margins(x=0.02)
    _finish_panel(axis, "Latent scale", "standard deviation", log=True, legend=False)
    box = figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper")
    for text in box.get_texts():
        text.set_parse_math(False)
    return figure


def _draw_losses(axis: Axes, history: Log, stage: str) -> None:
    losses = [epoch.get("losses", {}).get(stage, {}) for epoch in history]
    terms = list(dict.fromkeys(term for record in losses for term in record))
    # The total of a single term is that term.
    shown = terms if len(terms) > 2 else terms[:1]
    for term in shown:
        text, dash = _LOSSES.get(term, (term, _OTHER))
        line = drawing.Stroke(drawing.STAGES.get(stage, _COLOR), dash)
        _draw_line(axis, history, ("losses", stage, term), line=line, text=text)
    _finish_panel(axis, f"{stage.capitalize()} stage", "loss", log=True)


def _draw_validation(axis: Axes, history: Log) -> None:
    epochs, values = _collect_points(history, ("validation",))
    axis.plot(epochs, values, color=_COLOR, linewidth=1.3, marker="o", markersize=3)
    if values:
        best = min(range(len(values)), key=values.__getitem__)
        axis.scatter(epochs[best], values[best], s=55, facecolor="none", edgecolor=drawing.INK)
        text = f"best {values[best]:.3f}, epoch {epochs[best]}"
        axis.text(0.97, 0.97, text, transform=axis.transAxes, ha="right", va="top")
        _add_headroom(axis)
    _finish_panel(axis, "Validation", "RMSE of rollouts")


def _draw_line(
    axis: Axes,
    history: Log,
    path: tuple[str, ...],
    *,
    line: drawing.Stroke,
    text: str | None = None,
) -> None:
    epochs, values = _collect_points(history, path)
    axis.plot(
        epochs, values, color=line.color, linestyle=line.dash, linewidth=line.width, label=text
    )


def _collect_points(history: Log, path: tuple[str, ...]) -> tuple[list[int], list[float]]:
    """Epochs and finite values at `path` in the records that have one there."""
    points = []
    for epoch in history:
        value: Any = epoch
        for key in path:
            value = (value or {}).get(key)
        if value is not None and isfinite(value):
            points.append((epoch["epoch"], value))
    return [epoch for epoch, _ in points], [value for _, value in points]


def _finish_panel(
    axis: Axes, title: str, ylabel: str, *, log: bool = False, legend: bool = True
) -> None:
    axis.set(title=title, xlabel="epoch", ylabel=ylabel)
    positive = [line for line in axis.lines if np.any(np.asarray(line.get_ydata()) > 0)]
    if log and positive:
        axis.set_yscale("log", nonpositive="mask")
    handles, texts = axis.get_legend_handles_labels()
    if legend and len(handles) > 1:
        _add_headroom(axis)
        axis.legend(
            handles,
            texts,
            loc="upper right",
            ncols=len(handles),
            handlelength=1.7,
            columnspacing=1.0,
            handletextpad=0.5,
            borderaxespad=0.1,
        )
    drawing.set_ticks(axis)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _add_headroom(axis: Axes) -> None:
    """Room for one line of text above the curves, whatever the scale."""
    low, high = axis.get_ylim()
    log = axis.get_yscale() == "log"
    axis.set_ylim(low, high * (high / low) ** 0.2 if log else high + 0.2 * (high - low))


@rc_context(drawing.RC)
def sensitivity(comparison: Comparison, values: Sequence[Any], *, key: str) -> Figure:
    """Errors and latent scale against a setting: mean and sample standard deviation over seeds.

    Validation and test RMSE stand on the left, the latent scale on the right. Crosses mark values
    with a run whose latent scale collapsed.

    Arguments:
        comparison: The values compared.
        values: The values in the order of `comparison.choices`.
        key: The setting.
    """
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    # Numbers lie at themselves, anything else one after another.
    places = [float(place) for place in (values if numbers else range(len(values)))]
    rows = {
        place: comparison.scores[choice]
        for place, choice in zip(places, comparison.choices, strict=True)
        if choice in comparison.scores
    }
    figure = Figure(figsize=(drawing.WIDTH, 2.7), layout="constrained")
    errors, scale = figure.subplots(1, 2)
    _draw_errors(errors, rows, "validation", line=_VALIDATION)
    _draw_errors(errors, rows, "rmse", line=_TEST, text="test")
    _draw_errors(scale, rows, "latent_std", line=_LATENT)
    if len(errors.containers) > 1:
        errors.legend()
    if scale.containers:
        scale.set_yscale("log", nonpositive="mask")
    for axis, ylabel in ((errors, "RMSE"), (scale, "latent standard deviation")):
        drawing.set_ticks(axis)
        if numbers and 0 < _WIDE * min(values) < max(values):
            axis.set_xscale("log")
        axis.set_xticks(places, [_write_value(value) for value in values], parse_math=False)
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xlabel(key, parse_math=False)
        axis.set_ylabel(ylabel)
    return figure


def _draw_errors(
    axis: Axes,
    rows: Mapping[float, ScoreRow],
    metric: str,
    *,
    line: drawing.Stroke,
    text: str | None = None,
) -> None:
    found = {place: getattr(row, metric) for place, row in rows.items()}
    shown = {place: s for place, s in found.items() if s is not None and isfinite(s.mean)}
    if not shown:
        return
    axis.errorbar(
        list(shown),
        [summary.mean for summary in shown.values()],
        [summary.std or 0.0 for summary in shown.values()],
        color=line.color,
        linestyle=line.dash,
        linewidth=line.width,
        elinewidth=0.9,
        capsize=2.5,
        label=text or metric,
    )
    for place, summary in shown.items():
        marker, size = ("X", 52.0) if rows[place].collapsed else ("o", 14.0)
        axis.scatter(place, summary.mean, size, marker=marker, color=line.color, zorder=3)


def _write_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_write_value, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
