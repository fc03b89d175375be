"""How far forecasts can be trusted: limits, envelope, calibration, warnings, ensembles of models.

    tampl compare recipes/sirs-mini.toml --methods tampl,tampl+ --seeds 42,43,44 --out RUNS
    python benchmarks/trust.py recipes/sirs-mini.toml --runs RUNS --data STORE --json
    python benchmarks/trust.py double-well --json          # trains its models itself

For every seed of TAMPL and TAMPL+ that has a run: scores with and without limits, coverage and
spread by observable, members that were held, members beyond an observable's limits, and false
alarms. For ensembles of TAMPL+ models: scores, false alarms, disagreement. For states unlike the
training set (`outside.py`): the fraction of states that is flagged, and the error of their
forecasts.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from double_well import make_references, make_trajectories
from outside import FAMILIES, Outside, make_double_wells

import tampl
from tampl.data import References, Store
from tampl.errors import ForecastWarning, InputError
from tampl.evaluation import Evaluation, evaluate
from tampl.files import strict_json
from tampl.forecast import DISAGREEMENT, MANY_HELD, Forecast
from tampl.lab.provenance import provenance
from tampl.lab.recipes import read_recipe
from tampl.lab.runs import Run
from tampl.models import resolve_device

METHODS = ("tampl", "tampl+")
SIZES = (3, 5)
LEAST = 1e-9
Models = Mapping[str, Mapping[int, tampl.MacroModel]]


def main() -> None:
    """Measures one system and prints the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", help="a recipe, or double-well")
    parser.add_argument("--runs", type=Path, help="folder of the comparison")
    parser.add_argument("--data", type=Path, help="the store")
    parser.add_argument("--seeds", default="42,43,44")
    parser.add_argument(
        "--enclose", action="store_true", help="fit the envelopes of older models anew"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    if arguments.what == "double-well":
        trained = provenance(resolve_device("auto"))
        models, test = train_double_wells(seeds)
        description = test.description
        families = {
            name: make_double_wells(description, name)
            for name in ("three times as far", "six times as far")
        }
    else:
        recipe = read_recipe(arguments.what)
        runs = {
            method: {
                seed: Run.open(folder)
                for seed in seeds
                if (folder := arguments.runs / "runs" / f"{method}-{seed}").exists()
            }
            for method in METHODS
        }
        models = {
            method: {seed: run.load_model() for seed, run in by_seed.items()}
            for method, by_seed in runs.items()
        }
        trained = next(iter(runs["tampl+"].values())).read_provenance()
        store = Store.open(arguments.data)
        test = store.references("test")
        if arguments.enclose:
            train = store.dataset("train")
            for model in (model for by_seed in models.values() for model in by_seed.values()):
                model.enclose(train)
        families = {
            name: make(recipe.system, name)
            for name, make in FAMILIES[recipe.system.description.system].items()
        }
    record = measure(models, test, families) | {
        "what": Path(arguments.what).stem,
        "seeds": seeds,
        "envelopes_fitted_anew": arguments.enclose,
        "training_provenance": trained,
        "provenance": provenance("cpu"),
    }
    print(strict_json(record, indent=1) if arguments.json else json.dumps(record, indent=1))


def train_double_wells(seeds: Sequence[int]) -> tuple[Models, References]:
    """Models of the double well with all defaults, and test ensembles."""
    train, valid = make_trajectories(160, seed=0), make_trajectories(40, seed=1)
    test = make_references(train.description, 20, 64, seed=2)
    methods = {"tampl": tampl.Tampl(), "tampl+": tampl.TamplPlus()}
    models = {
        name: {seed: method.fit(train, valid, seed=seed, progress=False) for seed in seeds}
        for name, method in methods.items()
    }
    return models, test


def measure(models: Models, test: References, families: Mapping[str, Outside]) -> dict[str, Any]:
    """Everything about the models of one system."""
    warnings.simplefilter("ignore", ForecastWarning)
    record: dict[str, Any] = {"methods": {}, "ensembles": {}, "outside": {}}
    for method, by_seed in models.items():
        record["methods"][method] = {
            str(seed): describe(model, test) for seed, model in by_seed.items()
        }
    plus = list(models["tampl+"].values())
    for size in SIZES:
        if len(plus) >= size:
            record["ensembles"][str(size)] = describe(tampl.Ensemble(plus[:size]), test)
    pool = tampl.Ensemble(plus[: SIZES[0]])
    for name, family in families.items():
        found = {"tampl+, one model": plus[0], "tampl+, three models": pool}
        record["outside"][name] = {
            key: describe_outside(model, family) for key, model in found.items()
        }
        print(name, json.dumps(record["outside"][name]), file=sys.stderr)
    return record


def describe(model: tampl.MacroModel | tampl.Ensemble, test: References) -> dict[str, Any]:
    """Scores, calibration and warnings on test states."""
    ours, plain = (
        evaluate(model, test, limits=limits, progress=False) for limits in (True, False)
    )
    members, horizon = test.y.shape[1], test.y.shape[2] - 1
    forecast = model.forecast(
        test.x, test.y[:, 0, 0], horizon=horizon, members=members, progress=False
    )
    print(ours, file=sys.stderr)
    found = summarise(ours) | {
        "plain": summarise(plain),
        "beyond_limits": count_beyond(forecast.samples, test),
        "false_alarms": {key: float(np.mean(flag)) for key, flag in find_flags(forecast).items()},
    }
    if forecast.disagreement is not None:
        found["disagreement"] = {
            "median": float(np.median(forecast.disagreement)),
            "largest": float(forecast.disagreement.max()),
        }
    return found


def summarise(found: Evaluation) -> dict[str, Any]:
    """The numbers of an evaluation."""
    calibration = found.calibration
    assert calibration is not None
    return {
        "rmse": found.rmse,
        "mmd": found.mmd,
        "crps": found.crps,
        "floor": None if found.floor is None else [found.floor.rmse, found.floor.mmd],
        "held": found.held,
        "spread_ratio": dict(found.spread),
        "spread_to_error": calibration.spread_to_error,
        "coverage": {str(level): calibration.mean_coverage(level) for level in calibration.levels},
        "coverage_80_by_observable": calibration.coverage_by_observable(0.8),
    }


def count_beyond(samples: np.ndarray, test: References) -> int:
    """How many values of members lie beyond a limit or off a total."""
    description, count = test.description, 0
    for place, observable in enumerate(description.observables):
        own = samples[..., place]
        if observable.lower is not None:
            count += np.count_nonzero(own < observable.lower - LEAST)
        if observable.upper is not None:
            count += np.count_nonzero(own > observable.upper + LEAST)
    symbols = [observable.symbol for observable in description.observables]
    for total in description.totals:
        parts = samples[..., [symbols.index(symbol) for symbol in total.symbols]]
        count += np.count_nonzero(np.abs(parts.sum(axis=-1) - total.value) > 1e-6)
    return int(count)


def find_flags(forecast: Forecast) -> dict[str, np.ndarray]:
    """Which initial states are flagged, (G,), by which signal and by any."""
    assert forecast.inside is not None
    free = forecast.inside.mean(axis=1)
    flags = {"outside": free[:, 0] < 0.5, "held": 1 - free[:, 1:].mean(axis=1) > MANY_HELD}
    if forecast.disagreement is not None:
        flags["disagreement"] = forecast.disagreement > DISAGREEMENT
    return flags | {"any": np.any(list(flags.values()), axis=0)}


def describe_outside(model: tampl.MacroModel | tampl.Ensemble, family: Outside) -> dict[str, Any]:
    """How many states of a family are flagged, and the error of their forecasts."""
    if family.y is None:
        try:
            model.forecast(family.x, horizon=1, members=4, progress=False)
        except InputError as error:
            return {"refused": str(error), "flagged": {"any": 1.0}}
        raise AssertionError("microstates of another size were taken")
    y, scale = family.y, model.normalization.std
    forecast = model.forecast(
        family.x, y[:, 0, 0], horizon=y.shape[2] - 1, members=y.shape[1], progress=False
    )
    error = (forecast.mean - y.mean(axis=1))[:, 1:] / scale
    found = {
        "flagged": {key: float(np.mean(flag)) for key, flag in find_flags(forecast).items()},
        "rmse": float(np.sqrt(np.mean(error**2))),
        "rmse_of_the_unflagged": None,
    }
    quiet = ~find_flags(forecast)["any"]
    if quiet.any():
        found["rmse_of_the_unflagged"] = float(np.sqrt(np.mean(error[quiet] ** 2)))
    if forecast.disagreement is not None:
        found["disagreement"] = float(np.median(forecast.disagreement))
    return found


if __name__ == "__main__":
    main()
