"""Comparisons: choices, each trained with several seeds, under one protocol.

`compare` sets the methods of a recipe side by side, `sweep` the values of one setting of a method.

    OUT/data/                          the data, unless another store is given
    OUT/runs/METHOD-SEED/              the runs of a comparison, all of the first seed first
    OUT/runs/METHOD-KEY-VALUE-SEED/    the runs of a sweep
    OUT/scores.md|tex|csv|json         the table of a comparison
    OUT/report.html, figures/          its page
    OUT/sweep.json|md, figures/        errors and latent scale for each value of a sweep

Either can be stopped at any time, and the same call resumes it. Table and page show the finished
runs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..data import Store
from ..errors import InputError
from ..evaluation.comparison import Comparison, ScoreRow, Trial, compare_trials
from .campaign import DEFAULTS, Campaign, Resources, RunPlan
from .pipeline import data_facts
from .recipes import Axis, Recipe, find_system
from .report.outputs import choose_case, write_comparison, write_sweep
from .runs import Run, read_records
from .snapshots import take_snapshots

__all__ = ["Compared", "compare", "sweep"]


@dataclass(frozen=True)
class Compared:
    """A comparison with the files that were written of it.

    Attributes:
        comparison: The table's numbers.
        out: Folder of tables and figures, and of the page of a comparison of methods.
        record: All of it as plain data, as in `scores.json` or `sweep.json`.
        table: The table and its remarks as Markdown.
    """

    comparison: Comparison
    out: Path
    record: dict[str, Any]
    table: str

    @property
    def page(self) -> Path:
        """The page of a comparison of methods."""
        return self.out / "report.html"


def compare(
    recipe: Recipe,
    out: str | Path,
    *,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    resources: Resources = DEFAULTS,
) -> Compared:
    """Trains and evaluates the methods of a recipe, and writes table and page.

    Runs that have finished before are kept as they are.

    Arguments:
        recipe: The recipe.
        out: The folder of the comparison.
        methods: Names of methods; all of the recipe's by default.
        seeds: Training seeds; the recipe's by default.
        resources: Data, time, device and processes.

    Example:
        recipe = read_recipe("recipes/sirs-mini.toml")
        compared = compare(recipe, "runs/compare", methods=["tampl", "jld"], seeds=[42, 43, 44])
        print(compared.table)
    """
    methods, seeds, out = _choose_methods(recipe, methods), _choose_seeds(recipe, seeds), Path(out)
    plans = [
        RunPlan(
            recipe.of(method).with_seed(seed), method, out / "runs" / f"{method}-{seed}", method
        )
        for seed in seeds
        for method in methods
    ]
    campaign = Campaign.prepare(plans, out, resources=resources)
    trials, runs = _carry_out(campaign)
    records, store = read_records(runs), campaign.store
    baselines = records[0].baselines if records else {}
    comparison = compare_trials(trials, baselines, choices=methods, seeds=seeds)
    record = {
        **_describe_origin(recipe, store),
        **comparison.as_dict(),
        "provenance": records[0].provenance if records else None,
        "commits": sorted({str(run.provenance["commit"]) for run in records}),
        "devices": sorted({str(run.provenance["device"]) for run in records}),
        "crps": {
            method: {str(run.seed): run.crps for run in records if run.method == method}
            for method in methods
        },
        "trust": {
            method: {
                str(run.seed): run.trust.as_dict()
                for run in records
                if run.method == method and run.trust is not None
            }
            for method in methods
        },
    }
    snapshots = None
    if records:
        snapshots = take_snapshots(choose_case(records[0].cases), find_system(store.description))
    table = write_comparison(
        comparison,
        records,
        out,
        recipe=recipe.as_tables() | {"data": data_facts(store)},
        record=record,
        snapshots=snapshots,
        description=store.description,
    )
    return Compared(comparison, out, record, table)


def sweep(
    recipe: Recipe,
    out: str | Path,
    axis: Axis,
    *,
    seeds: Sequence[int] | None = None,
    test: bool = True,
    resources: Resources = DEFAULTS,
) -> Compared:
    """Trains and evaluates a method with each value of a setting, and writes table and figure.

    Runs that have finished before are kept as they are.

    Arguments:
        recipe: The recipe.
        out: The folder of the sweep.
        axis: The setting and its values.
        seeds: Training seeds; the recipe's by default.
        test: Whether to score on the test split; not where a setting is still to be chosen.
        resources: Data, time, device and processes.
    """
    recipe = recipe.of(axis.method)
    seeds, out = _choose_seeds(recipe, seeds), Path(out)
    plans = [
        RunPlan(
            recipe.with_value(axis.path, value).with_seed(seed),
            axis.method,
            out / "runs" / axis.folder(value, seed),
            str(value),
        )
        for seed in seeds
        for value in axis.values
    ]
    campaign = Campaign.prepare(plans, out, resources=resources, test=test)
    trials, runs = _carry_out(campaign)
    comparison = compare_trials(trials, choices=[str(value) for value in axis.values], seeds=seeds)
    values = dict(zip(comparison.choices, axis.values, strict=True))
    record = {
        **_describe_origin(recipe, campaign.store),
        "method": axis.method,
        "key": axis.path,
        "seeds": seeds,
        "test": test,
        "rows": [
            {"value": value, **asdict(comparison.scores.get(key, ScoreRow(None, None)))}
            for key, value in values.items()
        ],
        "failed": [
            {"value": values[trial.choice], "seed": trial.seed, "reason": trial.failure}
            for trial in comparison.failed
        ],
        "waiting": len(comparison.waiting),
        "provenance": runs[0].read_provenance() if runs else None,
    }
    return Compared(comparison, out, record, write_sweep(comparison, out, record=record))


def _carry_out(campaign: Campaign) -> tuple[list[Trial], list[Run]]:
    """The trials that finished or failed, and the runs that finished."""
    outcomes = list(zip(campaign.plans, campaign.run(), strict=True))
    trials = [trial for _, trial in outcomes if trial is not None]
    return trials, [plan.run for plan, trial in outcomes if trial and trial.failure is None]


def _describe_origin(recipe: Recipe, store: Store) -> dict[str, str]:
    return {"recipe": recipe.name, "data": store.manifest.identity}


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


def _choose_seeds(recipe: Recipe, seeds: Sequence[int] | None) -> list[int]:
    if seeds is None:
        return [recipe.training.seed]
    if not seeds:
        raise InputError("`seeds` is empty; give one seed at least")
    if min(seeds) < 0:
        raise InputError(f"`seeds` holds {min(seeds)}; a seed is an integer of at least 0")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"`seeds` is {', '.join(map(str, seeds))}; give each seed once")
    return list(seeds)
