"""The other systems in the size of a laptop: comparisons on two cores, and what was tried."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from statistics import mean

from tampl.lab.report.grids import name_of
from tampl.lab.report.tables import comparison_grid

from .records import Record, Records, Section
from .tables import listed, machine, seeded, table

TITLES = {"mixing-mini": "Binary mixing", "polymer-mini": "Polymer extension"}
"""The recipes and what their sections are called."""


def record_of(recipe: str) -> str:
    """The record of a recipe's comparison; its runs are kept in a folder of the recipe's name."""
    return f"compare-{recipe}-cpu.json"


def write_comparison(recipe: str) -> Callable[[Records], str]:
    """What makes the section of a recipe."""

    def write(records: Records) -> str:
        found = records.load(record_of(recipe))
        return f"""\
## {TITLES[recipe]} on a laptop (`recipes/{recipe}.toml`)

{seeded(found["seeds"])}, {len(found["methods"])} methods, \
{found["seconds"] / 60:.0f} minutes on {found["provenance"]["cores"]} cores \
({machine(found)}), simulation and evaluation included, at commit \
{found["provenance"]["commit"]}.{_memory(found)} `results/{record_of(recipe)}`, \
`results/{recipe}/`.

{comparison_grid(records.comparisons[recipe]).markdown()}
![One simulated trajectory, and the observables as simulated and as each method forecasts \
them](images/{recipe}-comparison.png)

One test microstate, bands of one standard deviation.
"""

    return write


def _memory(found: Record) -> str:
    """What the comparison held at most, where that was measured."""
    peak = found.get("peak_memory_gb")
    return "" if peak is None else f" It never held more than {peak:.1f} GB."


def write_mixing_trials(records: Records) -> str:
    """How far apart the frames of the mixture are, chosen on validation data."""
    record = records.load("mixing_trials.json")
    settings = ("interval", "frames", "train", "train_runs", "method")
    groups = groupby(record["trials"], key=itemgetter(*settings))
    lines = [[*_trial_cells(list(trials))] for _, trials in groups]
    header = ("time between frames", "frames", "training runs", "method", "seeds")
    scores = ("validation RMSE", "RMSE", "latent std")
    return f"""\
### Binary mixing: time between frames

On validation data, with about as many pairs of frames: the validation RMSE that chooses \
checkpoints, and the RMSE against ensembles from {record["references"].partition(";")[0]}, means \
over seeds. `results/mixing_trials.json`.

{table([*header, *scores], lines)}
"""


def _trial_cells(trials: Sequence[Record]) -> Iterator[str]:
    first = trials[0]
    yield from (f"{first['interval']:g}", f"{first['frames']}")
    yield f"{first['train']} x {first['train_runs']}"
    yield from (name_of(first["method"]), listed([trial["seed"] for trial in trials]))
    yield from (f"{mean(trial[key] for trial in trials):.3f}" for key in ("validation", "rmse"))
    yield f"{mean(trial['latent_std'] for trial in trials):.2f}"


def _compared(recipe: str) -> Section:
    return Section(write_comparison(recipe), (record_of(recipe), recipe))


MIXING = (
    _compared("mixing-mini"),
    Section(write_mixing_trials, ("mixing_trials.json",)),
)
POLYMER = (_compared("polymer-mini"),)
