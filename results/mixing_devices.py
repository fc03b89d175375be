"""Makes mixing_devices.json: the binary mixture's GPU kernel against the CPU's.

    python results/mixing_devices.py

Estimated at a minute on one H200 and 16 cores; `--device cpu` compares the CPU with itself. From
one initial microstate of each family,

- `first_steps`: the largest difference in 50 steps from the same velocities, and for scale that of
  the CPU from positions `moved` by up to half of float32's spacing below the edge of the box;
- `energy`: how far 10,000 steps take the energy per particle from where it began;
- `ensembles`: means of S and K over runs with other velocities each. Their differences are divided
  by standard errors (z), for every microstate and for the mean over all of them (`pooled`).

The largest |z| of 120 independent comparisons is 2.8 (median), and more with few members.
"""

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tampl.errors import InputError
from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.lab.recipes import read_recipe
from tampl.microstates import Particles
from tampl.seeding import kernel_words, numpy_generator
from tampl.systems import Mixing
from tampl.systems.kernels.lennard_jones import Schedule
from tampl.systems.kernels.pair_forces import Fluid, pair_table
from tampl.threads import map_threads

HERE = Path(__file__).parent
FIRST_STEPS, ENERGY_STEPS = 50, 10_000
# Small patterns are mixed after some tens of frames, large ones after hundreds.
FRAMES = (2, 5, 10, 20, 40, 80, 150, 250, 375, 500)
LIMIT = 4.0
# Far below 1/N, the least change of an observable: constants that differ by rounding are equal.
LEAST_ERROR = 1e-10


def rms(x: NDArray[np.float64]) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(x**2)))


def words(count: int, *address: str) -> NDArray[np.uint64]:
    """Random words of runs, (n, 4)."""
    return np.stack([kernel_words(0, "devices", *address, i) for i in range(count)])


def batches(system: Mixing, runs: int) -> list[slice]:
    """What a device takes at a time: one run for a core, hundreds for a GPU."""
    return [slice(first, first + system.batch) for first in range(0, runs, system.batch)]


def run_kernel(
    system: Mixing, initial: NDArray[Any], *, every: int, frames: int, shift: float = 0.0
) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64]]:
    """Unrounded positions (n, F, N, 2) and energies per particle (n, F), from microstates.

    Each coordinate starts off by up to `shift`.
    """
    positions, types = Particles(count=initial.shape[1], types=2, box=system.box).decode(initial)
    positions += numpy_generator(0, "devices", "shift").uniform(-shift, shift, positions.shape)
    epsilon, sigma = ([[p[0], p[2]], [p[2], p[1]]] for p in (system.epsilon, system.sigma))
    fluid = Fluid(pair_table(epsilon, sigma, system.cutoff), system.cutoff, system.box)
    schedule, seeds = Schedule(system.temperature, system.dt, every), words(len(initial), "kernel")
    out = np.empty((len(positions), frames, *positions.shape[1:]), system.device.dtype)
    energies = np.empty(out.shape[:2])

    def run(b: slice) -> None:
        start = (positions[b], types[b] - 1, seeds[b])
        system.device.run(*start, fluid, schedule, out[b], energies[b], b.start)

    map_threads(run, batches(system, len(positions)))
    return out, energies / positions.shape[1]


def compare_first_steps(cpu: Mixing, other: Mixing, initial: NDArray[Any]) -> dict[str, Any]:
    """Largest differences from the CPU over runs, steps and particles."""
    spacing = float(np.spacing(np.nextafter(np.float32(cpu.box), np.float32(0))))
    schedule = {"every": 1, "frames": FIRST_STEPS + 1}
    x, energies = run_kernel(cpu, initial, **schedule)
    device, again = (run_kernel(other, initial, **schedule) for _ in range(2))
    moved = run_kernel(cpu, initial, **schedule, shift=spacing / 2)
    largest = lambda run: {
        "position": float(np.linalg.norm(run[0] - x, axis=-1).max()),
        "energy_per_particle": float(np.abs(run[1] - energies).max()),
    }
    return {
        "steps": FIRST_STEPS,
        "float32_spacing": spacing,
        "device": largest(device),
        "moved": largest(moved),
        "same_bytes_again": [a.tobytes() for a in device] == [a.tobytes() for a in again],
    }


