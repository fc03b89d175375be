"""Trials at the paper's size, one training seed each, on validation data."""

from collections.abc import Iterator, Mapping
from typing import Any

from .records import Record, Records, Section
from .tables import machine, table

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


def write_mixing(records: Records) -> str:
    """TAMPL+ on the mixture."""
    found = records.load("trials-mixing.json")
    return f"""\
## Binary mixing at the paper's size: trials

{_introduce(found)} An epoch has a third of the pairs; the column itself has not been run. Trials \
of 4565386 had correlated units of the law, those of 8d47dce the present ones. \
`results/trials-mixing.json`.

{_tabulate(found)}
"""


def _introduce(record: Record) -> str:
    return (
        f"On validation data: scores against ensembles from initial states of another data seed, "
        f"on {machine(record)}. In brackets the plain ones, without limits and envelope."
    )


def _tabulate(record: Record) -> str:
    header = ["trial", "commit", "epochs", "settings", "validation RMSE", "RMSE", "MMD²"]
    lines = [list(_cells(trial)) for trial in record["trials"]]
    floor = record["trials"][0]["bounded"]["floor"]
    lines.append(["Simulation noise floor", *[""] * 4, *(f"{v:.4f}" for v in floor), ""])
    return table([*header, "latent std"], lines)


def _cells(trial: Mapping[str, Any]) -> Iterator[str]:
    ours, plain = trial["bounded"], trial["plain"]
    yield trial["name"]
    yield trial["commit"]
    yield str(trial["settings"].get("training.epochs", "the recipe's"))
    told = {key: value for key, value in trial["settings"].items() if key not in UNTOLD}
    yield ", ".join(f"`{key.removeprefix('model.')}` {value}" for key, value in told.items())
    yield f"{trial['validation']:.3f}" if trial["validation"] < 100 else "over 100"
    for key in ("rmse", "mmd"):
        beside = f"{plain[key]:.4f}" if plain[key] < 100 else "over 100"
        yield f"{ours[key]:.4f} ({beside})"
    yield f"{trial['latent'][-1]['std_mean']:.2g}"


PLUS = (Section(write_plus, ("trials-sirs-plus.json",)),)
MIXING = (Section(write_mixing, ("trials-mixing.json",)),)
