"""What a forecast costs beside the simulation that it replaces.

Both make the same thing: ensembles of macroscopic trajectories from the same initial microstates.
The simulation uses all cores of the machine; the forecast a device. Rounds are interleaved, and
the ratio is that of the medians in one run: above 1 the forecast is cheaper.

    python benchmarks/forecast_cost.py RUN recipes/sirs.toml --device cpu --json
"""

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import torch

from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.models import MacroModel, load_model
from tampl.seeding import kernel_words, numpy_generator
from tampl.threads import available_cores


def main() -> None:
    arguments = parse()
    recipe, states = read_recipe(arguments.recipe), arguments.states
    model = load_model(find_model(arguments.run), device=arguments.device)
    draws = [recipe.system.initial(numpy_generator(0, "cost", i)) for i in range(states)]
    microstates = np.stack([draw.microstate for draw in draws])
    simulate(recipe, microstates[:2], 2)  # compiles
    predict(model, microstates[:2], 2)
    rounds = [
        (
            simulate(recipe, microstates, arguments.members),
            predict(model, microstates, arguments.members),
        )
        for _ in range(arguments.rounds)
    ]
    simulation_s, forecast_s = (median(times) for times in zip(*rounds, strict=True))
    result = {
        "initial_microstates": states,
        "members": arguments.members,
        "frames": recipe.system.description.frames,
        "cores": available_cores(),
        "threads": torch.get_num_threads(),
        "simulation_s": simulation_s,
        "forecast_s": forecast_s,
        "ratio": simulation_s / forecast_s,
        "rounds": arguments.rounds,
        "model": model.spec.model_dump(mode="json"),
        "provenance": provenance(arguments.device),
    }
    print(json.dumps(result, indent=1) if arguments.json else describe(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a run, or a model's file")
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--states", type=int, default=200)
    parser.add_argument("--members", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def find_model(path: Path) -> Path:
    return path / "best.safetensors" if path.is_dir() else path


def simulate(recipe: Recipe, microstates: np.ndarray, members: int) -> float:
    """Seconds of the simulation on all cores, one initial microstate a piece."""
    words = np.stack(
        [[kernel_words(0, "cost", i, k) for k in range(members)] for i in range(len(microstates))]
    )
    start = time.perf_counter()
    with ThreadPoolExecutor(available_cores()) as pool:
        pieces = [(microstates[i : i + 1], words[i : i + 1]) for i in range(len(microstates))]
        list(pool.map(lambda piece: recipe.system.ensemble(*piece), pieces))
    return time.perf_counter() - start


def predict(model: MacroModel, microstates: np.ndarray, members: int) -> float:
    """Seconds of the forecast, from microstates on the host to macrostates on the host."""
    start = time.perf_counter()
    horizon = model.description.frames - 1
    model.forecast(microstates, horizon=horizon, members=members, progress=False)
    return time.perf_counter() - start


def describe(result: dict) -> str:
    return (
        f"simulation {result['simulation_s']:.2f} s on {result['cores']} cores, forecast "
        f"{result['forecast_s']:.2f} s on {result['provenance']['device']}: "
        f"{result['ratio']:.2f} times cheaper"
    )


if __name__ == "__main__":
    main()
