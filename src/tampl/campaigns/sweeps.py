"""One setting of a method varied, the rest of the recipe as it is.

    OUT/data/                      the data, unless they lie elsewhere
    OUT/runs/METHOD-KEY-VALUE-SEED/    the runs
    OUT/sweep.json|md, figures/    errors and latent scale for each value

Like a comparison, a sweep can be stopped at any time and goes on from what was saved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Recipe
from ..evaluate.health import best_validation, find_collapse, latent_std
from ..evaluate.sweeps import FailedValue, Sweep, SweptRun, sweep_rows
from ..pipeline import read_history, read_provenance, read_records
from ..report.sweeps import write_sweep
from .axis import Axis
from .campaign import Campaign
from .plan import Outcome, RunPlan, choose_seeds
from .resources import DEFAULTS, Resources

__all__ = ["Swept", "sweep"]


@dataclass(frozen=True)
class Swept:
    """What a sweep knows so far.

    Attributes:
        sweep: The table's numbers.
        out: Folder of table and figure.
        record: All of it as plain data, as in `sweep.json`.
    """

    sweep: Sweep
    out: Path
    record: dict[str, Any]

    @property
    def table(self) -> str:
        """The table and its remarks as Markdown."""
        return (self.out / "sweep.md").read_text(encoding="utf-8")


def sweep(
    recipe: Recipe,
    out: str | Path,
    axis: Axis,
    *,
    seeds: Sequence[int] | None = None,
    test: bool = True,
    resources: Resources = DEFAULTS,
) -> Swept:
    """Trains and evaluates what is missing, and writes table and figure of what is there.

    Arguments:
        recipe: The recipe.
        out: The folder of the sweep.
        axis: What is varied.
        seeds: Training seeds; the recipe's own by default.
        test: Whether to score on the test split; not where a setting is still to be chosen.
        resources: Data, time, device and processes.
    """
    seeds, out = choose_seeds(recipe, seeds), Path(out)
    swept = [(value, seed) for seed in seeds for value in axis.values]
    plans = [_plan(recipe, axis, out, value=value, seed=seed) for value, seed in swept]
    campaign = Campaign.prepare(plans, out, resources=resources, test=test)
    outcomes = campaign.run()
    by_value = list(zip([value for value, _ in swept], outcomes, strict=True))
    found = Sweep(
        method=axis.method,
        key=axis.path,
        seeds=tuple(seeds),
        test=test,
        rows=sweep_rows(axis.values, _swept_runs(by_value, test=test)),
        failed=_failures(by_value),
    )
    done = [outcome.plan.folder for outcome in outcomes if outcome.done]
    origin = {"recipe": recipe.name, "data": campaign.store.manifest.identity}
    provenance = read_provenance(done[0]) if done else None
    record = {**origin, **found.as_dict(), "provenance": provenance}
    write_sweep(found, out, record=record)
    return Swept(found, out, record)


def _plan(recipe: Recipe, axis: Axis, out: Path, *, value: object, seed: int) -> RunPlan:
    varied = recipe.with_value(axis.path, value).with_seed(seed)
    return RunPlan(varied, axis.method, out / "runs" / axis.folder(value, seed))


def _swept_runs(outcomes: Sequence[tuple[Any, Outcome]], *, test: bool) -> list[SweptRun]:
    done = [(value, outcome.plan) for value, outcome in outcomes if outcome.done]
    return [_swept_run(value, plan, test=test) for value, plan in done]


def _swept_run(value: object, plan: RunPlan, *, test: bool) -> SweptRun:
    log = read_history(plan.folder)
    return SweptRun(
        value=value,
        seed=plan.seed,
        validation=best_validation(log),
        score=read_records([plan.folder])[0].scores[plan.method] if test else None,
        latent_std=latent_std(log),
        collapsed=find_collapse(log) is not None,
    )


def _failures(outcomes: Sequence[tuple[Any, Outcome]]) -> tuple[FailedValue, ...]:
    return tuple(
        FailedValue(value, outcome.plan.seed, outcome.failure)
        for value, outcome in outcomes
        if outcome.failure is not None
    )
