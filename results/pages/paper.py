"""The paper's own numbers: its tables of methods by recipe, and JLD of SIRS over a weight.

Means and standard deviations over three runs; VAMP is deterministic and has no MMD. How its
initial patterns were drawn is not said in detail, so ours differ from them.
"""

from dataclasses import replace

from tampl.evaluation.comparison import ANCHOR, Comparison
from tampl.lab.report.grids import MISSING, Column, Grid, Line, in_reading_order
from tampl.lab.report.tables import comparison_grid

Scores = dict[str, dict[str, tuple[float, float]]]

SCORES: dict[str, Scores] = {
    "sirs": {
        "tampl": {"rmse": (0.1056, 0.0201), "mmd": (0.0105, 0.0043)},
        "jld": {"rmse": (0.6254, 0.2400), "mmd": (0.2263, 0.1200)},
        "jld-sig": {"rmse": (0.2234, 0.0668), "mmd": (0.0412, 0.0235)},
        "jld-vic": {"rmse": (0.1324, 0.0180), "mmd": (0.0158, 0.0040)},
        "vamp": {"rmse": (0.1955, 0.0312)},
        "jld-recon": {"rmse": (0.4406, 0.1848), "mmd": (0.0876, 0.0194)},
        "two-stage-recon": {"rmse": (0.5609, 0.0279), "mmd": (0.1967, 0.0133)},
    },
    "mixing": {
        "tampl": {"rmse": (0.2613, 0.0389), "mmd": (0.1092, 0.0162)},
        "jld": {"rmse": (0.7731, 0.0016), "mmd": (0.3415, 0.0021)},
        "jld-sig": {"rmse": (0.7741, 0.0019), "mmd": (0.3427, 0.0024)},
        "jld-vic": {"rmse": (0.6043, 0.0209), "mmd": (0.2438, 0.0105)},
        "vamp": {"rmse": (0.6607, 0.0074)},
        "jld-recon": {"rmse": (0.6772, 0.0862), "mmd": (0.2639, 0.0698)},
        "two-stage-recon": {"rmse": (0.3039, 0.0201), "mmd": (0.1150, 0.0032)},
    },
}
"""By recipe and method."""


JLD_WEIGHTS: dict[float, tuple[str, str]] = {
    0.1: ("2.4854 ± 3.3309", "0.3339 ± 0.2898"),
    0.5: ("0.5779 ± 0.1032", "0.1883 ± 0.0744"),
    1.0: ("0.6254 ± 0.2400", "0.2263 ± 0.1200"),
    2.0: ("0.5323 ± 0.2071", "0.2029 ± 0.0711"),
}
"""RMSE and squared MMD of JLD by the weight of its transition loss, seeds 42, 43 and 44."""


def cells(recipe: str, method: str) -> tuple[str, str]:
    """RMSE and squared MMD as the paper prints them; empty where it has no such row."""
    if method not in SCORES[recipe]:
        return "", ""
    known = SCORES[recipe][method]
    rmse, mmd = (
        f"{known[key][0]:.4f} ± {known[key][1]:.4f}" if key in known else MISSING
        for key in ("rmse", "mmd")
    )
    return rmse, mmd


def missing(recipe: str, comparison: Comparison) -> list[str]:
    """The paper's methods of which there is no run."""
    return in_reading_order(SCORES[recipe].keys() - comparison.scores.keys())


def beside(recipe: str, comparison: Comparison) -> Grid:
    """The grid of a comparison with the paper's columns at its end, and lines for its methods."""
    choices = in_reading_order({*comparison.choices, *SCORES[recipe]})
    full = replace(comparison, choices=tuple(choices))
    grid = comparison_grid(full)
    columns = (*grid.columns, Column("paper, RMSE"), Column("paper, MMD²"))
    keys = (*full.choices, *full.baselines)
    lines = (
        Line((*line.cells, *cells(recipe, key)))
        for key, line in zip(keys, grid.lines, strict=True)
    )
    return Grid(columns, tuple(lines))


def distance(recipe: str, comparison: Comparison, method: str, metric: str) -> str:
    """How far a method's mean is from the paper's TAMPL, and from its range of one deviation."""
    target, deviation = SCORES[recipe][ANCHOR][metric]
    low, high = target - deviation, target + deviation
    found = getattr(comparison.scores[method], metric).mean
    side = "above" if found > target else "below"
    apart = f"{abs(found / target - 1):.0%}".replace("%", " %")
    place = "within" if low <= found <= high else side
    return (
        f"{found:.4f}, {apart} {side} {target:.4f} and {place} its range ({low:.4f} to {high:.4f})"
    )
