"""Is the demo's result a lucky seed? Runs it from several training and data seeds.

Each entry of the record is one whole demo: simulate, train, evaluate. The question is whether
TAMPL has at most half the error of the better closure and of the mean trajectory, every time.

    python benchmarks/demo_seeds.py --seeds 42,43,44 --data-seeds 0,1 --out results/demo.json
"""

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tampl.config import Recipe, read_recipe
from tampl.demo import run_demo
from tampl.provenance import provenance

RECIPE = Path(__file__).parent.parent / "recipes" / "sirs-mini.toml"


def run(recipe: Recipe, seed: int, data_seed: int) -> dict[str, object]:
    data = recipe.data.model_copy(update={"seed": data_seed})
    start = time.perf_counter()
    with TemporaryDirectory() as folder:
        demo = run_demo(Path(folder) / "demo", seed=seed, recipe=replace(recipe, data=data))
    return {
        "seed": seed,
        "data_seed": data_seed,
        "seconds": time.perf_counter() - start,
        "scores": {name: asdict(score) for name, score in demo.scores.items()},
    }


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=numbers, default=[42, 43, 44])
    parser.add_argument("--data-seeds", type=numbers, default=[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    recipe = read_recipe(RECIPE)
    record: dict[str, object] = {"recipe": RECIPE.name, "provenance": provenance()}
    runs: list[dict[str, object]] = []
    for data_seed in options.data_seeds:
        for seed in options.seeds:
            runs.append(run(recipe, seed, data_seed))
            options.out.write_text(json.dumps({**record, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
