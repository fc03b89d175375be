"""All methods of a recipe, each with several seeds, compared under one protocol.

    OUT/data/                     the data, unless they lie elsewhere
    OUT/runs/METHOD-SEED/         the runs, seed by seed, all methods of the first seed first
    OUT/scores.md|tex|csv|json    the table
    OUT/report.html, figures/     the page

A comparison can be stopped at any time and goes on from what was saved; its table and page are
those of the runs that are done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import Store
from ..errors import InputError
from ..evaluation.comparison import Comparison, FailedRun
from .campaign import DEFAULTS, Campaign, Outcome, Resources, RunPlan, choose_seeds
from .pipeline import data_facts, read_records
from .recipes import Recipe, find_system
from .report.comparisons import compare_runs, shown_case, write_comparison
from .report.runs import RunRecord
from .snapshots import Snapshots, take_snapshots

__all__ = ["Compared", "compare"]


@dataclass(frozen=True)
class Compared:
    """What a comparison knows so far.

    Attributes:
        comparison: The table's numbers.
        out: Folder of page, tables and figures.
        record: All of it as plain data, as in `scores.json`.
    """

    comparison: Comparison
    out: Path
    record: dict[str, Any]

    @property
    def page(self) -> Path:
        """The page."""
        return self.out / "report.html"

    @property
    def table(self) -> str:
        """The table and its remarks as Markdown."""
        return (self.out / "scores.md").read_text(encoding="utf-8")


def compare(
    recipe: Recipe,
    out: str | Path,
    *,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    resources: Resources = DEFAULTS,
) -> Compared:
    """Trains and evaluates what is missing, and writes table and page of what is there.

    Arguments:
        recipe: The recipe.
        out: The folder of the comparison.
        methods: Names of methods; all of the recipe's by default.
        seeds: Training seeds; the recipe's own by default.
        resources: Data, time, device and processes.

    Example:
        recipe = read_recipe("recipes/sirs-mini.toml")
        compared = compare(recipe, "runs/compare", methods=["tampl", "jld"], seeds=[42, 43, 44])
        print(compared.table)
    """
    methods, seeds = _choose_methods(recipe, methods), choose_seeds(recipe, seeds)
    out = Path(out)
    plans = [
        RunPlan(recipe.with_seed(seed), method, out / "runs" / f"{method}-{seed}")
        for seed in seeds
        for method in methods
    ]
    campaign = Campaign.prepare(plans, out, resources=resources)
    outcomes = campaign.run()
    records = read_records([outcome.plan.folder for outcome in outcomes if outcome.done])
    comparison = compare_runs(records, methods=methods, seeds=seeds, failed=_failures(outcomes))
    return _write(comparison, records, out, recipe=recipe, store=campaign.store)


def _write(
    comparison: Comparison,
    records: Sequence[RunRecord],
    out: Path,
    *,
    recipe: Recipe,
    store: Store,
) -> Compared:
    record = {
        "recipe": recipe.name,
        "data": store.manifest.identity,
        **comparison.as_dict(),
        "provenance": records[0].provenance if records else None,
        "commits": sorted({str(run.provenance["commit"]) for run in records}),
        "devices": sorted({str(run.provenance["device"]) for run in records}),
    }
    write_comparison(
        comparison,
        records,
        out,
        recipe=recipe.as_tables() | {"data": data_facts(store)},
        record=record,
        snapshots=_snapshots(records, store),
    )
    return Compared(comparison, out, record)


def _snapshots(records: Sequence[RunRecord], store: Store) -> Snapshots | None:
    if not records:
        return None
    return take_snapshots(shown_case(records[0].cases), find_system(store.description))


def _choose_methods(recipe: Recipe, methods: Sequence[str] | None) -> list[str]:
    if methods is None:
        return list(recipe.methods)
    if not methods:
        raise InputError("`methods` is empty; give one method at least")
    for method in methods:
        recipe.method(method)
    if len(set(methods)) < len(methods):
        raise InputError(f"`methods` is {', '.join(methods)}; give each method once")
    return list(methods)


def _failures(outcomes: Sequence[Outcome]) -> list[FailedRun]:
    return [
        FailedRun(outcome.plan.method, outcome.plan.seed, outcome.failure)
        for outcome in outcomes
        if outcome.failure is not None
    ]
