"""Makes polymer_calibration.json: flow strength, time step and test regimes of the polymer.

    python results/polymer_calibration.py flow        stretched extension against the flow
    python results/polymer_calibration.py step        what the time step changes
    python results/polymer_calibration.py regimes     chooses the three test configurations
    python results/polymer_calibration.py references  500 runs from each of them

Each part takes some minutes on one H200 and adds its numbers to the record; `--device cpu` is for
short chains. `regimes` also writes the configurations into the package, and `references` the
extensions of all runs.

What is aimed at are facts of the published data: stretched chains have a mean extension of 246 to
247 with a standard deviation of 3.35, and three configurations unfold in the times of `FACTS`.
A configuration is looked for among snapshots of chains in flow: those of the right extension whose
own chain unfolded about the right time later. Runs with new noise from each of some twenty of
them, and more runs from the best four, tell how the times are distributed.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from polymer_unfolding import FACTS, find_snapshots, misfit, stretched, summary

from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.seeding import kernel_words, numpy_generator
from tampl.systems import Polymer
from tampl.systems.extension import extension, unfolding_time
from tampl.systems.kernels.coils import sample_coils
from tampl.systems.kernels.rods import Motion
from tampl.systems.regimes import NAMES, PATH, load_regimes, save_regimes

HERE = Path(__file__).parent
FLOWS = (1.20e-3, 1.24e-3, 1.28e-3)
STEPS, STEPS_INTERVAL = (2e-3, 1e-3, 5e-4), 20.0


def words(count: int, *address: int | str) -> NDArray[np.uint64]:
    """Random words of runs, (n, 4)."""
    return np.stack([kernel_words(0, "calibration", *address, i) for i in range(count)])


def run_kernel(
    device: str,
    rods: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    motion: Motion,
    every: int,
    frames: int,
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Extensions (n, F), NaN after a chain stopped, and how well the rods were kept."""
    if device == "cuda":
        from tampl.systems.kernels_cuda.rods import run_chains
    else:
        from tampl.systems.kernels.rods import run_chains
    out = np.empty((len(rods), frames, rods.shape[1] + 1, 3), np.float32)
    rods, start = rods.copy(), perf_counter()
    counts = run_chains(rods, seeds, motion, every, out)
    seconds = perf_counter() - start
    kept = {
        "chain_steps": int(counts.done.sum()),
        "million_chain_steps_per_second": counts.done.sum() / seconds / 1e6,
        "failed_chains": int((counts.done < every * (frames - 1)).sum()),
        "refused_steps": int(counts.refused.sum()),
        "rod_error": float(np.abs(np.linalg.norm(rods, axis=-1) - 1).max()),
    }
    return extension(out), kept


def zigzag(count: int, beads: int) -> NDArray[np.float64]:
    """Rods of chains stretched to about the stationary extension, (n, B - 1, 3)."""
    rods = np.zeros((count, beads - 1, 3))
    rods[..., 0] = 0.82
    rods[..., 1] = np.sqrt(1 - 0.82**2) * (-1.0) ** np.arange(beads - 1)
    return rods


def calibrate_flow(a: argparse.Namespace) -> dict[str, Any]:
    """Stationary extension of stretched chains against the flow."""
    system, found = Polymer(), {}
    every, settled = round(system.interval / system.dt), 50
    for flow in FLOWS:
        seeds, motion = words(a.chains, "flow", repr(flow)), Motion(flow, system.dt)
        rods = zigzag(a.chains, system.beads)
        x, kept = run_kernel(a.device, rods, seeds, motion, every, 4 * settled + 1)
        means = x[:, settled:].mean(axis=1)
        found[repr(flow)] = {
            "mean": float(means.mean()),
            "error": float(means.std() / np.sqrt(len(means))),
            "std": float(x[:, settled:].std()),
            **kept,
        }
    times = [settled * system.interval, 4 * settled * system.interval]
    return {"stretched": found, "chains": a.chains, "times": times}


def calibrate_step(a: argparse.Namespace) -> dict[str, Any]:
    """How coils unfold with several time steps, with other noise each."""
    system, found = Polymer(), {}
    rods = sample_coils(words(a.chains, "step", "coils"), system.beads)
    frames = round(a.units / STEPS_INTERVAL) + 1
    for dt in STEPS:
        seeds, motion = words(a.chains, "step", repr(dt)), Motion(system.flow, dt)
        every = round(STEPS_INTERVAL / dt)
        x, kept = run_kernel(a.device, rods, seeds, motion, every, frames)
        mean, std = stretched(x, system.beads, last=50)
        times = unfolding_time(x, mean, interval=STEPS_INTERVAL)
        found[repr(dt)] = {
            "stretched_mean": mean,
            "stretched_std": std,
            "unfolded": {
                t: float((times <= t).mean()) for t in (2000, 3000, 4000, 6000) if t <= a.units
            },
            **kept,
        }
    return {"steps": found, "chains": a.chains, "horizon": a.units}


