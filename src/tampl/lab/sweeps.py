"""What a sweep varies: a setting of a method, found in the recipe, and its values.

One setting of a method varied, the rest of the recipe as it is.

    OUT/data/                      the data, unless they lie elsewhere
    OUT/runs/METHOD-KEY-VALUE-SEED/    the runs
    OUT/sweep.json|md, figures/    errors and latent scale for each value

Like a comparison, a sweep can be stopped at any time and goes on from what was saved.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..evaluation.health import best_validation, find_collapse, latent_std
from ..evaluation.sweeps import FailedValue, Sweep, SweptRun, sweep_rows
from .campaign import DEFAULTS, Campaign, Outcome, Resources, RunPlan, choose_seeds
from .pipeline import read_history, read_provenance, read_records
from .recipes import Recipe
from .report.sweeps import write_sweep

__all__ = ["Axis", "Swept", "parse_setting", "sweep"]

SWEPT = ("model", "training")
"""Sections in which a key is looked up; another system or other data are no matter of a sweep."""


@dataclass(frozen=True)
class Axis:
    """What is varied: a setting of a method, as a dotted path into the recipe, and its values."""

    method: str
    path: str
    values: tuple[Any, ...]

    @classmethod
    def find(cls, recipe: Recipe, method: str, key: str, *, values: Sequence[Any]) -> "Axis":
        """Finds a key and checks all values, by what the recipe itself refuses.

        Arguments:
            recipe: The recipe.
            method: Name of the method.
            key: A dotted path into the recipe's tables, such as `model.latent_dim`, or a path
                that is looked up in the method's own settings, then model, then training.
            values: The values.
        """
        axis = cls(method, _find_path(recipe, method, key), tuple(values))
        if not axis.values:
            raise InputError(f"`{key}` has no values; give one at least")
        for place, value in enumerate(axis.values):
            recipe.with_value(axis.path, value)
            if value in axis.values[:place]:
                raise InputError(f"`{key}` has the value {value!r} twice; give each value once")
        return axis

    @property
    def short(self) -> str:
        """The path as the method's user would say it."""
        return self.path.removeprefix(f"methods.{self.method}.")

    def folder(self, value: object, seed: int) -> str:
        """Name of the folder of a run."""
        text = re.sub(r"[^A-Za-z0-9.+-]+", "_", str(value)).strip("_")
        return f"{self.method}-{self.short}-{text}-{seed}"


def parse_setting(text: str) -> tuple[str, list[Any]]:
    """Key and values of a text such as `lambda_tr=0.1,1.0`; values are TOML.

    Example:
        >>> parse_setting("model.transition.hidden=[64, 64],[128]")
        ('model.transition.hidden', [[64, 64], [128]])
    """
    key, _, values = text.partition("=")
    try:
        tables = tomllib.loads(f"values = [{values}]")
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"`set` is {text!r}; write KEY=VALUE,VALUE,... with values as in a recipe, texts in "
            f"quotation marks ({error})"
        ) from error
    return key.strip(), tables["values"]


def _find_path(recipe: Recipe, method: str, key: str) -> str:
    """The dotted path of a key, which may lack its section."""
    recipe.method(method)
    tables, own = recipe.as_tables(only=method), f"methods.{method}"
    sections = {own: tables["methods"][method], **{name: tables[name] for name in SWEPT}}
    given = [name for name in sections if key.startswith(f"{name}.")]
    found = [name for name, table in sections.items() if _holds(table, key.split("."))]
    if not given and not found:
        raise InputError(
            f"unknown key `{key}`: neither a setting of {method} nor one of the recipe's "
            f"{' or '.join(SWEPT)}"
        )
    path = key if given else f"{found[0]}.{key}"
    if path == "training.seed":
        raise InputError("`training.seed` is no setting to sweep; give `seeds`")
    return path


def _holds(table: object, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(table, Mapping) or key not in table:
            return False
        table = table[key]
    return True


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
