"""Errors and latent scale against a setting: mean and sample standard deviation over seeds."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ....evaluation.comparison import Summary
from ....evaluation.sweeps import Sweep, SweepRow
from . import style

__all__ = ["sensitivity"]

_VALIDATION = style.Line("#0072b2", (0, (5, 1.8)))


_TEST = style.Line("#d55e00")


_LATENT = style.Line("#332288")


_WIDE = 20.0
"""Positive values whose extremes are further apart than this factor get a logarithmic axis."""


Pick = Callable[[SweepRow], Summary | None]


@rc_context(style.RC)
def sensitivity(sweep: Sweep) -> Figure:
    """Validation and test RMSE on the left, the latent scale on the right.

    Crosses mark values with a run whose latent scale collapsed.
    """
    figure = Figure(figsize=(style.WIDTH, 2.7), layout="constrained")
    errors, scale = figure.subplots(1, 2)
    _draw(errors, sweep, lambda row: row.validation, line=_VALIDATION, text="validation")
    _draw(errors, sweep, lambda row: row.rmse, line=_TEST, text="test")
    _draw(scale, sweep, lambda row: row.latent_std, line=_LATENT)
    if len(errors.containers) > 1:
        errors.legend()
    if scale.containers:
        scale.set_yscale("log", nonpositive="mask")
    _finish(errors, sweep, "RMSE")
    _finish(scale, sweep, "latent standard deviation")
    return figure


def _draw(
    axis: Axes, sweep: Sweep, pick: Pick, *, line: style.Line, text: str | None = None
) -> None:
    found = zip(_places(sweep), sweep.rows, map(pick, sweep.rows), strict=True)
    points = [(x, row, s) for x, row, s in found if s is not None and isfinite(s.mean)]
    if not points:
        return
    axis.errorbar(
        [x for x, _, _ in points],
        [summary.mean for _, _, summary in points],
        [summary.std or 0.0 for _, _, summary in points],
        color=line.color,
        linestyle=line.dash,
        linewidth=line.width,
        elinewidth=0.9,
        capsize=2.5,
        label=text,
    )
    for x, row, summary in points:
        marker, size = ("X", 52.0) if row.collapsed else ("o", 14.0)
        axis.scatter(x, summary.mean, size, marker=marker, color=line.color, zorder=3)


def _finish(axis: Axes, sweep: Sweep, ylabel: str) -> None:
    style.tick(axis)
    if _is_wide(sweep):
        axis.set_xscale("log")
    axis.set_xticks(_places(sweep), [_text(row.value) for row in sweep.rows], parse_math=False)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(sweep.key, parse_math=False)
    axis.set_ylabel(ylabel)


def _places(sweep: Sweep) -> list[float]:
    """Where the values lie: numbers at themselves, anything else one after another."""
    values = [row.value for row in sweep.rows]
    return [float(value) for value in (values if _are_numbers(values) else range(len(values)))]


def _is_wide(sweep: Sweep) -> bool:
    values = [row.value for row in sweep.rows]
    return _are_numbers(values) and 0 < _WIDE * min(values) < max(values)


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
