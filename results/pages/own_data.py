"""Data of one's own, with defaults only: whether forecasts of four data sets are good."""

from collections.abc import Iterator
from statistics import stdev

from tampl.lab.report.grids import score_text, spread_text

from .records import Record, Records, Section
from .tables import machine, seeded, table

RECORD = "own_data.json"
TITLES = {
    "double-well": "Double well in 20 dimensions",
    "kawasaki": "Kawasaki lattice, 64 x 64",
    "particles": "Particles, their number varies",
    "blob": "Pictures of a blob, two frames stacked",
}
"""What the table calls the data sets."""


def write_own_data(records: Records) -> str:
    """A table of data sets."""
    record = records.load(RECORD)
    found = record["data"]
    good = sum(each["good"] for each in found.values())
    seeds = sorted({row["seed"] for each in found.values() for row in each["tampl+"]})
    shown = [[TITLES[name], *_cells(each)] for name, each in found.items()]
    header = ("", "trajectories", "RMSE", "floor", "mean trajectory", "persistence")
    return f"""\
## Data of one's own

Four data sets are written as files, imported by `tampl import` and learnt by TAMPL+ without any \
setting. A forecast counts as good if its RMSE is below half of \
the better of mean trajectory and persistence, or within 1.5 floors: {good} of {len(found)} are. \
Trajectories are those of training, validation and test set, the last as initial states times \
members. {seeded(seeds)}; mean and deviation over seeds. Each training ran on one core, with \
other work beside it (minutes are upper bounds), of \
{machine(record)}, at commit {record["provenance"]["commit"]}, whose TAMPL+ had correlated units. \
`results/{RECORD}`, made by `benchmarks/own_data.py`.

{table((*header, "RMSE over the better of both", "RMSE over floor", "minutes", "good"), shown)}
"""


def _cells(found: Record) -> Iterator[str]:
    rows, counts = found["tampl+"], found["trajectories"]
    errors = [row["rmse"] for row in rows]
    yield f"{counts['train']}, {counts['valid']}, {counts['test']} x {found['members']}"
    yield spread_text(found["rmse"], stdev(errors) if len(errors) > 1 else None)
    yield from (score_text(found[key]) for key in ("floor", "mean_trajectory", "persistence"))
    yield from (f"{found[key]:.2f}" for key in ("over_simple", "over_floor"))
    yield f"{sum(row['seconds'] for row in rows) / len(rows) / 60:.1f}"
    yield "yes" if found["good"] else "no"


SECTIONS = (Section(write_own_data, (RECORD,), optional=True),)
