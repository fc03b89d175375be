"""What is the scatter of scores over training seeds made of? One source of chance at a time.

A training draws from three streams: the initial weights, the order of batches, and the noise of
the losses. Here one of them is seeded anew and the others are kept; `all` seeds all three anew.
`rounding` keeps all three and changes each initial weight by one part in ten million at most, as
another device or another number of threads changes sums. If that scatters the scores as much as
another seed does, a training amplifies whatever differs, and no source of chance can be blamed.

Scores are those of ensembles from initial states of another data seed; no test data are read.

    python benchmarks/scatter.py recipes/sirs-mini.toml --data STORE --truth TRUTH --json
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from unittest.mock import patch

import torch

from tampl import Dataset
from tampl.data import References, Store
from tampl.evaluation import evaluate
from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.models import Modules
from tampl.seeding import torch_generator
from tampl.training import frames as frames_module
from tampl.training import trainer as trainer_module

STREAMS = ("weights", "order", "noise")
SOURCES = (*STREAMS, "all", "rounding")
ROUNDING = 1e-7


@contextmanager
def seeding(source: str, seed: int) -> Iterator[None]:
    """Trainings in which a source of chance has another seed.

    Arguments:
        source: Of `SOURCES`.
        seed: Of that source; all else has the seed of the training.
    """
    changed = STREAMS if source == "all" else (source,)

    def draw(own: int, *address: str | int, **options: Any) -> torch.Generator:  # noqa: ANN401
        named = "noise" if address[-1] == "noise" else "order"
        return torch_generator(seed if named in changed else own, *address, **options)

    build = Modules.build.__func__  # type: ignore[attr-defined]

    def perturb(cls: type[Modules], *arguments: Any, **options: Any) -> Modules:  # noqa: ANN401
        if "weights" in changed:
            torch.manual_seed(seed)
        modules = build(cls, *arguments, **options)
        if source == "rounding":
            generator = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                for parameter in modules.parameters():
                    sign = torch.rand(parameter.shape, generator=generator) * 2 - 1
                    parameter.mul_(1 + ROUNDING * sign)
        return modules

    with (
        patch.object(trainer_module, "torch_generator", draw),
        patch.object(frames_module, "torch_generator", draw),
        patch.object(Modules, "build", classmethod(perturb)),
    ):
        yield


def measure(
    recipe: Recipe,
    train: Dataset,
    valid: Dataset,
    truth: References,
    *,
    method: str,
    seeds: Sequence[int],
) -> dict[str, Any]:
    """Scores with the recipe's seed, and with other seeds of each source."""
    runs: dict[str, list[dict[str, float]]] = {}
    for source in ("none", *SOURCES):
        runs[source] = []
        for seed in seeds if source != "none" else [recipe.training.seed]:
            with seeding(source, seed):
                model = recipe.method(method).fit(
                    train,
                    valid,
                    architecture=recipe.model,
                    training=recipe.training,
                    device="cpu",
                    progress=False,
                )
            found = evaluate(model, truth, progress=False)
            runs[source].append({"seed": seed, "rmse": found.rmse, "mmd": found.mmd})
            print(source, runs[source][-1], file=sys.stderr, flush=True)
    return {
        "method": method,
        "recipe": recipe.name,
        "training_seed": recipe.training.seed,
        "runs": runs,
        "scatter": {source: summarise(each) for source, each in runs.items() if len(each) > 1},
    }


def summarise(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean and standard deviation of the RMSE."""
    values = [run["rmse"] for run in runs]
    return {"mean": mean(values), "std": stdev(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the recipe's store")
    parser.add_argument("--truth", type=Path, required=True, help="store of ensembles")
    parser.add_argument("--method", default="tampl")
    parser.add_argument("--seeds", type=int, nargs="+", default=[43, 44, 45, 46])
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    store, made_by = Store.open(arguments.data), provenance()
    record = measure(
        read_recipe(arguments.recipe),
        store.dataset("train"),
        store.dataset("valid"),
        Store.open(arguments.truth).references("test"),
        method=arguments.method,
        seeds=arguments.seeds,
    )
    record["provenance"] = made_by
    if arguments.json:
        print(strict_json(record, indent=1))
        return
    for source, found in record["scatter"].items():
        print(f"{source}: RMSE {found['mean']:.4f}, standard deviation {found['std']:.4f}")


if __name__ == "__main__":
    main()
