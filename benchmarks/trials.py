"""Which settings train better? Trials on validation data, several side by side.

A trial is a training of a recipe with some settings changed, scored against ensembles that were
simulated from initial states of another data seed: no test data are read. The list of trials is a
TOML file,

    [[trial]]
    name = "wider"
    method = "tampl+"                       # tampl by default
    seed = 43                               # the recipe's by default
    set = { "training.epochs" = 13, "methods.tampl+.refit.hidden" = [512, 512] }

A trial with `representation = "NAME"` takes the encoder and the readout of the finished trial NAME
(with `--keep-models`) and makes the rest of TAMPL+ anew: its refit and its map.

Every process that is started with the same list and the same folder takes the next trial that
nobody has taken, so that several share a GPU. Each trial leaves OUT/NAME.json.

    tampl simulate recipes/sirs.toml --out runs/sirs
    python benchmarks/trials.py recipes/sirs.toml TRIALS --data runs/sirs --truth runs/truth
    python benchmarks/trials.py --join runs/trials > results/trials.json
"""

import argparse
import json
import sys
import time
import tomllib
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tampl
from tampl import TamplPlus
from tampl.data import References, Store, generate
from tampl.description import Description
from tampl.errors import InputError
from tampl.evaluation import Evaluation, evaluate
from tampl.files import strict_json
from tampl.lab.cli.entry import keep_freed_memory
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.methods.base import Method
from tampl.models import ModelSpec, Modules, resolve_device
from tampl.systems import Polymer
from tampl.training import DivergenceError, TrainingSpec, Turn

TRUTH_SEED = 1
"""The data seed of the initial states that trials are scored on."""


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        name: Of its file.
        method: What is trained.
        seed: Training seed; the recipe's if None.
        representation: The trial whose encoder and readout are taken; its own if None.
        settings: Values by dotted paths into the recipe.
    """

    name: str
    method: str = "tampl"
    seed: int | None = None
    representation: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def resolve(self, recipe: Recipe) -> Recipe:
        """The recipe of the trial."""
        recipe = recipe.of(self.method)
        for path, value in self.settings.items():
            recipe = recipe.with_value(path, value)
        return recipe.with_seed(self.seed)


class PlusOnRepresentation(Method):
    """TAMPL+ on an encoder and a readout that are trained already.

    Attributes:
        plus: TAMPL+, whose first part is left out.
        file: The model that they are taken from.
    """

    plus: TamplPlus
    file: Path

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        built, other = self.plus.modules(spec, description), tampl.load(self.file)
        for ours, theirs in ((built.encoder, other.encoder), (built.readout, other.readout)):
            ours.load_state_dict(theirs.state_dict())
        return built

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        representation, *rest = self.plus.turns(training)
        return replace(representation, stages=(), epochs=1), *rest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", type=Path, nargs="?")
    parser.add_argument("trials", type=Path, nargs="?", help="the list, a TOML file")
    parser.add_argument("--data", type=Path, help="store to train on")
    parser.add_argument("--truth", type=Path, help="store of ensembles; made where it is missing")
    parser.add_argument("--states", type=int, default=60, help="initial states of the ensembles")
    parser.add_argument("--members", type=int, help="trajectories of each, if not the recipe's")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("runs/trials"))
    parser.add_argument("--keep-models", action="store_true", help="OUT/NAME.safetensors too")
    parser.add_argument("--only-truth", action="store_true", help="make the ensembles, then stop")
    parser.add_argument("--join", type=Path, help="print all trials in a folder as one record")
    arguments = parser.parse_args()
    if arguments.join is not None:
        print(strict_json(join(arguments.join), indent=1))
        return
    if None in (arguments.recipe, arguments.data, arguments.truth):
        parser.error("give a recipe, --data and --truth, or --join")
    keep_freed_memory()
    device = resolve_device(arguments.device)
    recipe = read_recipe(arguments.recipe)
    sizes = {"test": arguments.states, "members": arguments.members}
    truth = make_truth(recipe, arguments.truth, sizes=sizes, device=device)
    if arguments.only_truth:
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    trials = read_trials(arguments.trials)
    for trial in trials:
        trial.resolve(recipe)  # a wrong setting is refused before the first training
    store = Store.open(arguments.data)
    train, valid = store.dataset("train"), store.dataset("valid")
    for trial in take(trials, arguments.out):
        began = time.perf_counter()
        try:
            method = find_method(trial, recipe, arguments.out)
            model, seconds = fit(method, trial.resolve(recipe), train, valid, device=device)
            found = describe_model(model, truth) | {"seconds": seconds}
            if arguments.keep_models:
                model.save(arguments.out / f"{trial.name}.safetensors")
        except (DivergenceError, torch.OutOfMemoryError) as error:
            found = {"failure": str(error)}
        except Exception:  # of one trial; the others are wanted still
            traceback.print_exc()
            found = {"failure": traceback.format_exc().splitlines()[-1]}
        record = {
            "name": trial.name,
            "method": trial.method,
            "seed": trial.resolve(recipe).training.seed,
            "representation": trial.representation,
            "settings": dict(trial.settings),
            **found,
            "total_s": time.perf_counter() - began,
            "recipe": arguments.recipe.name,
            "provenance": provenance(device),
        }
        (arguments.out / f"{trial.name}.json").write_text(strict_json(record, indent=1))
        print(describe(record), file=sys.stderr, flush=True)


def read_trials(path: Path) -> list[Trial]:
    """The trials of a list, checked."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["trial"]
    trials = [
        Trial(**{("settings" if k == "set" else k): v for k, v in t.items()}) for t in tables
    ]
    names = [trial.name for trial in trials]
    if len(set(names)) < len(names):
        raise InputError(f"{path} names a trial twice; give each a name of its own")
    return trials


