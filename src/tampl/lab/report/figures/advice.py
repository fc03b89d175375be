"""Advice as figures: trajectories with their memory and change, and what trainings have shown."""

from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ....advice import Advice, LearningCurve, SeriesFacts, Study, Training
from ..grids import name_of
from . import drawing

__all__ = ["series", "trainings"]

_SHOWN_RUNS, _MOST_ROWS, _POINTS = 30, 6, 400
_ACCENT, _OTHER = "#0072b2", "#d55e00"


@rc_context(drawing.RC)
def series(advice: Advice, y: NDArray[np.float64]) -> Figure:
    """Trajectories, autocorrelation and change over a lag: a row for each observable that moves.

    Arguments:
        advice: The advice.
        y: Macrostates that it is about, (n, F, m); NaN where a frame is absent.
    """
    rows = [(j, facts) for j, facts in enumerate(advice.series) if facts.moves][:_MOST_ROWS]
    figure = Figure(figsize=(drawing.WIDTH, 0.5 + 1.75 * max(1, len(rows))), layout="constrained")
    panels = figure.subplots(max(1, len(rows)), 3, squeeze=False)
    for line, (j, facts) in zip(panels, rows, strict=False):
        _draw_runs(line[0], y[..., j], advice, facts)
        _draw_memory(line[1], advice, facts)
        _draw_change(line[2], advice, facts)
    for axis in panels[-1]:
        unit = f" ({advice.time_unit})" if advice.time_unit else ""
        label = "time" if axis is panels[-1][0] else "lag"
        axis.set_xlabel(f"{label}{unit}", parse_math=False)
    for axis, title in zip(panels[0], ("Trajectories", "Memory", "Change"), strict=True):
        axis.set_title(title)
    return figure


