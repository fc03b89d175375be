"""README's block: both lattices in one table, and what things take."""

from tampl.lab.report.names import in_reading_order, name_of

from . import paper
from .records import SEED, Record, Records, Section
from .tables import counted, machine, spread, table, trained


def write_column(records: Records) -> str:
    """The small lattice beside the paper's size."""
    mini, column = (records.comparisons[name].as_dict() for name in ("sirs-mini", "sirs"))
    return f"""\
Lattice SIRS: RMSE of the forecast mean and squared MMD of the marginals, on standardised \
observables, mean and sample standard deviation over {len(column["seeds"])} training seeds. Left \
all methods on the demo's 32 x 32 lattice; in the middle the paper's methods and TAMPL+ on its \
100 x 100 lattice; right the paper's own numbers, with initial patterns that differ from ours. \
Both {trained([*records.runs("sirs-mini"), *records.runs("sirs")])}.

{scores_table(mini, column)}

Why some errors are that large, and what else to know of the table: \
[docs/results.md](docs/results.md#reading-them).

![Initial lattices and the futures of their observables: simulation, TAMPL and two \
closures](docs/images/sirs-predictions.png)

Two initial lattices of 100 x 100 sites and what becomes of them, with TAMPL from seed {SEED}. \
What the paper says of the closures, of collapse and of spread, in numbers, and what a forecast \
costs beside the simulation: [docs/results.md](docs/results.md).
"""


def scores_table(mini: Record, full: Record) -> str:
    """One line for each method and baseline; empty where it was not measured."""
    lines = [
        [name_of(key), *_cells(mini, key), *_cells(full, key), *paper.cells(key)]
        for key in in_reading_order({**mini["scores"], **full["scores"]})
    ]
    sizes = ("32 x 32", "100 x 100", "paper")
    return table(["", *(text for size in sizes for text in (f"RMSE, {size}", "MMD²"))], lines)


def write_times(records: Records) -> str:
    """Spread over data seeds, and what demo, simulation and cache take."""
    seeds, demo = records.load("seeds-sirs-mini.json"), records.load("demo.json")
    speed, cache = records.load("sirs_simulation.json"), records.load("latent_cache.json")
    ratios = [
        run["scores"]["tampl"]["rmse"] / run["scores"]["mean_trajectory"]["rmse"]
        for run in seeds["runs"]
    ]
    return f"""\
Over {len(ratios)} trainings on the small lattice with different training and data seeds, at \
commit {seeds["provenance"]["commit"]}, TAMPL's \
RMSE was {min(ratios):.2f} to {max(ratios):.2f} of the mean training trajectory's. The weights of \
the transition, or of all modules where they are trained together, are averaged over the last \
steps (`average` in the recipes). Differences paired by seed, sweeps and what was tuned: \
[docs/results.md](docs/results.md).

`make demo` from a new clone took {demo["seconds"] / 60:.0f} minutes on \
{demo["provenance"]["cores"]} cores ({machine(demo)}), installation included, at commit \
{demo["provenance"]["commit"]}.

One trajectory of the paper's size takes {speed["milliseconds_per_trajectory"]:.1f} ms on one \
core ({speed["provenance"]["cpu"]}). A cached epoch takes {cache["ratio"]:.2f} of the time of a \
literal Algorithm 1 epoch on two cores of that machine.
"""


def _cells(record: Record, key: str) -> list[str]:
    row = record["scores"].get(key)
    if row is None:
        return ["", ""]
    count = counted(len(row["seeds"]), len(record["seeds"])) if row["seeds"] else ""
    return [spread(row["rmse"]) + count, spread(row["mmd"])]


SECTIONS = (
    Section(write_column, ("sirs-mini", "sirs")),
    Section(
        write_times,
        ("seeds-sirs-mini.json", "demo.json", "sirs_simulation.json", "latent_cache.json"),
    ),
)
