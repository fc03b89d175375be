"""How do simulation, training and forecast grow with the system, the ensemble and the cores?

    python benchmarks/scaling.py --json

Lattices of 32 to 512 sites along an edge, 128 to 8,192 particles at one density, 16 to 1,024
members of an ensemble, one core and all. Networks and lengths are the same at all sizes, and so
is the number of training pairs and of members where the system grows. The sizes of a curve are
measured in turns, `--rounds` times, and the least time of each counts, since whatever else a
machine does only adds to it.

An exponent is the slope of log(time) over log(size), for sizes in sites or particles: 1 is linear.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import tampl
from tampl.data import Dataset
from tampl.lab.provenance import provenance
from tampl.lab.recipes import read_recipe
from tampl.methods.base import make_trainer
from tampl.seeding import kernel_words, numpy_generator
from tampl.system import System
from tampl.systems import SIRS, Mixing
from tampl.threads import available_cores
from tampl.training import Trainer

SIDES = (32, 64, 128, 256, 512)
PARTICLES = (128, 256, 512, 1024, 2048, 4096, 8192)
MEMBERS = (16, 64, 256, 1024)

FRAMES, RUNS, STATES, ENSEMBLE, HORIZON = 6, 8, 8, 64, 10
DENSITY = 0.5
"""Particles in a unit of area, as in `recipes/mixing.toml`."""

LEAST_S = 0.3
"""A call that takes less is repeated until that time is over."""

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A system of one size, what trains on it and what forecasts it."""

    system: System
    x: NDArray[Any]
    trainer: Trainer
    model: tampl.MacroModel

    @classmethod
    def of(cls, system: System, recipe: str) -> "Case":
        """Simulates a few trajectories and trains for an epoch, with a recipe's networks."""
        x = np.stack([system.initial(numpy_generator(0, i)).microstate for i in range(STATES)])
        words = np.stack([kernel_words(0, i) for i in range(RUNS)])
        found = system.simulate(x[:RUNS], words)
        labels = np.array([""] * RUNS)
        data = Dataset.described(system.description, found.microstates, found.macrostates, labels)
        settings = read_recipe(recipe)
        training = settings.training.model_copy(
            update={"epochs": 1, "symmetries": (), "batch_size": 20}
        )
        networks = {"architecture": settings.model, "training": training}
        model = tampl.Tampl().fit(data, data, device="cpu", progress=False, **networks)
        trainer = make_trainer(tampl.Tampl(), data, **networks)
        return cls(system, x, trainer, model)

    def simulate(self, runs: int = RUNS, threads: int = 1) -> object:
        """Trajectories without their microstates, each with its own random numbers."""
        words = np.stack([[kernel_words(1, i)] for i in range(runs)])
        with ThreadPoolExecutor(threads) as pool:
            return list(
                pool.map(
                    lambda i: self.system.ensemble(self.x[i % STATES][None], words[i][None]),
                    range(runs),
                )
            )

    def train(self) -> object:
        """An epoch of all pairs: a representation stage and a transition stage."""
        return [self.trainer.run_stage(stage) for stage in self.trainer.schedule[0]]

    def forecast(self, members: int = ENSEMBLE) -> object:
        """Ensembles from all initial microstates, the encoding of these included."""
        return self.model.forecast(
            self.x, horizon=HORIZON, members=members, keep="moments", progress=False
        )

    def encode(self) -> object:
        """The part of a forecast that grows with the system."""
        with torch.no_grad():
            return self.model.start_arrays(self.x, None)


def make_lattice(side: int) -> Case:
    """Eight infected clusters in any lattice, as many sites in each as its size allows."""
    return Case.of(SIRS(size=side, frames=FRAMES, clusters=(8,)), "recipes/sirs-mini.toml")


def make_fluid(particles: int) -> Case:
    """Half of the particles of each type; 200 steps between the first and the last frame."""
    fluid = Mixing(
        particles=particles // 2,
        box=float(np.sqrt(particles / DENSITY)),
        interval=0.08,
        frames=FRAMES,
        equilibration=200,
    )
    return Case.of(fluid, "recipes/mixing-mini.toml")


