"""Makes linear.json: the controlled experiments of the linear theory, their numbers and times.

python results/linear.py
"""

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.theory.experiments import (
    METHODS,
    LocalTest,
    Mechanism,
    run_case1,
    run_case2,
    run_collapse,
    run_local,
    run_selection,
)

RECORD = Path(__file__).with_suffix(".json")
EXPERIMENTS = {
    "case1": run_case1,
    "case2": run_case2,
    "local": run_local,
    "collapse": run_collapse,
    "selection": run_selection,
}
# What the paper states of the local test, to be counted over seeds.
STATED = {"margin_above": 0.315, "mu_max_above": 0.00275, "radius_below": 0.99816}


def mechanism(found: Mechanism) -> dict[str, Any]:
    """Means at the end, and each seed at the start and at the end."""
    curves = found.curves
    return {
        **found.summary(),
        "seeds": list(found.case.seeds),
        "updates": int(curves["joint"].updates[-1]),
        "start": curves["joint"].by_seed(0),
        "end": {name: curves[name].by_seed() for name in METHODS},
    }


def local(found: LocalTest) -> dict[str, Any]:
    """The numbers of each seed, and how many of them are as the paper states."""
    counts = {
        "margin_above": found.margin > STATED["margin_above"],
        "mu_max_above": found.mu_max > STATED["mu_max_above"],
        "radius_below": found.radius < STATED["radius_below"],
    }
    met = {key: {"limit": STATED[key], "seeds": int(np.sum(met))} for key, met in counts.items()}
    return {**found.summary(), "stated": met}


def main() -> None:
    """Runs every experiment once and writes the record."""
    results, seconds = {}, {}
    for name, run in EXPERIMENTS.items():
        begin = perf_counter()
        found = run()
        seconds[name] = round(perf_counter() - begin, 2)
        plain = {"case1": mechanism, "case2": mechanism, "local": local}
        results[name] = plain[name](found) if name in plain else found.summary()
    record = {**results, "seconds": seconds, "provenance": provenance()}
    RECORD.write_text(strict_json(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
