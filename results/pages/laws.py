"""Which law is fitted on TAMPL's representation: what was tried, on validation data."""

from collections.abc import Iterator, Sequence
from statistics import mean, stdev

from tampl.evaluation.metrics import Score, excess
from tampl.lab.report.grids import spread_text

from .records import Record, Records, Section
from .tables import listed, machine, seeded, table

RECORD = "laws.json"
TITLES = {
    "sirs-mini": "SIRS on a 32 x 32 lattice",
    "mixing-mini": "Binary mixing",
    "polymer-mini": "Polymer extension",
    "double-well": "Double well in 20 dimensions",
}
"""What the tables of the problems are called."""


def write_laws(records: Records) -> str:
    """A table of laws for each problem."""
    found = records.load(RECORD)
    problems = found["problems"]
    first = next(iter(problems.values()))
    tables = "\n".join(_write_problem(TITLES[name], each) for name, each in problems.items())
    return f"""\
## The law of TAMPL+

What should be fitted on TAMPL's frozen representation? All laws have the same latent states and \
the same settings of `refit`; [docs/method.md](method.md#the-choice-of-the-law) says what they \
are. The scores are plain, without envelope and limits, against {first["members"]} trajectories \
from each of some initial states of the validation set; no test data were read. An excess is over \
the noise floor; the band of {100 * first["band"]:.0f} % should cover as many of the reference \
trajectories, and the ratio of spreads should be 1, each given by observable. Problems measured: \
{listed([TITLES[name] for name in problems])}. On \
{machine(found)}. `results/{RECORD}`, made by `benchmarks/laws.py`.

{tables}"""


def _write_problem(title: str, record: Record) -> str:
    lines = [list(_cells(name, rows, record)) for name, rows in record["laws"].items()]
    symbols = ", ".join(next(iter(record["laws"].values()))[0]["coverage"])
    header = ["law", "RMSE", "excess", "MMD²", "CRPS", f"band covers {symbols}", "spread"]
    floor = [f"{record['floor'][key]:.4f}" for key in ("rmse", "mmd")]
    lines.append(["Simulation noise floor", floor[0], "", floor[1], "", "", ""])
    return f"""\
{title}: {seeded(record["seeds"]).lower()}, {record["epochs"]} epochs, \
{record["initial_states"]} initial states.

{table(header, lines)}
"""


def _cells(name: str, rows: Sequence[Record], record: Record) -> Iterator[str]:
    yield name
    yield _summarise([row["rmse"] for row in rows])
    floor = Score(**record["floor"])
    yield _summarise([excess(Score(row["rmse"], row["mmd"]), floor).rmse for row in rows])
    yield _summarise([row["mmd"] for row in rows])
    yield _summarise([row["crps"] for row in rows])
    covered, spread = (
        [mean(row[key][s] for row in rows) for s in rows[0][key]] for key in ("coverage", "spread")
    )
    yield ", ".join(f"{100 * value:.0f} %" for value in covered)
    yield ", ".join(f"{value:.2f}" for value in spread)


def _summarise(values: Sequence[float]) -> str:
    return spread_text(mean(values), stdev(values) if len(values) > 1 else None)


SECTIONS = (Section(write_laws, (RECORD,)),)
