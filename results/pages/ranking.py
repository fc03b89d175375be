"""The methods ranked on the small lattice by many seeds."""

from collections.abc import Iterator, Mapping
from statistics import mean

from tampl.evaluation.comparison import Difference, paired_difference, summarize
from tampl.lab.report.grids import MISSING, name_of, score_text, spread_text

from .records import Record, Records, Section
from .tables import machine, seeded, table

RECORD = "ranking-sirs-mini.json"
SCATTER = "scatter-sirs-mini.json"
ANCHOR = "tampl"
SOURCES = {
    "weights": "initial weights",
    "order": "order of batches",
    "noise": "noise of the losses",
    "all": "all three",
    "rounding": "none: initial weights changed by one part in ten million at most",
}
"""What the table calls the sources of chance."""


def write_ranking(records: Records) -> str:
    """All methods by their mean RMSE, with and without limits and envelope."""
    found = records.load(RECORD)
    methods: Mapping[str, Mapping[str, Record]] = found["methods"]
    order = sorted(methods, key=lambda name: mean(run["rmse"] for run in methods[name].values()))
    lines = [list(_cells(name, methods)) for name in order]
    others = {"floor": "Simulation noise floor", "mean_trajectory": "Mean training trajectory"}
    lines += [[name, score_text(found["others"][key]["rmse"])] for key, name in others.items()]
    header = ("", "RMSE", "MMD²", "plain RMSE", "plain MMD²", "held", "RMSE beside TAMPL's", "")
    seeds = [int(seed) for seed in methods[ANCHOR]]
    return f"""\
### Small lattice: the ranking with {len(seeds)} seeds

{seeded(seeds)}, all trained on {machine(found)} at commit {found["provenance"]["commit"]}, with \
the law of (z, y) of TAMPL+ in units that were standardised, but still correlated. Scores are \
inside limits and envelope, and from the observed y_0; plain ones are without. Held is the \
fraction of members and times that had to be brought back into the envelope. The difference to \
TAMPL is paired by seed, with its 95 % interval. `results/{RECORD}`.

{table(header, [[*line, *[""] * (len(header) - len(line))] for line in lines])}
"""


def _cells(name: str, methods: Mapping[str, Mapping[str, Record]]) -> Iterator[str]:
    runs = methods[name]
    yield name_of(name)
    for part in (lambda run: run, lambda run: run["plain"]):
        for key in ("rmse", "mmd"):
            values = [part(run)[key] for run in runs.values()]
            known = None if None in values else summarize(values)
            yield MISSING if known is None else spread_text(known.mean, known.std)
    held = 100 * mean(run["held"] for run in runs.values())
    yield f"{held:.2g} %" if held < 10 else f"{held:.0f} %"
    ours, theirs = (
        {int(seed): run["rmse"] for seed, run in methods[key].items()} for key in (name, ANCHOR)
    )
    if name != ANCHOR and (difference := paired_difference(ours, theirs)) is not None:
        yield from _describe(difference)


def _describe(difference: Difference) -> Iterator[str]:
    assert difference.low is not None and difference.high is not None
    yield f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"
    yield "" if difference.verdict is None else difference.verdict.value


def write_scatter(records: Records) -> str:
    """Scores of trainings in which one source of chance is seeded anew."""
    found = records.load(SCATTER)
    kept = found["runs"]["none"][0]
    lines = [
        [
            SOURCES[source],
            ", ".join(f"{run['rmse']:.4f}" for run in found["runs"][source]),
            spread_text(each["mean"], each["std"]),
        ]
        for source, each in found["scatter"].items()
    ]
    return f"""\
### Small lattice: what the scatter is made of

{name_of(found["method"])} on `recipes/{found["recipe"]}.toml`, training seed \
{found["training_seed"]}, has an RMSE of {kept["rmse"]:.4f} against ensembles from initial states \
of another data seed. Here one source of chance at a time has other seeds and all else is kept. \
On {machine(found)}. `results/{SCATTER}`.

{table(["seeded anew", "RMSE", "mean and deviation"], lines)}
"""


SECTIONS = (
    Section(write_ranking, (RECORD,)),
    Section(write_scatter, (SCATTER,), optional=True),
)