def take(trials: list[Trial], out: Path) -> Iterator[Trial]:
    """The trials that no other process takes."""
    for trial in trials:
        try:
            (out / f"{trial.name}.taken").touch(exist_ok=False)
        except FileExistsError:
            continue
        yield trial


def make_truth(
    recipe: Recipe, path: Path, *, sizes: Mapping[str, int | None], device: str
) -> References:
    """Ensembles from initial states of another data seed.

    Arguments:
        recipe: The recipe.
        path: The store of them, made where it is missing.
        sizes: Entries of the recipe's section `data`; those that are None stay as they are.
        device: Where to simulate.
    """
    system, plan = recipe.find_plan()
    assert plan.seed != TRUTH_SEED
    if isinstance(system, Polymer):  # its fixed configurations are the test set
        system = system.model_copy(update={"regimes": False})
    fewest = {"train": 1, "valid": 1, "train_runs": 1, "valid_runs": 1}
    given = {key: value for key, value in sizes.items() if value is not None}
    other = plan.model_copy(update={"seed": TRUTH_SEED, **fewest, **given})
    kernel = device if recipe.system_name != "sirs" else "cpu"
    # Several processes read it at once, and making it claims it.
    store = Store.open(path) if path.exists() else generate(system.on(kernel), other, path)
    return replace(store.references("test"), description=recipe.find_plan()[0].description)


def find_method(trial: Trial, recipe: Recipe, out: Path) -> Method:
    """What a trial trains; waits for the trial whose representation it takes."""
    method = trial.resolve(recipe).method(trial.method)
    if trial.representation is None:
        return method
    if not isinstance(method, TamplPlus):
        raise InputError(f"{trial.name} takes a representation; only TAMPL+ can")
    while not (out / f"{trial.representation}.json").exists():  # written after the model
        time.sleep(1)
    return PlusOnRepresentation(plus=method, file=out / f"{trial.representation}.safetensors")


def fit(
    method: Method, recipe: Recipe, train: tampl.Dataset, valid: tampl.Dataset, *, device: str
) -> tuple[tampl.MacroModel, float]:
    """Trains; the model and the seconds."""
    began = time.perf_counter()
    model = method.fit(
        train,
        valid,
        architecture=recipe.model,
        training=recipe.training,
        device=device,
        progress=False,
    )
    return model, time.perf_counter() - began


