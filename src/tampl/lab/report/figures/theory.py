"""The figures of the linear theory: what joint training and TAMPL do to a linear system.

Curves of the mechanism cases and of the local test are means over seeds with bands of one
standard deviation, those of the collapse medians with interquartile ranges. On logarithmic axes
losses below `FLOOR` are drawn at it, and latent scales begin at `LOWEST_SCALE`. A band whose lower
edge would be negative, which no such axis has, ends at the lowest seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogFormatterMathtext, NullLocator

from ....theory.experiments import Collapse, Illustration, LocalTest, Mechanism
from ..linear import NAMES
from . import drawing
from .drawing import make_entry, place_legend

__all__ = ["FLOOR", "LOWEST_SCALE", "collapse", "local_test", "mechanism", "selection"]

FLOOR = 1e-16
LOWEST_SCALE = 1e-3
_BAND = 0.2

_LINES = {
    # Where all three do the same, each is still seen: a wide line under narrower ones.
    "joint": drawing.Stroke(drawing.stroke_of("jld").color, width=2.2),
    "recon_joint": drawing.stroke_of("jld-recon"),
    "tampl": drawing.Stroke(drawing.stroke_of("tampl").color, width=1.5),
}

_GUIDE = drawing.Stroke(drawing.INK, (0, (1.2, 1.6)), 1.1)
_TASK, _OTHER = drawing.stroke_of("tampl"), drawing.stroke_of("jld-recon")


@dataclass(frozen=True, eq=False)
class _Band:
    """A curve with what lies around it, each (records,)."""

    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of_means(cls, values: np.ndarray) -> "_Band":
        mean, std = values.mean(axis=-1), values.std(axis=-1, ddof=min(1, values.shape[-1] - 1))
        return cls(mean, np.maximum(mean - std, values.min(axis=-1)), mean + std)

    @classmethod
    def of_medians(cls, values: np.ndarray) -> "_Band":
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=-1)
        return cls(middle, low, high)


@rc_context(drawing.RC)
def mechanism(experiment: Mechanism) -> Figure:
    """Losses, smallest latent scale and rollout error of all methods over updates."""
    figure = Figure(figsize=(drawing.WIDTH, 4.5), layout="constrained")
    panels = {
        "l_cur": (r"Current loss $\mathcal{L}_\mathrm{cur}$", FLOOR),
        "l_tr": (r"Transition loss $\mathcal{L}_\mathrm{tr}$", FLOOR),
        "s_min": (r"Smallest latent scale $s_\mathrm{min}(B)$", LOWEST_SCALE),
        "rollout": (r"Rollout error $\mathcal{E}_\mathrm{roll}^{(10)}$", FLOOR),
    }
    axes = figure.subplots(2, 2, sharex=True)
    for axis, (key, (title, floor)) in zip(axes.flat, panels.items(), strict=True):
        for method, curves in experiment.curves.items():
            band = _Band.of_means(getattr(curves, key))
            _draw_band(axis, curves.updates, band, line=_LINES[method], floor=floor)
        _finish_panel(axis, title)
        _use_decades(axis, floor)
    for axis in axes[-1]:
        axis.set_xlabel("update")
    _list_methods(figure, list(experiment.curves))
    return figure


@rc_context(drawing.RC)
def local_test(test: LocalTest) -> Figure:
    """Norm of the full residual and smallest latent variance of both methods over rounds.

    The dotted line falls by the spectral radius of the quotient Jacobian of a TAMPL round, the
    mean over seeds, in each round.
    """
    figure = Figure(figsize=(drawing.WIDTH, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for method, norms in test.norms.items():
        line = _LINES[method]
        _draw_band(left, test.rounds, _Band.of_means(norms), line=line, floor=FLOOR)
        _draw_band(right, test.rounds, _Band.of_means(test.variances[method]), line=line)
    guide = np.mean(test.norms["tampl"][-1]) * np.mean(test.radius) ** (
        test.rounds - float(test.rounds[-1])
    )
    _plot(left, test.rounds, guide, line=_GUIDE)
    _finish_panel(left, r"Residual norm $\Vert\mathcal{R}\Vert_F$")
    left.set_yscale("log")
    left.yaxis.set_minor_locator(NullLocator())
    _finish_panel(right, r"Smallest latent variance $\lambda_\mathrm{min}(B\Sigma B^{\top})$")
    right.set_ylim(0.0, 1.25 * right.get_ylim()[1])
    for axis in (left, right):
        axis.set_xlabel("round")
    _list_methods(figure, list(test.norms), (make_entry(_GUIDE, "spectral radius", band=False),))
    return figure


@rc_context(drawing.RC)
def collapse(experiment: Collapse) -> Figure:
    """Latent norm and smallest scale over their initial values, and a rollout step's error."""
    figure = Figure(figsize=(drawing.WIDTH, 2.5), layout="constrained")
    norm, scale, error = figure.subplots(1, 3)
    for axis, curves, floor in (
        (norm, experiment.norms, None),
        (scale, experiment.scales, LOWEST_SCALE),
        (error, experiment.errors, FLOOR),
    ):
        for method, values in curves.items():
            band = _Band.of_medians(values)
            _draw_band(axis, experiment.updates, band, line=_LINES[method], floor=floor)
        axis.set_xlabel("update")
    _finish_panel(norm, "Latent norm / initial")
    norm.set_ylim(0.0, max(1.25, norm.get_ylim()[1]))
    _finish_panel(scale, "Smallest latent scale / initial")
    _use_decades(scale, LOWEST_SCALE)
    _finish_panel(error, f"Macroscopic error at step {experiment.step}")
    _use_decades(error, FLOOR)
    _list_methods(figure, list(experiment.norms))
    return figure