def energy_change(system: Mixing, initial: NDArray[Any]) -> dict[str, float]:
    """What becomes of the energy per particle in runs from microstates (n, N, 3)."""
    _, energies = run_kernel(system, initial, every=ENERGY_STEPS, frames=2)
    change = energies[:, 1] - energies[:, 0]
    return {"mean": float(change.mean()), "rms": rms(change)}


def run_ensembles(
    system: Mixing, initial: NDArray[Any], *, members: int, name: str
) -> NDArray[np.float64]:
    """Macrostates (n, M, F, 2) of M members from each of n microstates."""
    starts = np.repeat(initial, members, axis=0)
    seeds = words(len(starts), "ensembles", name)[:, None]
    run = lambda b: system.ensemble(starts[b], seeds[b])
    done = np.concatenate(map_threads(run, batches(system, len(starts))))
    return done.reshape(len(initial), members, *done.shape[2:])


def compare_ensembles(
    reference: NDArray[np.float64], other: NDArray[np.float64]
) -> dict[str, Any]:
    """Differences of the means over members of macrostates (n, M, F, 2)."""
    difference = other.mean(axis=1) - reference.mean(axis=1)
    variance = sum(y.var(axis=1, ddof=1) / y.shape[1] for y in (reference, other))
    single = difference / np.maximum(np.sqrt(variance), LEAST_ERROR)
    error = np.sqrt(variance.sum(axis=0)) / len(variance)
    pooled = difference.mean(axis=0) / np.maximum(error, LEAST_ERROR)
    rows = {"cpu_mean": reference.mean(axis=(0, 1)), "standard_error": error, "z": pooled}
    observables = {
        symbol: {name: row[:, k].tolist() for name, row in rows.items()}
        for k, symbol in enumerate("SK")
    }
    largest = {"pooled": float(np.abs(pooled).max()), "single": float(np.abs(single).max())}
    return {
        "pooled": observables,
        "comparisons": {"pooled": pooled.size, "single": single.size},
        "largest_z": largest,
        "rms_z": {"pooled": rms(pooled), "single": rms(single)},
        "limit": LIMIT,
        "pooled_within_limit": largest["pooled"] <= LIMIT,
    }


def main() -> None:
    """Compares the devices and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=list(Mixing.devices))
    parser.add_argument("--members", type=int, default=64, help="runs of a microstate there")
    parser.add_argument("--reference-members", type=int, default=32, help="and on the CPU")
    parser.add_argument("--recipe", type=Path, default=HERE.parent / "recipes" / "mixing.toml")
    parser.add_argument("--record", type=Path, default=HERE / "mixing_devices.json")
    a = parser.parse_args()
    try:
        record = measure(a)
    except InputError as error:
        parser.error(str(error))
    a.record.write_text(strict_json(record, indent=1) + "\n")


def measure(a: argparse.Namespace) -> dict[str, Any]:
    """All comparisons, with the settings of the command line."""
    start, system = perf_counter(), read_recipe(a.recipe).system
    if not isinstance(system, Mixing) or min(a.members, a.reference_members) < 2:
        raise InputError("the recipe must be of mixing, the members of each device at least 2")
    systems = {"cpu": system, "device": system.on(a.device)}
    members = {"cpu": a.reference_members, "device": a.members}
    generators = [numpy_generator(0, "devices", i) for i in range(len(system.patterns))]
    states = system.initial_states("test", generators)
    initial = np.stack([state.microstate for state in states])
    frames = [frame for frame in FRAMES if frame < system.frames]
    several = np.repeat(initial, a.reference_members, axis=0)
    first_steps = compare_first_steps(system, systems["device"], initial)
    energy = {name: energy_change(on, several) for name, on in systems.items()}
    ensembles = [
        run_ensembles(on, initial, members=members[name], name=name)[:, :, frames]
        for name, on in systems.items()
    ]
    return {
        "recipe": a.recipe.name,
        "kernels": {name: on.kernel for name, on in systems.items()},
        "microstates": [state.label for state in states],
        "first_steps": first_steps,
        "energy": {"steps": ENERGY_STEPS, "runs": len(several), **energy},
        "ensembles": {"members": members, "frames": frames, **compare_ensembles(*ensembles)},
        "seconds": round(perf_counter() - start, 1),
        "provenance": provenance(a.device),
    }


if __name__ == "__main__":
    main()
