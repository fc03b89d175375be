"""What a forecast costs beside the simulation that it replaces.

Both make the same thing: ensembles of macroscopic trajectories from the same initial microstates.
The simulation uses all cores of the machine; the forecast a device. Rounds are interleaved, and
the ratio is that of the medians in one run: above 1 the forecast is cheaper. Where simulating all
would take hours, a part of the initial microstates is simulated (`--simulated`), with a part of
the members and over a part of the frames, and the time is scaled up.

    python benchmarks/forecast_cost.py RUN recipes/sirs.toml --device cpu --json

Where a model steps by a map in place of a flow (TAMPL+), its error is set beside that of the same
model with 16 midpoint steps of the flow: `rmse_ratio`, against the simulated ensembles.
"""

import argparse
import copy
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import torch

from tampl.evaluation import score
from tampl.lab.provenance import provenance
from tampl.lab.recipes import read_recipe
from tampl.models import MacroModel, load_model
from tampl.seeding import kernel_words, numpy_generator
from tampl.system import System
from tampl.threads import available_cores


def main() -> None:
    arguments = parse()
    system, states = read_recipe(arguments.recipe).system, arguments.states
    frames, whole = system.description.frames, arguments.members
    model = load_model(find_model(arguments.run), device=arguments.device)
    draws = [system.initial(numpy_generator(0, "cost", i)) for i in range(states)]
    microstates = np.stack([draw.microstate for draw in draws])
    part = min(states, arguments.simulated or states)
    members = min(whole, arguments.simulated_members or whole)
    last = min(frames, arguments.simulated_frames or frames) - 1
    system = system.model_copy(update={"frames": last + 1})
    scale = (states / part) * (whole / members) * ((frames - 1) / last)
    simulate(system.model_copy(update={"frames": 2}), microstates[:2], 2)  # compiles
    predict(model, microstates[:2], 2, horizon=2)
    rounds = []
    for _ in range(arguments.rounds):
        seconds, truth = simulate(system, microstates[:part], members)
        ahead = predict(model, microstates, whole, horizon=frames - 1)
        rounds.append((scale * seconds, ahead))
    simulation_s, forecast_s = (median(times) for times in zip(*rounds, strict=True))
    result = {
        "initial_microstates": states,
        "members": whole,
        "frames": frames,
        "cores": available_cores(),
        "threads": torch.get_num_threads(),
        "simulation_s": simulation_s,
        "forecast_s": forecast_s,
        "ratio": simulation_s / forecast_s,
        "rounds": arguments.rounds,
        "simulated_microstates": part,
        "simulated_members": members,
        "simulated_frames": last + 1,
        **compare_with_flow(model, microstates[: arguments.scored], truth[: arguments.scored]),
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
    parser.add_argument("--simulated", type=int, help="microstates to simulate; default: all")
    parser.add_argument("--simulated-members", type=int, help="members of each; default: all")
    parser.add_argument("--simulated-frames", type=int, help="frames of each; default: all")
    parser.add_argument(
        "--scored", type=int, default=100, help="microstates of the rmse_ratio; 0 for none"
    )
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def find_model(path: Path) -> Path:
    return path / "best.safetensors" if path.is_dir() else path


def simulate(system: System, microstates: np.ndarray, members: int) -> tuple[float, np.ndarray]:
    """Seconds of the simulation on all cores, and its macrostates.

    A piece is one initial microstate, or some of its members where microstates are fewer than
    cores.
    """
    words = np.stack(
        [[kernel_words(0, "cost", i, k) for k in range(members)] for i in range(len(microstates))]
    )
    cores = available_cores()
    parts = np.array_split(words, -(-cores // len(microstates)), axis=1)
    start = time.perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        pieces = [
            [
                pool.submit(system.ensemble, microstates[i : i + 1], part[i : i + 1])
                for part in parts
            ]
            for i in range(len(microstates))
        ]
        found = [np.concatenate([each.result() for each in piece], axis=1) for piece in pieces]
    return time.perf_counter() - start, np.concatenate(found)


def predict(model: MacroModel, microstates: np.ndarray, members: int, *, horizon: int) -> float:
    """Seconds of the forecast, from microstates on the host to macrostates on the host."""
    start = time.perf_counter()
    model.forecast(microstates, horizon=horizon, members=members, progress=False)
    return time.perf_counter() - start


def compare_with_flow(
    model: MacroModel, microstates: np.ndarray, truth: np.ndarray
) -> dict[str, float]:
    """Errors of the forecast means by the model's map and by 16 steps of its flow."""
    flow = copy.deepcopy(model)
    if getattr(flow.transition, "map", None) is None or not len(microstates):
        return {}
    flow.transition.map = None
    flow.transition.flow.steps, flow.transition.flow.grading = 16, 1.0
    errors = []
    for each in (model, flow):
        ahead = each.forecast(
            microstates,
            truth[:, 0, 0],
            horizon=truth.shape[2] - 1,
            members=truth.shape[1],
            progress=False,
        )
        errors.append(score(ahead.samples, truth, model.normalization).rmse)
    ours, theirs = errors
    return {"rmse": ours, "rmse_of_16_steps": theirs, "rmse_ratio": ours / theirs}


def describe(result: dict) -> str:
    return (
        f"simulation {result['simulation_s']:.2f} s on {result['cores']} cores, forecast "
        f"{result['forecast_s']:.2f} s on {result['provenance']['device']}: "
        f"{result['ratio']:.2f} times cheaper"
    )


if __name__ == "__main__":
    main()
