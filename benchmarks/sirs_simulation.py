"""How fast is exact SIRS simulation at the paper's size, on one thread and on all cores?

Runs 100 x 100 lattices for 101 frames (beta 8, gamma 1, mu 0.15), keeping counts only, as the
reference ensembles do. An event is a change of state; rejected attempts are not counted.

    python benchmarks/sirs_simulation.py --json
"""

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tampl.lab.provenance import provenance
from tampl.seeding import kernel_words, numpy_generator
from tampl.systems import SIRS
from tampl.systems.kernels.sirs import run_chains
from tampl.threads import available_cores


def make_job(system: SIRS, seed: int) -> Callable[[int], int]:
    """A function that runs trajectory `n` and returns its number of events."""
    rates = np.array([system.beta, system.gamma, system.mu])
    patterns = [system.initial(numpy_generator(seed, "initial", n)) for n in range(32)]

    def run(n: int) -> int:
        lattice = patterns[n % len(patterns)].microstate.reshape(1, -1)
        words = kernel_words(seed, "run", n).reshape(1, 1, 4)
        counts = np.empty((1, 1, system.frames, 3), np.int64)
        frames = np.empty((1, 1, 0, lattice.size), np.uint8)
        return run_chains(lattice, words, rates, system.interval, counts, frames)

    return run


def measure(run: Callable[[int], int], trajectories: int, threads: int) -> tuple[float, int]:
    """Seconds and events of `trajectories` runs on `threads` threads."""
    with ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        events = sum(pool.map(run, range(trajectories)))
        return time.perf_counter() - start, events


def benchmark(trajectories: int, seed: int) -> dict[str, Any]:
    cores = available_cores()
    run = make_job(SIRS(), seed)
    run(0)  # compiles
    alone, events = measure(run, trajectories, 1)
    together, _ = measure(run, trajectories * cores, cores)
    return {
        "trajectories_per_second_core": trajectories / alone,
        "events_per_second_core": events / alone,
        "milliseconds_per_trajectory": 1e3 * alone / trajectories,
        "trajectories_per_second": trajectories * cores / together,
        "threads": cores,
        "trajectories": trajectories,
        "provenance": provenance(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trajectories", type=int, default=200, help="runs per thread")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON instead of two lines")
    arguments = parser.parse_args()
    result = benchmark(arguments.trajectories, arguments.seed)
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"one thread: {result['trajectories_per_second_core']:.0f} trajectories/s, "
        f"{result['events_per_second_core']:.3g} events/s"
    )
    print(f"{result['threads']} threads: {result['trajectories_per_second']:.0f} trajectories/s")


if __name__ == "__main__":
    main()
