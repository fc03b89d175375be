"""The figure of the polymer's test configurations and the kept runs from them."""

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from polymer_unfolding import BIN

from tampl.lab.report import figures
from tampl.lab.report.figures import drawing
from tampl.lab.report.figures.drawing import draw_microstate
from tampl.systems import Polymer
from tampl.systems.extension import UNFOLDED, unfolding_time
from tampl.systems.regimes import NAMES, load_regimes

from .records import Records

REFERENCES, CALIBRATION = "polymer_references.npz", "polymer_calibration.json"
RUNS = 40


def draw_regimes(records: Records, path: Path) -> None:
    """Writes the configurations, the extension in some of their runs and when all unfold."""
    kept = np.load(records.folder / REFERENCES)["extension_hundredths"] / 100
    found, interval = records.load(CALIBRATION)["references"], Polymer().interval
    with rc_context(drawing.RC):
        figure = Figure(figsize=(drawing.WIDTH, 4.6), layout="constrained")
        axes = figure.subplots(3, 3, width_ratios=[0.7, 1.2, 1.0])
        end = interval * (kept.shape[2] - 1)
        bins = np.arange(0, end + 2 * BIN, BIN)
        for row, name, x in zip(axes, NAMES, kept, strict=True):
            chain, runs, times = row
            draw_microstate(chain, load_regimes()[name], "chain")
            chain.set_ylabel(name)
            stretched = found[name]["stretched_mean"]
            frames = interval * np.arange(x.shape[1])
            runs.plot(frames, x[:RUNS].T, color=drawing.INK, alpha=0.25, linewidth=0.5)
            runs.axhline(UNFOLDED * stretched, color=drawing.TWINS[1], linewidth=0.8)
            unfolded = unfolding_time(x, stretched, interval=interval)
            # Runs that have not unfolded by the end stand in a bin behind it.
            times.hist(np.minimum(unfolded, end + BIN / 2), bins, color=drawing.TWINS[0])
        axes[0, 1].set_title(f"extension, {RUNS} runs")
        axes[0, 2].set_title(f"unfolding times, {kept.shape[1]} runs")
        for axis in axes[:, 1:].flat:
            axis.set_xlim(0, end + BIN)
            axis.tick_params(labelbottom=axis in axes[-1])
        for axis in axes[-1, 1:]:
            axis.set_xlabel("time")
    path.write_bytes(figures.png_bytes(figure))
