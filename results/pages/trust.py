"""How far forecasts can be trusted: four laptop systems, states unlike the training set, cost."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from tampl.lab.report.grids import name_of, score_text, spread_text

from .records import Record, Records, Section
from .tables import machine, table

SYSTEMS = {
    "sirs-mini": "SIRS",
    "mixing-mini": "Mixing",
    "polymer-mini": "Polymer",
    "double-well": "Double well",
}
"""What was measured, by name of the record, and what tables call it."""

COSTS = {
    "sirs": "SIRS, the paper's lattice",
    "mixing-mini": "Mixing, 400 particles",
    "mixing": "Mixing, 512 particles",
    "polymer-mini": "Polymer, 40 beads",
    "polymer": "Polymer, 300 beads",
}


def file_of(system: str) -> str:
    """The record of a system."""
    return f"trust-{system}.json"


def cost_of(system: str) -> str:
    """The record of what a forecast of TAMPL+ costs."""
    return f"forecast_cost-{system}-tampl+.json"


def load(records: Records) -> dict[str, Record]:
    """All records of trust by system."""
    return {system: records.load(file_of(system)) for system in SYSTEMS}


def write_calibration(records: Records) -> str:
    """Scores, calibration and held members of both methods on all systems."""
    found = load(records)
    lines = [
        [f"{title}, {name_of(method)}", *_method_cells(found[system]["methods"][method])]
        for system, title in SYSTEMS.items()
        for method in ("tampl", "tampl+")
    ]
    header = (
        *("", "seeds", "RMSE", "MMD²", "floor", "plain RMSE", "plain MMD²", "held"),
        *("80 % band covers", "least and most covered observable", "spread ratio"),
        *("false alarms", "values beyond limits"),
    )
    sources = ", ".join(f"`results/{file_of(system)}`" for system in SYSTEMS)
    places = [f"{title} {_describe_training(found[system])}" for system, title in SYSTEMS.items()]
    return f"""\
## How far to trust a forecast

Four systems of a laptop's size, trained as follows: {"; ".join(places)}. \
Scores are inside limits and envelope, from the observed y_0; plain ones are the paper's \
algorithm with the same models. Held is the \
fraction of members and times that had to be brought back into the envelope. Coverage is that \
of simulated trajectories, without conserved observables; the spread ratio is the spread of \
the forecast over that of the simulation. False alarms are test states that are warned of. The \
double well has 20 dimensions and 160 training trajectories (`benchmarks/double_well.py`), and \
all settings are defaults. Means over seeds; the deviation is over seeds. {sources}.

{table(header, lines)}
"""


def _describe_training(record: Record) -> str:
    """Where the models were trained; TAMPL's may be older than those of TAMPL+."""

    def place(own: Record) -> str:
        return f"on {machine({'provenance': own})} at commit {own['commit']}"

    text, older = place(record["training_provenance"]), record.get("tampl_training_provenance")
    return text if older is None else f"{text} (TAMPL {place(older)}, its envelope fitted anew)"


def _method_cells(seeds: Mapping[str, Record]) -> Iterator[str]:
    runs = list(seeds.values())
    yield str(len(runs))
    yield from (_spread([run[key] for run in runs]) for key in ("rmse", "mmd"))
    rmse, mmd = runs[0]["floor"]
    yield f"{score_text(rmse)}, {score_text(mmd)}"
    yield from (_spread([run["plain"][key] for run in runs]) for key in ("rmse", "mmd"))
    yield _percent([run["held"] for run in runs])
    yield _percent([run["coverage"]["0.8"] for run in runs])
    observables = {
        symbol: mean(run["coverage_80_by_observable"][symbol] for run in runs)
        for symbol in runs[0]["coverage_80_by_observable"]
    }
    ends = (
        min(observables, key=observables.__getitem__),
        max(observables, key=observables.__getitem__),
    )
    yield ", ".join(
        f"{symbol} {100 * observables[symbol]:.0f} %" for symbol in dict.fromkeys(ends)
    )
    ratios = [value for run in runs for value in run["spread_ratio"].values()]
    yield f"{min(ratios):.2f} to {max(ratios):.2f}"
    yield _percent([run["false_alarms"]["any"] for run in runs])
    yield str(sum(run["beyond_limits"] for run in runs))


