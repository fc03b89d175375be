"""The paper's own numbers on lattice SIRS: its table of methods, and JLD over a weight.

Means and standard deviations over three runs; VAMP is deterministic and has no MMD. How its
initial patterns were drawn is not said in detail, so ours differ from them.
"""

from tampl.evaluation.comparison import Comparison
from tampl.lab.report.grids import MISSING, Column, Grid, Line

SCORES: dict[str, dict[str, tuple[float, float]]] = {
    "tampl": {"rmse": (0.1056, 0.0201), "mmd": (0.0105, 0.0043)},
    "jld": {"rmse": (0.6254, 0.2400), "mmd": (0.2263, 0.1200)},
    "jld-sig": {"rmse": (0.2234, 0.0668), "mmd": (0.0412, 0.0235)},
    "jld-vic": {"rmse": (0.1324, 0.0180), "mmd": (0.0158, 0.0040)},
    "vamp": {"rmse": (0.1955, 0.0312)},
    "jld-recon": {"rmse": (0.4406, 0.1848), "mmd": (0.0876, 0.0194)},
    "two-stage-recon": {"rmse": (0.5609, 0.0279), "mmd": (0.1967, 0.0133)},
}


JLD_WEIGHTS: dict[float, tuple[str, str]] = {
    0.1: ("2.4854 ± 3.3309", "0.3339 ± 0.2898"),
    0.5: ("0.5779 ± 0.1032", "0.1883 ± 0.0744"),
    1.0: ("0.6254 ± 0.2400", "0.2263 ± 0.1200"),
    2.0: ("0.5323 ± 0.2071", "0.2029 ± 0.0711"),
}
"""RMSE and squared MMD of JLD by the weight of its transition loss, seeds 42, 43 and 44."""


def cells(method: str) -> tuple[str, str]:
    """RMSE and squared MMD as the paper prints them; empty where it has no such row."""
    if method not in SCORES:
        return "", ""
    known = SCORES[method]
    rmse, mmd = (
        f"{known[key][0]:.4f} ± {known[key][1]:.4f}" if key in known else MISSING
        for key in ("rmse", "mmd")
    )
    return rmse, mmd


def beside(grid: Grid, comparison: Comparison) -> Grid:
    """The grid of a comparison with the paper's columns at its end."""
    columns = (*grid.columns, Column("paper, RMSE"), Column("paper, MMD²"))
    keys = (*comparison.choices, *comparison.baselines)
    lines = (Line((*line.cells, *cells(key))) for key, line in zip(keys, grid.lines, strict=True))
    return Grid(columns, tuple(lines))


def distance(comparison: Comparison, method: str, metric: str) -> str:
    """How far a method's mean is from what the paper has for TAMPL, in words."""
    row, target = comparison.scores[method], SCORES["tampl"][metric][0]
    found = getattr(row, metric).mean
    side = "above" if found > target else "below"
    return f"{found:.4f}, {abs(found / target - 1):.0%} {side} {target:.4f}".replace("%", " %")
