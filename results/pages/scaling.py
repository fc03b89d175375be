"""How simulation, training and forecast grow, as `benchmarks/scaling.py` measured it."""

from collections.abc import Iterator

from .records import Record, Records, Section
from .tables import machine, table

RECORD = "scaling.json"
CURVES = {
    "lattice": ("sites along an edge, SIRS", "simulation", "training", "encoding", "forecast"),
    "particles": ("particles, binary mixture", "simulation", "training", "encoding", "forecast"),
    "members": ("members of an ensemble", "forecast"),
}
"""What grows, and the verbs that are measured against it."""


def write_scaling(records: Records) -> str:
    """Seconds by size, with exponents; and what a second core gains."""
    found = records.load(RECORD)
    tables = "\n\n".join(_tabulate(found[key], *curve) for key, curve in CURVES.items())
    return f"""\
## How the work grows

Seconds on one core of {machine(found)}, commit {found["provenance"]["commit"]}, at one density \
of particles and with the networks of the small recipes: {found["runs"]} simulated trajectories \
of {found["frames"]} frames, an epoch of {found["pairs"]} pairs, the encoding of \
{found["states"]} microstates, and forecasts of 64 members over {found["horizon"]} frames from \
them. The exponent is the slope of log(seconds) over log(sites), log(particles) or log(members), \
in brackets between the two largest sizes; 1 is linear. [Scaling](scaling.md#measured-exponents) \
says what follows. `results/{RECORD}`.

{tables}

{_describe_cores(found["cores"])}
"""


def _tabulate(curves: Record, what: str, *verbs: str) -> str:
    sizes = list(curves[verbs[0]]["seconds"])
    lines = [list(_cells(verb, curves[verb], sizes)) for verb in verbs]
    return table([what, *sizes, "exponent"], lines)


def _cells(verb: str, curve: Record, sizes: list[str]) -> Iterator[str]:
    yield verb
    yield from (f"{curve['seconds'][size]:.2g}" for size in sizes)
    yield f"{curve['exponent']:.2f} ({curve['between_neighbours'][-1]:.2f})"


def _describe_cores(cores: Record) -> str:
    parts = []
    for verb, seconds in cores.items():
        few, many = min(seconds, key=int), max(seconds, key=int)
        parts.append(f"{verb} {seconds[few] / seconds[many]:.2f}")
    return (
        f"On {many} cores instead of {few} they are faster by these factors: {', '.join(parts)}."
    )


SECTIONS = (Section(write_scaling, (RECORD,), optional=True),)