def choose_regimes(a: argparse.Namespace) -> dict[str, Any]:
    """Follows coils, takes snapshots, and runs those again until one is left of each regime."""
    # Without them, since the file of regimes is what is made here.
    system = Polymer().model_copy(update={"regimes": False}).on(a.device)
    generators = [numpy_generator(0, "calibration", i) for i in range(a.chains)]
    states = system.initial_states("train", generators)
    coils = np.stack([state.microstate for state in states])
    runs = system.simulate(coils, words(a.chains, "regimes", "coils"))
    x = runs.macrostates[..., 0]
    mean, std = stretched(x, system.beads, last=200)
    times = unfolding_time(x, mean, interval=system.interval)
    rounds = ((a.chains // 24, 8), (4, a.chains // 12))
    chosen: dict[str, list[NDArray[np.float32]]] = {}
    for name, regime in FACTS.items():
        places = find_snapshots(x, regime, full=mean, interval=system.interval, count=rounds[0][0])
        if not places:
            raise SystemExit(f"no snapshot is like {name}: follow more chains by --chains")
        chosen[name] = [runs.microstates[place].copy() for place in places]
    del runs
    spread: dict[str, Any] = {}
    for number, (count, members) in enumerate(rounds):
        ranked = _rank(system, chosen, mean, count=count, members=members, number=number)
        chosen = {name: [chain for _, chain, _ in rows] for name, rows in ranked.items()}
        spread = {
            name: summary(rows[0][2], mean, interval=system.interval)
            for name, rows in ranked.items()
        }
    save_regimes({name: chosen[name][0] for name in NAMES}, a.regimes)
    return {
        "coils": {
            "chains": a.chains,
            "initial_mean": float(x[:, 0].mean()),
            "initial_std": float(x[:, 0].std()),
            "mean": float(x.mean()),
            "std": float(x.std()),
            "stretched_mean": mean,
            "stretched_std": std,
            "unfolded": {t: float((times <= t).mean()) for t in (2000, 3000, 4000, 6000, 10_000)},
        },
        "chosen": spread,
    }


def _rank(
    system: Polymer,
    chains: dict[str, list[NDArray[np.float32]]],
    full: float,
    *,
    count: int,
    members: int,
    number: int,
) -> dict[str, list[tuple[float, NDArray[np.float32], NDArray[np.float64]]]]:
    """Misfit, chain and extensions of the candidates of each regime, best first; one launch."""
    flat = [(name, chain) for name in NAMES for chain in chains[name][:count]]
    starts = np.repeat(np.stack([chain for _, chain in flat]), members, axis=0)
    seeds = words(len(starts), "regimes", number)
    x = system.simulate(starts, seeds).macrostates[..., 0].reshape(len(flat), members, -1)
    ranked: dict[str, list[Any]] = {name: [] for name in NAMES}
    for (name, chain), extensions in zip(flat, x, strict=True):
        times = unfolding_time(extensions, full, interval=system.interval)
        ranked[name].append((misfit(times, FACTS[name]), chain, extensions))
    return {name: sorted(rows, key=lambda row: row[0]) for name, rows in ranked.items()}


def run_references(a: argparse.Namespace) -> dict[str, Any]:
    """The test split of `recipes/polymer.toml`: its extensions, and what they say of the facts."""
    system, chains = Polymer().on(a.device), load_regimes(a.regimes)
    address = (0, "polymer", "test")
    found, kept = {}, []
    for i, name in enumerate(NAMES):
        seeds = np.stack([kernel_words(*address, i, "member", k) for k in range(a.members)])
        x = system.ensemble(chains[name][None], seeds[None])[0, :, :, 0]
        mean, std = stretched(x, system.beads, last=200)
        times = summary(x, mean, interval=system.interval)
        found[name] = {
            **times,
            "mode_over_fact": times["mode"] / FACTS[name].mode,
            "stretched_mean": mean,
            "stretched_std": std,
        }
        kept.append(x)
    # To a hundredth of a rod, in two bytes: the noise of one frame is a hundred times that.
    hundredths = np.round(100 * np.stack(kept)).astype(np.uint16)
    np.savez_compressed(a.references, extension_hundredths=hundredths, regimes=np.array(NAMES))
    return found


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "flow": calibrate_flow,
    "step": calibrate_step,
    "regimes": choose_regimes,
    "references": run_references,
}


def main() -> None:
    """Runs one part and adds it to the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--chains", type=int, default=528, help="chains followed at a time")
    parser.add_argument("--units", type=int, default=6000, help="time for which `step` follows")
    parser.add_argument("--members", type=int, default=500, help="runs from each configuration")
    parser.add_argument("--record", type=Path, default=HERE / "polymer_calibration.json")
    parser.add_argument("--regimes", type=Path, default=PATH, help="file of the configurations")
    parser.add_argument("--references", type=Path, default=HERE / "polymer_references.npz")
    a = parser.parse_args()
    start = perf_counter()
    part = PARTS[a.part](a)
    seconds = round(perf_counter() - start, 1)
    record = json.loads(a.record.read_text()) if a.record.is_file() else {}
    source = provenance(a.device)
    record |= {a.part: {**part, "seconds": seconds, "provenance": source}, "provenance": source}
    a.record.write_text(strict_json(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
