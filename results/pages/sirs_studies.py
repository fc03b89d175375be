"""What was varied, tuned, timed and tried with SIRS at the paper's size."""

from collections.abc import Mapping

from tampl.lab.report.grids import name_of, score_text

from .paper import JLD_WEIGHTS
from .records import Record, Records, Section
from .tables import (
    accuracy_table,
    cost_table,
    listed,
    machine,
    seeded,
    spread,
    sweep_table,
    tuning_table,
)

BEFORE = "compare-sirs-71f73e5.json"
"""The column before, with another refit of TAMPL+."""

EARLIER = ("compare-sirs-40.json", "compare-sirs-48.json", "sirs-tampl-42.json")
"""Comparisons and a run with other settings, the latest first."""


def write_jld_sweep(records: Records) -> str:
    """JLD over the weight of its transition loss."""
    title = "Weight of JLD's transition loss"
    return _write_sweep(records, "sweep-sirs-jld.json", title, paper=JLD_WEIGHTS)


def write_dimension_sweep(records: Records) -> str:
    """TAMPL over the latent dimension."""
    return _write_sweep(records, "sweep-sirs-latent_dim.json", "Latent dimension of TAMPL")


def _write_sweep(
    records: Records,
    name: str,
    title: str,
    *,
    paper: Mapping[float, tuple[str, str]] | None = None,
) -> str:
    sweep = records.load(name)
    return f"""\
### {title}

{seeded(sweep["seeds"])}, on {machine(sweep)}. `results/{name}`.

{sweep_table(sweep, paper)}
"""


def write_tuning(records: Records) -> str:
    """The weights of penalties on validation data."""
    tuning = records.load("tuning-sirs.json")
    return f"""\
### Weights of the penalties

On validation data with seed {tuning["seed"]} and {tuning["epochs"]} epochs, on \
{machine(tuning)}, otherwise as the record says; in bold the lowest error. VICReg's covariance \
weight is a 25th of its variance weight. `results/tuning-sirs.json`.

{tuning_table(tuning)}
"""


def write_cost(records: Records) -> str:
    """Forecast and simulation on both machines."""
    names = ("forecast_cost-h200.json", "forecast_cost-cpu.json")
    found = {name: records.load(name) for name in names}
    by_machine = {_device(record): record for record in found.values()}
    first = next(iter(found.values()))
    verdicts = [f"{_verdict(record['ratio'])} on {name}" for name, record in by_machine.items()]
    files = listed([f"`results/{name}`" for name in names])
    return f"""\
### What a forecast costs

Ensembles of {first["members"]} members from {first["initial_microstates"]} initial microstates, \
{first["frames"]} frames, by the exact simulation on all cores and by TAMPL; medians of \
interleaved rounds. The forecast is {"; ".join(verdicts)}. {files}.

{cost_table(by_machine)}
"""


def _device(record: Record) -> str:
    on_cpu = record["provenance"]["device"] == "cpu"
    return f"{record['threads']} threads, {machine(record)}" if on_cpu else machine(record)


def _verdict(ratio: float) -> str:
    return f"{ratio:.1f} times cheaper" if ratio > 1 else f"{1 / ratio:.1f} times dearer"


def write_throughput(records: Records) -> str:
    """An epoch of TAMPL beside what the card could do."""
    speed = records.load("throughput.json")
    stages = [f"{name} {stage['seconds']:.3f} s" for name, stage in speed["stages"].items()]
    return f"""\
### Speed of training

An epoch of TAMPL took {speed["epoch_s"]:.3f} s ({listed(stages)}) with batches of \
{speed["batch_size"]} on {machine(speed)}, {100 * speed["fraction"]:.0f} % of the card's matrix \
rate in {speed["precision"]}; commit {speed["provenance"]["commit"]}. `results/throughput.json`.
"""


def write_trials(records: Records) -> str:
    """Networks, rates and solvers on validation data."""
    accuracy = records.load("accuracy.json")
    cut_off = accuracy.get("cut_off", [])
    left = f"\nBegun and cut off by the time limit: {'; '.join(cut_off)}.\n" if cut_off else ""
    return f"""\
### What was tried

On validation data only, seed {accuracy["seed"]} where nothing else is said, on \
{machine(accuracy)}: the validation RMSE that chooses checkpoints, which keeps the noise of \
single runs, and the RMSE against ensembles from \
{accuracy["references"].partition(";")[0]}, with the spread of I over the true one in brackets. \
Graded steps shorten towards the end. Begins from {accuracy["base"]["transition"]}, \
batch {accuracy["base"]["batch_size"]}. `results/accuracy.json`.

{accuracy_table(accuracy)}
{left}"""


def write_earlier(records: Records) -> str:
    """What was run with earlier settings of the recipe."""
    latest, before, first = (records.load(name) for name in EARLIER)
    column = records.load(BEFORE)
    return f"""\
### Earlier settings

{column["settings"]["note"]} RMSE and MMD² of TAMPL+ were \
{spread(column["scores"]["tampl+"]["rmse"])} and {spread(column["scores"]["tampl+"]["mmd"])}: \
`results/{BEFORE}`. The plain scores of the other methods are nearly the same as then.

{_describe_comparison(latest)}: `results/{EARLIER[0]}`. {latest["settings"]["note"]} \
{_describe_comparison(before)}: `results/{EARLIER[1]}`. Before that, one run of \
{first["epochs"]} epochs with a velocity network of 4 x 512, five equal steps and rates \
of 2e-3: TAMPL {first["scores"]["tampl"]["rmse"]:.4f}, MMD² \
{first["scores"]["tampl"]["mmd"]:.4f}, {first["median_epoch_seconds"]:.1f} s an epoch; \
`results/{EARLIER[2]}`.
"""


def _describe_comparison(record: Record) -> str:
    settings, scores = record["settings"], record["scores"]
    parts = [
        f"{name_of(key)} {score_text(scores[key]['rmse']['mean'])} "
        f"(seed{'s' * (len(scores[key]['seeds']) > 1)} {listed(scores[key]['seeds'])})"
        for key in record["methods"]
        if key in scores
    ]
    return (
        f"With {settings['epochs']} epochs, a velocity network of {settings['velocity']}, and "
        f"{settings['steps']} graded steps, the runs that a time budget allowed had the RMSE "
        f"{listed(parts)}"
    )


STUDIES = (
    Section(write_jld_sweep, ("sweep-sirs-jld.json",)),
    Section(write_dimension_sweep, ("sweep-sirs-latent_dim.json",)),
    Section(write_tuning, ("tuning-sirs.json",)),
    Section(write_cost, ("forecast_cost-h200.json", "forecast_cost-cpu.json")),
    Section(write_throughput, ("throughput.json",)),
    Section(write_trials, ("accuracy.json",)),
)
FORMER = (Section(write_earlier, (BEFORE, *EARLIER)),)
