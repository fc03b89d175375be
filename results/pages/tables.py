"""Markdown tables of records that are one file."""

from collections.abc import Mapping, Sequence

from tampl.report.grids import MISSING, score_text
from tampl.report.names import name_of

from .records import Record

SOLVERS = ("midpoint 4, graded", "midpoint 3, graded", "midpoint 24, graded")
"""The solvers of the accuracy trials that the table shows; the record has more."""


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def listed(values: Sequence[object]) -> str:
    """Values with commas between them."""
    return ", ".join(map(str, values))


def spread(summary: Record | None) -> str:
    """Mean and sample standard deviation, or the one value."""
    if summary is None:
        return MISSING
    if summary["std"] is None:
        return score_text(summary["mean"])
    return f"{score_text(summary['mean'])} ± {score_text(summary['std'])}"


def counted(found: int, wanted: int) -> str:
    """What a cell says of its number of seeds: something only where some are missing."""
    return "" if found == wanted else f" (n = {found})"


def interval(difference: Record | None) -> str:
    """A paired difference with its interval and verdict."""
    if difference is None:
        return MISSING
    low, high = difference["low"], difference["high"]
    if low is None:
        return score_text(difference["mean"], "+")
    mean, low, high = (score_text(value, "+") for value in (difference["mean"], low, high))
    return f"{mean} ({low} to {high}), {difference['verdict']}"


def machine(record: Record) -> str:
    """Where a record was made."""
    device = record["provenance"]["device"]
    return f"{record['provenance']['cpu']}" if device == "cpu" else f"one {device}"


def scores_table(record: Record) -> str:
    """All rows of a comparison."""
    lines = []
    for key, row in record["scores"].items():
        scale = "" if row["latent_std"] is None else f"{row['latent_std']:.2f}"
        collapsed = f"{len(row['collapsed'])} of {len(row['seeds'])}" if row["seeds"] else ""
        lines.append([name_of(key), spread(row["rmse"]), spread(row["mmd"]), scale, collapsed])
    return table(["", "RMSE", "MMD²", "latent std", "collapsed"], lines)


def paired_table(record: Record) -> str:
    """Differences to TAMPL."""
    lines = [
        [name_of(key), interval(pair["rmse"]), interval(pair["mmd"])]
        for key, pair in record["paired"].items()
    ]
    return table(["method minus TAMPL", "RMSE", "MMD²"], lines)


def sweep_table(record: Record) -> str:
    """One line for each value, with the number of seeds where some are missing."""
    lines = []
    for row in record["rows"]:
        count = counted(len(row["seeds"]), len(record["seeds"]))
        columns = ("validation", "rmse", "mmd", "latent_std")
        lines.append([f"{row['value']}{count}", *(spread(row[key]) for key in columns)])
    key = record["key"].rpartition(".")[2]
    header = [f"{name_of(record['method'])}, `{key}`", "validation RMSE", "RMSE", "MMD²"]
    return table([*header, "latent std"], lines)


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
