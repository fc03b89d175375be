"""Trials, one training seed each, on validation data."""

from collections.abc import Iterator, Mapping
from typing import Any

from .records import Record, Records, Section
from .tables import machine, table

PROBE = "probe-polymer-fine.json"

UNTOLD = ("training.epochs",)
"""Settings with a column of their own."""


def write_plus(records: Records) -> str:
    """TAMPL+ on SIRS."""
    return f"""\
### Trials of TAMPL+ on SIRS

{_introduce(records.load("trials-sirs-plus.json"))} The units of the law were standardised, but \
still correlated. `results/trials-sirs-plus.json`.

{_tabulate(records.load("trials-sirs-plus.json"))}
"""


def write_lags(records: Records) -> str:
    """TAMPL+ on the small lattice with representations that learn from several lags."""
    return f"""\
### Small lattice: several lags

TAMPL+ whose representation learns from pairs of several lags (`lags` of \
[`tampl`](method.md#tampl)). {_introduce(records.load("trials-sirs-mini-lags.json"))} \
`results/trials-sirs-mini-lags.json`.

{_tabulate(records.load("trials-sirs-mini-lags.json"))}
"""


def write_mixing(records: Records) -> str:
    """TAMPL+ on the mixture."""
    found = records.load("trials-mixing.json")
    return f"""\
## Binary mixing at the paper's size: trials

{_introduce(found)} An epoch has a third of the pairs. All methods have not been compared at this \
size. Trials of 4565386 had correlated units of the law, those of 8d47dce the present ones. \
`results/trials-mixing.json`.

{_tabulate(found)}
"""


def write_polymer(records: Records) -> str:
    """TAMPL+ on chains with fine frames, and what its representations see of a fold."""
    found, probed = records.load("trials-polymer-fine.json"), records.load(PROBE)
    return f"""\
## Polymer with fine frames: trials

Short chains with as little strain from frame to frame as at the paper's size \
(`recipes/polymer-fine.toml`). {_introduce(found)} `results/trials-polymer-fine.json`.

{_tabulate(found)}

What a latent state tells of the fold: R² of a probe that predicts the logarithm of the time \
until a chain unfolds, fitted on {probed["training_samples"]} frames of training chains and \
scored on {probed["validation_states"]} other initial states, {probed["simulations_of_each"]} \
simulations of each. {100 * probed["never_unfold"]:.1f} % of the training chains do not unfold; \
they count as if they did in the last frame. Chance leaves {probed["ceiling"]:.2f}. The order of \
the beads does not show on a picture; strands are counted by hand (`benchmarks/probe.py`). On \
{machine(probed)}. `results/{PROBE}`.

{_tabulate_probes(probed)}
"""


def _tabulate_probes(record: Record) -> str:
    titles = {"strands": "extension, strands and widths", "chain": "extension and ordered beads"}
    lines = [
        [titles.get(name, name), f"{each['r2']:.3f}", f"{100 * each['share_of_ceiling']:.0f} %"]
        for name, each in record["probes"].items()
    ]
    return table(["features", "R²", "of the ceiling"], lines)


def _introduce(record: Record) -> str:
    return (
        f"On validation data: scores against ensembles from initial states of another data seed, "
        f"on {machine(record)}. In brackets the plain ones, without limits and envelope."
    )


def _tabulate(record: Record) -> str:
    """Scores first: the settings are long, and a page may have to be moved to see them."""
    header = ["trial", "RMSE", "MMD²", "validation RMSE", "latent std", "epochs", "commit"]
    lines = [list(_cells(trial)) for trial in record["trials"]]
    floor = record["trials"][0]["bounded"]["floor"]
    lines.append(["Simulation noise floor", *(f"{v:.4f}" for v in floor), *[""] * 5])
    return table([*header, "settings"], lines)


def _cells(trial: Mapping[str, Any]) -> Iterator[str]:
    ours, plain = trial["bounded"], trial["plain"]
    yield trial["name"]
    for key in ("rmse", "mmd"):
        beside = f"{plain[key]:.4f}" if plain[key] < 100 else "over 100"
        yield f"{ours[key]:.4f} ({beside})"
    yield f"{trial['validation']:.3f}" if trial["validation"] < 100 else "over 100"
    yield f"{trial['latent'][-1]['std_mean']:.2g}"
    yield str(trial["settings"].get("training.epochs", "the recipe's"))
    yield trial["commit"]
    told = {key: value for key, value in trial["settings"].items() if key not in UNTOLD}
    short = {key.removeprefix("model.").removeprefix("methods.tampl+."): told[key] for key in told}
    yield ", ".join(f"`{key}` {value}" for key, value in short.items())


PLUS = (Section(write_plus, ("trials-sirs-plus.json",)),)
LAGS = (Section(write_lags, ("trials-sirs-mini-lags.json",), optional=True),)
MIXING = (Section(write_mixing, ("trials-mixing.json",)),)
POLYMER = (Section(write_polymer, ("trials-polymer-fine.json", PROBE), optional=True),)
