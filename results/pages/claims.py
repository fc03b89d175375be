"""What the paper says of its forecasts in words, as numbers of the kept runs."""

from collections.abc import Sequence
from functools import partial
from statistics import mean

from tampl.evaluation.claims import Peak
from tampl.evaluation.comparison import Comparison
from tampl.lab.report.grids import MISSING, name_of
from tampl.lab.runs import RunRecord

from .experiments import Experiment
from .records import SEED, Records, Section
from .tables import listed, table

CLOSURES = ("mean_field", "pair")
SCALES = ("tampl", "jld")
"""The methods whose latent scales are set side by side."""
SPREAD = "the forecast's spread over the true one"
PEAKS = "time and height of the peaks of the mean trajectory, averaged over test microstates"


def write_claims(experiment: Experiment, records: Records) -> str:
    """Peaks, spread and latent scale."""
    runs, column = records.runs(experiment.recipe), records.comparisons[experiment.recipe]
    shown = [PEAKS, SPREAD] if experiment.peaking else [SPREAD]
    said = [describe_closures(runs), experiment.claim, describe_spread(runs, experiment.watched)]
    return f"""\
{experiment.heading("the paper's claims as numbers")}

The columns: {", and ".join(shown)}, both as root mean squares over microstates and times; means \
over training seeds.

{claims_table(runs, column.choices, experiment.peaking)}

{" ".join(filter(None, said))}

{describe_collapse(runs, column)}

![Standard deviation of the latent coordinates over epochs, TAMPL and \
JLD](images/{experiment.recipe}-latent_scale.png)

Standard deviation of the latent coordinates over epochs, seed {SEED} strong, other seeds faint.
"""


def claims_table(
    runs: Sequence[RunRecord], methods: Sequence[str], peaking: Sequence[str] = ()
) -> str:
    """One line for each method and, where peaks are shown, for the simulation and the closures."""
    symbols = runs[0].cases.symbols
    header = ["", *(f"{j}: peak {what}" for j in peaking for what in ("time", "height"))]
    lines = []
    for key in ("reference", *methods, *known_closures(runs)) if peaking else methods:
        found = [mean_peak(runs, key, j) for j in peaking]
        cells = [text for peak in found for text in (f"{peak.time:.2f}", f"{peak.height:.3f}")]
        lines.append([name_of(key), *cells, *spread_cells(runs, key, symbols)])
    return table([*header, *(f"{j}: spread" for j in symbols)], lines)


def spread_cells(runs: Sequence[RunRecord], key: str, symbols: Sequence[str]) -> list[str]:
    """The spread over the true one; what is deterministic has none."""
    own = [run.spread for run in runs if run.method == key and run.spread]
    if own:
        return [f"{mean(spread[j] for spread in own):.2f}" for j in symbols]
    return ["" if key == "reference" else MISSING] * len(symbols)


def mean_peak(runs: Sequence[RunRecord], key: str, symbol: str) -> Peak:
    """A peak averaged over the runs that have it; what is not trained is the same in all."""
    found = [run.peaks[key][symbol] for run in runs if key in run.peaks]
    return Peak(mean(peak.time for peak in found), mean(peak.height for peak in found))


def known_closures(runs: Sequence[RunRecord]) -> list[str]:
    """The closures that a system has."""
    return [key for key in CLOSURES if any(key in run.peaks for run in runs)]


def describe_closures(runs: Sequence[RunRecord]) -> str:
    """How the closures' infection peaks differ from the simulation's; nothing without closures."""
    closures, parts = known_closures(runs), []
    if not closures:
        return ""
    truth = mean_peak(runs, "reference", "I")
    for key in closures:
        peak = mean_peak(runs, key, "I")
        side = "earlier" if peak.time < truth.time else "later"
        parts.append(
            f"{name_of(key).lower()} {abs(peak.time - truth.time):.2f} {side} and "
            f"{peak.height / truth.height:.2f} times as high"
        )
    return f"The infection peaks of the closures, beside the simulation's: {'; '.join(parts)}."


def describe_spread(runs: Sequence[RunRecord], symbols: Sequence[str]) -> str:
    """The spread of TAMPL's forecast, seed by seed."""
    own = [run for run in runs if run.method == "tampl"]
    texts = [
        f"of {j} over the true one: "
        + listed([f"{run.spread[j]:.2f} (seed {run.seed})" for run in own])
        for j in symbols
    ]
    return f"The spread of TAMPL's forecast {'; '.join(texts)}."


def describe_collapse(runs: Sequence[RunRecord], column: Comparison) -> str:
    """What became of the latent scales of TAMPL and JLD between first and last epoch."""
    parts = []
    for method in SCALES:
        own = [run.history for run in runs if run.method == method]
        first, last = (
            mean(history[place]["latent"]["std_mean"] for history in own) for place in (0, -1)
        )
        parts.append(
            f"{name_of(method)}'s went from {first:.3g} in the first epoch to {last:.3g} in the "
            f"last, and {len(column.scores[method].collapsed)} of {len(own)} runs ended collapsed"
        )
    return f"Latent scale, mean over seeds: {'; '.join(parts)}."


def sections_of(experiment: Experiment) -> tuple[Section, ...]:
    """The section of an experiment's claims."""
    return (Section(partial(write_claims, experiment), (experiment.recipe,)),)
