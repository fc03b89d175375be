"""Markdown tables of records that are one file."""

from collections.abc import Iterable, Mapping, Sequence

from tampl.lab.report.grids import MISSING, name_of, spread_text
from tampl.lab.runs import RunRecord

from .records import Record

SOLVERS = ("midpoint 4, graded", "midpoint 3, graded", "midpoint 24, graded")
"""The solvers of the accuracy trials that the table shows; the record has more."""


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def listed(values: Iterable[object]) -> str:
    """Values with commas between them."""
    return ", ".join(map(str, values))


def seeded(seeds: Sequence[int]) -> str:
    """Says which training seeds were used."""
    return f"Training seed{'s' * (len(seeds) > 1)} {listed(seeds)}"


def spread(summary: Record | None) -> str:
    """Mean and sample standard deviation, or the one value."""
    return MISSING if summary is None else spread_text(summary["mean"], summary["std"])


def counted(found: int, wanted: int) -> str:
    """What a cell says of its number of seeds: something only where some are missing."""
    return "" if found == wanted else f" (n = {found})"


def machine(record: Record) -> str:
    """Where a record was made."""
    device = record["provenance"]["device"]
    return f"{record['provenance']['cpu']}" if device == "cpu" else f"one {device}"


def trained(runs: Sequence[RunRecord]) -> str:
    """Where runs were trained, and at which commit."""
    devices = {run.training_provenance["device"] for run in runs}
    commits = {str(run.training_provenance["commit"]) for run in runs}
    return f"trained on {listed(sorted(devices))} at commit {listed(sorted(commits))}"


def sweep_table(record: Record, paper: Mapping[float, tuple[str, str]] | None = None) -> str:
    """One line for each value, with the number of seeds where some are missing.

    Arguments:
        record: The sweep.
        paper: The paper's RMSE and squared MMD by value, where it has them.
    """
    lines = []
    for row in record["rows"]:
        count = counted(len(row["seeds"]), len(record["seeds"]))
        columns = ("validation", "rmse", "mmd", "latent_std")
        beside = () if paper is None else paper.get(float(row["value"]), ("", ""))
        lines.append([f"{row['value']}{count}", *(spread(row[key]) for key in columns), *beside])
    key = record["key"].rpartition(".")[2]
    header = [f"{name_of(record['method'])}, `{key}`", "validation RMSE", "RMSE", "MMD²"]
    further = [] if paper is None else ["paper, RMSE", "paper, MMD²"]
    return table([*header, "latent std", *further], lines)


def tuning_table(record: Record) -> str:
    """The values that were tried, the lowest error's in bold, and once more where repeated."""
    columns = {"validation": "validation RMSE", "repeated": "repeated on a CPU"}
    trials = [trial for axis in record["axes"].values() for trial in axis["trials"]]
    shown = [key for key in columns if all(key in trial for trial in trials)]
    lines = []
    for name, axis in record["axes"].items():
        best = min(axis["trials"], key=lambda trial: trial["validation"])
        for trial in axis["trials"]:
            value = f"{trial['value']:g}"
            lines.append(
                [
                    f"{name_of(name)}, `{axis['key']}`",
                    f"**{value}**" if trial is best else value,
                    *(f"{trial[key]:.3f}" for key in shown),
                ]
            )
    return table(["setting", "value", *(columns[key] for key in shown)], lines)


def accuracy_table(record: Record) -> str:
    """What was tried at the paper's size; RMSE and spread of I with the solvers that were used."""
    lines = [
        [
            trial["change"],
            f"{trial['epochs']}",
            f"{trial['validation']:.3f}",
            *(_solved(trial["solvers"].get(solver)) for solver in SOLVERS),
        ]
        for trial in record["trials"]
    ]
    return table(["change", "epochs", "validation RMSE", *SOLVERS], lines)


def cost_table(records: Mapping[str, Record]) -> str:
    """Simulation and forecast of the same ensembles, by machine."""
    lines = [
        [
            name,
            f"{record['cores']} cores, {record['provenance']['cpu']}",
            f"{record['simulation_s']:.2f}",
            f"{record['forecast_s']:.2f}",
            f"{record['ratio']:.2f}",
        ]
        for name, record in records.items()
    ]
    header = ["forecast on", "simulation on", "simulation, s", "forecast, s", "ratio"]
    return table(header, lines)


def _solved(score: Record | None) -> str:
    return "" if score is None else f"{score['rmse']:.3f} ({score['spread']['I']:.2f})"
