"""How far forecasts can be trusted: coverage, spread and ranks; the Chapman-Kolmogorov test."""

from collections.abc import Sequence

from matplotlib import rc_context
from matplotlib.figure import Figure

from ....calibration import Calibration
from ....evaluation.markov import MarkovTest
from . import drawing
from .drawing import INK, MUTED

__all__ = ["calibration", "markov"]

_LEVEL = 0.8
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


@rc_context(drawing.RC)
def calibration(found: Calibration, time_unit: str = "") -> Figure:
    """Coverage and spread over time and ranks, a row for each observable that varies.

    Arguments:
        found: The calibration.
        time_unit: Unit of the times.
    """
    figure = found.plot(time_unit=time_unit)
    figure.set_figwidth(drawing.WIDTH)
    return figure


@rc_context(drawing.RC)
def markov(found: MarkovTest, symbols: Sequence[str]) -> Figure:
    """Coverage after k steps, of latent coordinates and observables.

    Arguments:
        found: The test.
        symbols: Symbols of the observables.
    """
    figure = Figure(figsize=(0.62 * drawing.WIDTH, 2.3), layout="constrained")
    axis = figure.subplots()
    axis.plot(found.steps, found.latent, color=INK, marker="o", ms=3.5, label="latent state")
    for number, (symbol, covered) in enumerate(zip(symbols, found.observables.T, strict=True)):
        color = _COLOURS[number % len(_COLOURS)]
        axis.plot(found.steps, covered, color=color, marker="o", ms=2.5, lw=1, label=symbol)
    axis.axhline(_LEVEL, color=MUTED, linewidth=0.9, linestyle=":")
    axis.set_xscale("log", base=2)
    axis.set_xticks(found.steps, [str(steps) for steps in found.steps])
    axis.set(xlabel="steps k", ylabel="80 % band covers", ylim=(0, 1.02))
    axis.legend(ncols=2)
    return figure
