"""What training looked like, epoch by epoch: losses, validation, and the scale of the latents.

A history has one record for each epoch, `{"epoch": 1, "losses": {stage: {"total": ..., "cur": ...,
"tr": ...}}, "latent": {"std_mean": ..., "std_min": ..., "effective_rank": ...},
"validation": RMSE or None}`; what an epoch did not measure is left out of its curve.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..names import name_of
from . import style

__all__ = ["History", "latent_scale", "latent_scales", "training_curves"]

History = Sequence[Mapping[str, Any]]


_LOSSES: dict[str, tuple[str, style.Dash]] = {
    "total": ("total", "-"),
    "cur": ("$L_\\mathrm{cur}$", (0, (5, 1.6))),
    "tr": ("$L_\\mathrm{tr}$", (0, (1.3, 1.3))),
}


_LATENT: dict[str, tuple[str, style.Dash]] = {
    "std_mean": ("mean", "-"),
    "std_min": ("smallest", (0, (5, 1.6))),
}


_OTHER: style.Dash = (0, (3, 1.2, 1, 1.2))


_COLOR = "#0072b2"


@rc_context(style.RC)
def training_curves(history: History) -> Figure:
    """Losses of each stage over epochs, and the validation RMSE where it was measured."""
    stages = list(dict.fromkeys(stage for epoch in history for stage in epoch.get("losses", {})))
    figure = Figure(figsize=(style.WIDTH, 2.4), layout="constrained")
    axes = figure.subplots(1, len(stages) + 1, squeeze=False)[0]
    for axis, stage in zip(axes, stages, strict=False):
        _draw_losses(axis, history, stage)
    _draw_validation(axes[-1], history)
    return figure


@rc_context(style.RC)
def latent_scale(history: History) -> Figure:
    """Spread of the latent coordinates and their effective rank over epochs.

    A representation that collapses shows as a spread that falls by orders of magnitude.
    """
    figure = Figure(figsize=(style.WIDTH * 0.7, 2.4), layout="constrained")
    scale, rank = figure.subplots(1, 2)
    for key, (text, dash) in _LATENT.items():
        _draw(scale, history, ("latent", key), line=style.Line(_COLOR, dash), text=text)
    _finish(scale, "Latent scale", "standard deviation", log=True)
    _draw(rank, history, ("latent", "effective_rank"), line=style.Line(_COLOR))
    rank.set_ylim(bottom=0.0)
    _finish(rank, "Effective rank", "latent dimensions in use")
    return figure


@rc_context(style.RC)
def latent_scales(histories: Mapping[str, Sequence[History]]) -> Figure:
    """Spread of the latent coordinates over epochs, all methods in one panel.

    Arguments:
        histories: The histories of each method's runs; the first is drawn strong.
    """
    figure = Figure(figsize=(style.WIDTH * 0.86, 3.1), layout="constrained")
    axis = figure.subplots()
    for method, runs in histories.items():
        _draw_scales(axis, method, runs)
    axis.margins(x=0.02)
    _finish(axis, "Latent scale", "standard deviation", log=True, legend=False)
    _legend_beside(figure, axis)
    return figure


def _draw_scales(axis: Axes, method: str, runs: Sequence[History]) -> None:
    path, line = ("latent", "std_mean"), style.line_of(method)
    for history in runs[1:]:
        epochs, values = _series(history, path)
        axis.plot(epochs, values, color=line.color, linestyle=line.dash, linewidth=0.8, alpha=0.45)
    _draw(axis, runs[0], path, line=style.Line(line.color, line.dash, 1.7), text=name_of(method))


def _legend_beside(figure: Figure, axis: Axes) -> None:
    box = figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper")
    for text in box.get_texts():
        text.set_parse_math(False)


def _draw_losses(axis: Axes, history: History, stage: str) -> None:
    losses = [epoch.get("losses", {}).get(stage, {}) for epoch in history]
    terms = list(dict.fromkeys(term for record in losses for term in record))
    # The total of a single term is that term.
    shown = terms if len(terms) > 2 else terms[:1]
    for term in shown:
        text, dash = _LOSSES.get(term, (term, _OTHER))
        line = style.Line(style.STAGES.get(stage, _COLOR), dash)
        _draw(axis, history, ("losses", stage, term), line=line, text=text)
    _finish(axis, f"{stage.capitalize()} stage", "loss", log=True)


def _draw_validation(axis: Axes, history: History) -> None:
    epochs, values = _series(history, ("validation",))
    axis.plot(epochs, values, color=_COLOR, linewidth=1.3, marker="o", markersize=3)
    if values:
        best = min(range(len(values)), key=values.__getitem__)
        axis.scatter(epochs[best], values[best], s=55, facecolor="none", edgecolor=style.INK)
        text = f"best {values[best]:.3f}, epoch {epochs[best]}"
        axis.text(0.97, 0.97, text, transform=axis.transAxes, ha="right", va="top")
        _add_headroom(axis)
    _finish(axis, "Validation", "RMSE of rollouts")


def _draw(
    axis: Axes,
    history: History,
    path: tuple[str, ...],
    *,
    line: style.Line,
    text: str | None = None,
) -> None:
    epochs, values = _series(history, path)
    axis.plot(
        epochs, values, color=line.color, linestyle=line.dash, linewidth=line.width, label=text
    )


def _series(history: History, path: tuple[str, ...]) -> tuple[list[int], list[float]]:
    """Epochs and finite values of whatever lies at `path` in the records that have it."""
    points = [(epoch["epoch"], _at(epoch, path)) for epoch in history]
    found = [(epoch, value) for epoch, value in points if value is not None and isfinite(value)]
    return [epoch for epoch, _ in found], [value for _, value in found]


def _at(record: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = record
    for key in path:
        value = (value or {}).get(key)
    return value


def _finish(
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
    style.tick(axis)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _add_headroom(axis: Axes) -> None:
    """Room for one line of text above the curves, whatever the scale."""
    low, high = axis.get_ylim()
    log = axis.get_yscale() == "log"
    axis.set_ylim(low, high * (high / low) ** 0.2 if log else high + 0.2 * (high - low))