def least(calls: Mapping[int, Call], rounds: int) -> dict[str, float]:
    """The least seconds of each call, all in turns; once before, which compiles."""
    found = {size: float("inf") for size in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for size, call in calls.items():
            done, start = 0, time.perf_counter()
            while time.perf_counter() - start < LEAST_S:
                call()
                done += 1
            found[size] = min(found[size], (time.perf_counter() - start) / done)
    print({size: f"{seconds:.3g}" for size, seconds in found.items()}, file=sys.stderr)
    return {str(size): seconds for size, seconds in found.items()}


def describe(seconds: Mapping[str, float], size: Callable[[int], int]) -> dict[str, Any]:
    """The times of a curve, its exponent over all sizes and between neighbouring ones."""
    sizes = [size(int(key)) for key in seconds]
    logs = np.log(np.array([sizes, list(seconds.values())]))
    steps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(logs.T)]
    return {
        "seconds": dict(seconds),
        "exponent": float(np.polyfit(*logs, 1)[0]),
        "between_neighbours": [float(step) for step in steps],
    }


def grow(
    cases: Mapping[int, Case], size: Callable[[int], int], rounds: int
) -> dict[str, dict[str, Any]]:
    """Every verb over the sizes of a system."""
    verbs = {
        "simulation": Case.simulate,
        "training": Case.train,
        "encoding": Case.encode,
        "forecast": Case.forecast,
    }
    return {
        name: describe(least({n: _bind(verb, case) for n, case in cases.items()}, rounds), size)
        for name, verb in verbs.items()
    }


def _bind(verb: Callable[[Case], object], case: Case) -> Call:
    return lambda: verb(case)


def spread_over_cores(case: Case, counts: Sequence[int], rounds: int) -> dict[str, Any]:
    """Seconds by number of cores, of the threads of simulation and of torch."""

    def on(threads: int, verb: Call) -> Call:
        def call() -> None:
            torch.set_num_threads(threads)
            verb()
            torch.set_num_threads(1)

        return call

    verbs: dict[str, Callable[[int], Call]] = {
        "simulation": lambda n: lambda: case.simulate(32, threads=n),
        "training": lambda n: on(n, case.train),
        "forecast": lambda n: on(n, lambda: case.forecast(256)),
    }
    return {
        name: least({count: verb(count) for count in counts}, rounds)
        for name, verb in verbs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", type=int, nargs="+", default=SIDES)
    parser.add_argument("--particles", type=int, nargs="+", default=PARTICLES)
    parser.add_argument("--members", type=int, nargs="+", default=MEMBERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    # An epoch of a few pairs makes a model that costs what any other does, and forecasts nothing.
    warnings.simplefilter("ignore", tampl.ForecastWarning)
    lattices = {side: make_lattice(side) for side in options.sides}
    fluids = {count: make_fluid(count) for count in options.particles}
    middle = lattices[options.sides[len(options.sides) // 2]]
    ensembles = {
        members: _bind(lambda case, n=members: case.forecast(n), middle)
        for members in options.members
    }
    cores = sorted({1, available_cores()})
    record = {
        "lattice": grow(lattices, lambda side: side**2, options.rounds),
        "particles": grow(fluids, lambda count: count, options.rounds),
        "members": {"forecast": describe(least(ensembles, options.rounds), lambda n: n)},
        "cores": spread_over_cores(middle, cores, options.rounds),
        "runs": RUNS,
        "pairs": RUNS * (FRAMES - 1),
        "states": STATES,
        "frames": FRAMES,
        "horizon": HORIZON,
        "provenance": provenance("cpu"),
    }
    if options.json:
        print(json.dumps(record, indent=1))
        return
    for what in ("lattice", "particles", "members"):
        for verb, curve in record[what].items():
            steps = ", ".join(f"{step:.2f}" for step in curve["between_neighbours"])
            print(f"{verb} against {what}: exponent {curve['exponent']:.2f} ({steps})")


if __name__ == "__main__":
    main()