@rc_context(drawing.RC)
def selection(illustration: Illustration) -> Figure:
    """The competing eigenvalues, and what the selected coordinate leaves unexplained."""
    figure = Figure(figsize=(drawing.WIDTH, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    rec, (task, other) = illustration.rec, illustration.eigenvalues.T
    _plot(left, rec, task, line=_TASK, text="relevant $u$")
    _plot(left, rec, other, line=_OTHER, text="irrelevant $n$")
    missed = 1 - illustration.kept
    lost = illustration.l_rec / np.trace(illustration.system.Sigma)
    _plot(right, rec, missed, line=_TASK, text="of the macrostate $y$")
    _plot(right, rec, lost, line=_OTHER, text="of the microstate $x$")
    left.set(title="Competing eigenvalues", yscale="log")
    right.set(title="Unexplained variance of the best encoder", ylim=(-0.05, 1.3))
    for line in right.lines:
        line.set_drawstyle("steps-mid")  # the selection changes at once
    for axis in (left, right):
        axis.set(xscale="log", xlabel=r"$\lambda_\mathrm{rec}$", xlim=(rec[0], rec[-1]))
        _mark_threshold(axis, illustration.threshold, text=axis is left)
        axis.legend(loc="upper left")
    return figure


def _mark_threshold(axis: Axes, threshold: float, *, text: bool) -> None:
    if not 0 < threshold < np.inf:
        return
    axis.axvline(threshold, color=drawing.MUTED, linewidth=0.9, zorder=0)
    if text:
        axis.annotate(
            f"threshold {threshold:.3g}",
            (threshold, 0.04),
            xycoords=("data", "axes fraction"),
            xytext=(5, 0),
            textcoords="offset points",
        )


def _draw_band(
    axis: Axes,
    updates: np.ndarray,
    band: _Band,
    *,
    line: drawing.Stroke,
    floor: float | None = None,
) -> None:
    least = -np.inf if floor is None else floor
    low, middle, high = (np.maximum(part, least) for part in (band.low, band.middle, band.high))
    axis.fill_between(updates, low, high, color=line.color, alpha=_BAND, linewidth=0)
    _plot(axis, updates, middle, line=line)
    axis.set_xlim(updates[0], updates[-1])


def _plot(
    axis: Axes, x: np.ndarray, values: np.ndarray, *, line: drawing.Stroke, text: str | None = None
) -> None:
    axis.plot(x, values, color=line.color, linestyle=line.dash, linewidth=line.width, label=text)


def _finish_panel(axis: Axes, title: str) -> None:
    axis.set_title(title)
    drawing.set_ticks(axis)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _use_decades(axis: Axes, floor: float) -> None:
    """A logarithmic axis from the floor to one at least, with a tick at the floor."""
    high = max(axis.get_ylim()[1], 1.0)
    axis.set_yscale("log")
    # Half a decade of room keeps curves off the frame.
    axis.set_ylim(floor / (1.6 if floor == FLOOR else 1.0), 3.0 * high)
    decades = round(np.log10(floor)), int(np.floor(np.log10(3.0 * high)))
    ticks = 10.0 ** np.arange(decades[0], decades[1] + 1, 4 if floor == FLOOR else 1)
    axis.yaxis.set_major_locator(FixedLocator(ticks.tolist()))
    axis.yaxis.set_major_formatter(LogFormatterMathtext())
    axis.yaxis.set_minor_locator(NullLocator())


def _list_methods(figure: Figure, methods: Sequence[str], more: Sequence[tuple] = ()) -> None:
    entries = [make_entry(_LINES[m], NAMES[m], band=True) for m in methods]
    place_legend(figure, [*entries, *more])