def write_ensembles(records: Records) -> str:
    """What pooling models gains."""
    lines = []
    for system, title in SYSTEMS.items():
        record = records.load(file_of(system))
        single = list(record["methods"]["tampl+"].values())
        cells = [mean(run[key] for run in single) for key in ("rmse", "mmd", "crps")]
        lines.append([f"{title}, one model, mean of {len(single)}", *map(score_text, cells), ""])
        for size, pooled in record["ensembles"].items():
            numbers = [score_text(pooled[key]) for key in ("rmse", "mmd", "crps")]
            apart = score_text(pooled["disagreement"]["median"])
            lines.append([f"{title}, {size} models", *numbers, apart])
    return f"""\
### Several models

TAMPL+ models that differ in their seed, with as many members together as one model alone. The \
disagreement is the median over test states, in standard deviations of the training set.

{table(("", "RMSE", "MMD²", "CRPS", "disagreement"), lines)}
"""


def write_outside(records: Records) -> str:
    """States unlike the training set: how many are flagged, and how wrong their forecasts are."""
    lines = [
        [f"{title}: {family}", *_outside_cells(found)]
        for system, title in SYSTEMS.items()
        for family, found in records.load(file_of(system))["outside"].items()
    ]
    header = (
        *("initial states", "flagged by one TAMPL+ model", "by three", "RMSE", "RMSE, three"),
        *("disagreement",),
    )
    return f"""\
### Initial states unlike the training set

Twenty states of each family (`benchmarks/outside.py`) and the error of their forecasts \
against simulated ensembles. A state is flagged if it lies outside the envelope or looks \
unlike the training set, if more than 5 % of its members were held, or, for three models, if \
they disagree by more than 0.25. Microstates of another size are refused where a kind has a \
fixed one.

{table(header, lines)}

Lattices without any infected site but with many recovered ones are the weak spot. Such states \
occur in the training set, after an epidemic has died out, so that they are familiar; but the \
latent state hardly tells no infected site from a single one, and the forecast lets the \
epidemic return.
"""


def _outside_cells(found: Mapping[str, Any]) -> Iterator[str]:
    one, three = found["tampl+, one model"], found["tampl+, three models"]
    if "refused" in one:
        yield from ("refused", "refused", "", "", "")
        return
    yield from (_percent([each["flagged"]["any"]]) for each in (one, three))
    yield from (score_text(each["rmse"]) for each in (one, three))
    yield score_text(three["disagreement"])


def write_cost(records: Records) -> str:
    """What a forecast of TAMPL+ costs beside the simulation."""
    found = {system: records.load(cost_of(system)) for system in COSTS}
    lines = [
        [
            title,
            f"{record['initial_microstates']} x {record['members']} x {record['frames'] - 1}",
            f"{record['simulation_s']:.3g} s",
            f"{record['forecast_s']:.3g} s",
            f"{record['ratio']:.3g}",
            f"{record['rmse_ratio']:.3f}" if "rmse_ratio" in record else "",
        ]
        for system, title in COSTS.items()
        for record in [found[system]]
    ]
    header = ("", "ensembles", "simulation", "forecast", "ratio", "RMSE over that of 16 steps")
    first = found["sirs"]
    sources = ", ".join(f"`results/{cost_of(system)}`" for system in COSTS)
    return f"""\
### Cost of a forecast

TAMPL+ on {first["cores"]} cores ({machine(first)}) beside the exact simulation on the same \
cores, from microstates to macrostates. The last column compares the one-step map with 16 \
midpoint steps of the flow that it was fitted to. The models are those of seed 42 of the tables; \
that of the polymer of 300 beads was hardly trained, which changes no cost. Where simulating all \
takes long, a part of the states, members and frames was simulated, and the time scaled up. \
{sources}.

{table(header, lines)}
"""


def _spread(values: Sequence[float]) -> str:
    return spread_text(mean(values), stdev(values) if len(values) > 1 else None)


def _percent(values: Sequence[float]) -> str:
    value = 100 * mean(values)
    return f"{value:.2g} %" if 0 < value < 10 else f"{value:.0f} %"


_ALL = tuple(file_of(system) for system in SYSTEMS)

SECTIONS = (
    Section(write_calibration, _ALL),
    Section(write_ensembles, _ALL),
    Section(write_outside, _ALL),
    Section(write_cost, tuple(cost_of(system) for system in COSTS), optional=True),
)