@rc_context(drawing.RC)
def trainings(study: Study) -> Figure:
    """Errors with and without the microstate, by the size of z, by the number of trajectories."""
    figure = Figure(figsize=(drawing.WIDTH, 2.5), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    base, macro = study.trainings[0], study.trainings[1]
    _draw_bars(first, study, base, macro)
    alike = [t for t in study.trainings if t.method == base.method]
    dims = sorted(
        (t for t in alike if t.trajectories == base.trajectories), key=lambda t: t.latent_dim
    )
    _draw_points(second, [t.latent_dim for t in dims], dims)
    if study.latent_dim is not None:
        second.axvline(study.latent_dim, color=_OTHER, linewidth=1.0, linestyle=(0, (4, 2)))
    second.set(title="Latent dimension", xlabel="size of z")
    sizes = sorted(
        (t for t in alike if t.latent_dim == base.latent_dim), key=lambda t: t.trajectories
    )
    _draw_points(third, [t.trajectories for t in sizes], sizes, joined=study.curve is None)
    if study.curve is not None:
        _draw_curve(third, study.curve, [t.trajectories for t in sizes], study)
    third.set(title="Trajectories", xlabel="number of trajectories")
    return figure


def _draw_runs(axis: Axes, y: NDArray[np.float64], advice: Advice, facts: SeriesFacts) -> None:
    chosen = np.unique(np.linspace(0, len(y) - 1, min(_SHOWN_RUNS, len(y))).astype(int))
    frames = np.unique(np.linspace(0, y.shape[1] - 1, min(_POINTS, y.shape[1])).astype(int))
    times = advice.interval * frames
    axis.plot(times, y[chosen][:, frames].T, color=drawing.MUTED, linewidth=0.5, alpha=0.6)
    known = ~np.isnan(y[:, frames]).all(axis=0)
    axis.plot(
        times[known], np.nanmean(y[:, frames[known]], axis=0), color=drawing.INK, linewidth=1.6
    )
    unit = f" ({facts.unit})" if facts.unit else ""
    axis.set_ylabel(f"{facts.symbol}{unit}", parse_math=False)
    axis.set_xlim(times[0], times[-1])
    drawing.set_ticks(axis)


def _draw_memory(axis: Axes, advice: Advice, facts: SeriesFacts) -> None:
    times = advice.interval * np.concatenate([[0], facts.lags])
    rho = np.concatenate([[1.0], facts.autocorrelation])
    axis.axhline(0.0, color=drawing.MUTED, linewidth=0.6)
    axis.plot(times, rho, color=_ACCENT, linewidth=1.4)
    if facts.memory is not None:
        time = advice.interval * facts.memory
        mark = "=" if facts.resolved else ">"
        if time <= times[-1]:
            axis.axvline(time, color=_OTHER, linewidth=1.0, linestyle=(0, (4, 2)))
        _note(axis, f"$\\tau$ {mark} {time:.3g}")
    axis.set(ylabel="autocorrelation", xlim=(0, times[-1]), ylim=(min(-0.1, rho.min()), 1.05))
    drawing.set_ticks(axis)


def _draw_change(axis: Axes, advice: Advice, facts: SeriesFacts) -> None:
    times = advice.interval * facts.lags
    axis.plot(
        times, np.sqrt(2 * facts.variogram), color=_ACCENT, linewidth=1.4,
        marker="o" if len(times) < 9 else None, markersize=3,
    )  # fmt: skip
    if facts.noise > 0:
        axis.axhline(
            np.sqrt(2 * facts.noise), color=drawing.MUTED, linewidth=1.0, linestyle=(0, (2, 2))
        )
    if facts.lag is not None:
        time = advice.interval * facts.lag
        axis.axvline(time, color=_OTHER, linewidth=1.0, linestyle=(0, (4, 2)))
        _note(axis, f"seen after {time:.3g}", low=True)
    axis.set_xscale("log")
    axis.set(ylabel="change / spread", ylim=(0, None))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.xaxis.set_minor_formatter(lambda value, _: "")


def _note(axis: Axes, text: str, *, low: bool = False) -> None:
    place, anchor = (0.05, "bottom") if low else (0.95, "top")
    axis.text(
        0.95, place, text, transform=axis.transAxes, ha="right", va=anchor,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
    )  # fmt: skip


def _draw_bars(axis: Axes, study: Study, base: Training, macro: Training) -> None:
    bars = {
        name_of(base.method): (base.rmse, _OTHER),
        "From y alone": (macro.rmse, _ACCENT),
        "Mean trajectory": (study.mean_trajectory, drawing.MUTED),
        "Persistence": (study.persistence, drawing.MUTED),
    }
    kept = {key: bar for key, bar in bars.items() if np.isfinite(bar[0])}
    places = np.arange(len(kept))[::-1]
    axis.barh(
        places, [value for value, _ in kept.values()], color=[c for _, c in kept.values()],
        height=0.62,
    )  # fmt: skip
    for place, (value, _) in zip(places, kept.values(), strict=True):
        axis.text(value, place, f" {value:.3g}", va="center", fontsize=8.5)
    axis.set_yticks(places, list(kept))
    axis.grid(False, axis="y")
    axis.margins(x=0.18)
    axis.set(title="Microstate", xlabel="RMSE")


def _draw_points(
    axis: Axes, places: Sequence[int], found: Sequence[Training], *, joined: bool = True
) -> None:
    errors = [training.rmse for training in found]
    axis.plot(
        places, errors, color=_ACCENT, marker="o", markersize=4,
        linestyle="-" if joined else "none", linewidth=1.2,
    )  # fmt: skip
    axis.set_xscale("log", base=2)
    axis.set_xticks(places, [str(place) for place in places])
    axis.minorticks_off()
    axis.set(ylabel="RMSE", ylim=(0, 1.15 * max(errors)))


def _draw_curve(axis: Axes, curve: LearningCurve, sizes: Sequence[int], study: Study) -> None:
    far = max(4 * sizes[-1], min(study.needed or 0, 64 * sizes[-1]))
    n = np.geomspace(sizes[0], far, 200)
    axis.plot(n, [curve.rmse(k) for k in n], color=drawing.INK, linewidth=1.1)
    if curve.a > 0:
        axis.axhline(np.sqrt(curve.a), color=drawing.MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    if study.needed is not None and study.target is not None and study.needed <= far:
        axis.plot(study.needed, study.target, marker="D", markersize=5, color=_OTHER)
        text = f"{study.needed:.2g}"
        axis.annotate(
            text, (study.needed, study.target), xytext=(0, 7), textcoords="offset points",
            ha="center", color=_OTHER,
        )  # fmt: skip