def describe_model(model: tampl.MacroModel, truth: References) -> dict[str, Any]:
    """What a trial is judged by."""
    log = model.history
    return {
        "epoch_s": float(np.median([sum(epoch["seconds"].values()) for epoch in log])),
        "stages_s": log[len(log) // 4]["seconds"],
        "validation": min((e["validation"] for e in log if e["validation"]), default=None),
        "validations": [e["validation"] for e in log if e["validation"] is not None],
        "latent": [log[k]["latent"] for k in (0, len(log) // 2, -1)],
        "rank": effective_rank(model, truth),
        "runaway": find_runaways(model, truth),
        "bounded": summarise(evaluate(model, truth, progress=False)),
        "plain": summarise(evaluate(model, truth, limits=False, progress=False)),
    }


def find_runaways(model: tampl.MacroModel, truth: References) -> dict[str, Any]:
    """Where free ensembles lie that are farther out than the whole range of true values again.

    By quarters of the horizon, so that one sees when it begins, and by initial state: from how
    many a member runs away at all.
    """
    low, high = (reduce(truth.y, axis=(0, 1, 2)) for reduce in (np.min, np.max))
    ahead = model.forecast(
        truth.x,
        truth.y[:, 0, 0],
        horizon=truth.y.shape[2] - 1,
        members=truth.y.shape[1] if model.stochastic else 1,
        limits=False,
        progress=False,
    ).samples
    gone = (~((ahead >= 2 * low - high) & (ahead <= 2 * high - low))).any(axis=-1)
    quarters = np.array_split(gone[:, :, 1:], 4, axis=2)
    return {
        "members_by_quarter": [float(quarter.any(axis=2).mean()) for quarter in quarters],
        "states": int(gone.any(axis=(1, 2)).sum()),
    }


@torch.no_grad()
def effective_rank(model: tampl.MacroModel, truth: References) -> float:
    """Participation ratio of the covariance of encoded initial states."""
    z = model.start_arrays(truth.x, truth.y[:, 0, 0])[:, : model.spec.latent_dim].double()
    spectrum = torch.linalg.eigvalsh(torch.cov(z.T))
    return float(spectrum.sum() ** 2 / spectrum.square().sum())


def summarise(found: Evaluation) -> dict[str, Any]:
    """Scores, and whether bands cover what they promise."""
    calibration = found.calibration
    covered = None if calibration is None else calibration.coverage_by_observable(0.8)
    return {
        "rmse": found.rmse,
        "mmd": found.mmd,
        "crps": found.crps,
        "floor": None if found.floor is None else [found.floor.rmse, found.floor.mmd],
        "held": found.held,
        "spread": dict(found.spread),
        "coverage_80": covered,
    }


def describe(record: Mapping[str, Any]) -> str:
    """A trial in a line."""
    head = f"{record['name']} ({record['method']}, {record['seed']})"
    if "failure" in record:
        return f"{head}: {record['failure']}"
    ours, plain = record["bounded"], record["plain"]
    mmd = "N/A" if ours["mmd"] is None else f"{ours['mmd']:.4f}"
    spread = ", ".join(f"{value:.2f}" for value in ours["spread"].values())
    return (
        f"{head}: RMSE {ours['rmse']:.4f} (plain {plain['rmse']:.4f}), MMD² {mmd}, spread "
        f"{spread}, held {ours['held']:.4f}, validation {record['validation']:.4f}, epoch "
        f"{record['epoch_s']:.2f} s, all {record['seconds']:.0f} s"
    )


def join(folder: Path) -> dict[str, Any]:
    """All trials of a folder, what they share in one place."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if not records:
        raise InputError(f"{folder} has no trial")
    shared = {"recipe": records[0]["recipe"], "provenance": records[0]["provenance"]}
    left_out = ("recipe", "provenance")
    trials = [
        {k: v for k, v in each.items() if k not in left_out}
        | {"commit": each["provenance"]["commit"]}
        for each in records
    ]
    return {**shared, "trials": trials}


if __name__ == "__main__":
    main()
