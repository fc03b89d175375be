"""Four data sets of one's own, with defaults only: are the forecasts good?

    python benchmarks/own_data.py --json > results/own_data.json

or side by side, a data set and a seed in each process, whose records are then joined:

    python benchmarks/own_data.py --data kawasaki --seeds 42 --json > kawasaki-42.json
    python benchmarks/own_data.py --join *-4?.json > results/own_data.json

The data sets:

    double-well    vectors: a process in 20 dimensions that two hidden coordinates drive
    kawasaki       lattices of 64 x 64 sites, whose domains coarsen while their mean stays
    particles      particles that diffuse in a periodic box, are absorbed at a spot and are born
    blob           pictures of a blob that moves with a momentum, two frames stacked

Each is written as files, imported by `tampl import`, and learnt by TAMPL+ without any setting. The
test states of all have several trajectories, which give a noise floor. A forecast is good enough
with an RMSE below half of the better of mean trajectory and persistence, or within 1.5 floors.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from double_well import make_ensemble, make_trajectories
from numpy.typing import NDArray

import tampl
from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.lab.sources import ImportSpec, import_store
from tampl.models import resolve_device

SEEDS = (42, 43, 44)
HALF, FLOORS = 0.5, 1.5


def write_double_well(folder: Path) -> dict[str, Any]:
    """Vectors with their observable in the same files."""
    data = make_trajectories(180, seed=0)
    x, y = [data.x], [data.y]
    for state in range(40):
        same = make_ensemble(32, seed=[1, state])
        x, y = [*x, same.x], [*y, same.y]
    files = _save(folder, x=np.concatenate(x), q=np.concatenate(y))
    return {"files": files, "observables": ["{file}:q"], "interval": 0.25, "splits": _BY_FILE}


def _starts(states: NDArray[Any], members: int) -> NDArray[Any]:
    """The states of training and validation once, those of the test `members` times."""
    runs = np.ones(len(states), int)
    runs[-len(states) // 8 :] = members
    return np.repeat(states, runs, axis=0)


def _save(folder: Path, **arrays: NDArray[Any]) -> list[Path]:
    """Saves trajectories by their part: those that share an initial state are for the test."""
    count = len(arrays["x"])
    starts = [x[0].tobytes() for x in arrays["x"]]
    tests = np.array([starts.count(start) > 1 for start in starts])
    rest = np.flatnonzero(~tests)
    parts = {"train": rest[: -len(rest) // 8], "valid": rest[-len(rest) // 8 :]}
    parts["test"] = np.flatnonzero(tests)
    assert sum(map(len, parts.values())) == count
    for name, part in parts.items():
        np.savez(folder / f"{name}.npz", **{key: value[part] for key, value in arrays.items()})
    return [folder / f"{name}.npz" for name in parts]


_BY_FILE = {"files": {"train": "train*", "valid": "valid*", "test": "test*"}}


def write_kawasaki(folder: Path) -> dict[str, Any]:
    """Exchange of neighbouring spins at temperature 1.5: conserved magnetisation, domains grow."""
    size, frames, rng = 64, 21, np.random.default_rng(0)
    fraction = rng.uniform(0.3, 0.7, (96, 1, 1))
    # Patterns of several coarseness, cut such that a given fraction is up.
    noise = rng.normal(size=(96, size, size))
    k2 = sum(np.fft.fftfreq(size)[(...,) + (None,) * a] ** 2 for a in (0, 1))
    width = rng.choice([0.0, 1.0, 2.0, 4.0], (96, 1, 1))
    field = np.fft.ifft2(np.fft.fft2(noise) * np.exp(-2 * (np.pi * width) ** 2 * k2)).real
    rank = field.reshape(96, -1).argsort(axis=1).argsort(axis=1).reshape(field.shape)
    sites = _starts((rank < fraction * size**2).astype(np.int8), 16)
    path = [sites]
    for _ in range(frames - 1):
        for _ in range(12):
            sites = _exchange(sites, rng)
        path.append(sites)
    x = np.stack(path, axis=1).astype(np.uint8)
    files = _save(folder, x=x)
    observables = ["magnetisation", "ising-energy"]
    reading = {"kind": "lattice"}
    spec = {"observables": observables, "interval": 1.0, "reading": reading, "splits": _BY_FILE}
    return {"files": files, **spec}


def _exchange(sites: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    """Exchanges spins along an eighth of all bonds, none of which is next to another.

    A bond joins columns 4 k and 4 k + 1 in every second row, after a random shift and with the
    axes in random order, so that no spin is a neighbour of two bonds' exchanged spins.
    """
    turned, by = bool(rng.integers(2)), tuple(rng.integers(4, size=2))
    spins = 2 * (sites.swapaxes(1, 2) if turned else sites).astype(np.int16) - 1
    spins = np.roll(spins, by, axis=(1, 2))
    near = sum(np.roll(spins, s, a) for s in (1, -1) for a in (1, 2))
    left, right = spins[:, ::2, ::4].copy(), spins[:, ::2, 1::4].copy()
    # The spins of a bond stay neighbours, so that neither counts the other.
    change = (left - right) * ((near[:, ::2, ::4] - right) - (near[:, ::2, 1::4] - left))
    swap = rng.random(change.shape) < 1 / (1 + np.exp(change / 1.5))
    spins[:, ::2, ::4] = np.where(swap, right, left)
    spins[:, ::2, 1::4] = np.where(swap, left, right)
    spins = np.roll(spins, (-by[0], -by[1]), axis=(1, 2))
    return ((spins.swapaxes(1, 2) if turned else spins) + 1).astype(np.int8) // 2


def write_particles(folder: Path) -> dict[str, Any]:
    """Particles diffuse in a periodic box, die in its left third and divide in the right one."""
    count, frames, edge, rng = 160, 21, 9.0, np.random.default_rng(0)
    x = rng.uniform(0, edge, (count, 160, 2))
    centre = rng.uniform(0, edge, (count, 1, 2))
    crowd = rng.random((count, 160, 1)) < rng.uniform(0, 0.9, (count, 1, 1))
    x = np.where(crowd, (centre + rng.normal(0, 0.7, x.shape)) % edge, x)
    there = np.arange(160) < rng.integers(30, 81, (count, 1))
    # One array, so that the states of the test are repeated together.
    state = _starts(np.concatenate([x, there[..., None]], axis=-1), 16)
    x, there = state[..., :2], state[..., 2] > 0
    places, types = [x], [there]
    for _ in range(frames - 1):
        for _ in range(10):
            x = (x + rng.normal(0, 0.15, x.shape)) % edge
            u = rng.random(there.shape)
            there = there & ~((x[..., 0] < edge / 3) & (u < 0.015))
            born = there & (x[..., 0] > 2 * edge / 3) & (u < 0.006)
            for run, k in np.argwhere(born):
                free = np.flatnonzero(~there[run])
                if len(free):
                    x[run, free[0]], there[run, free[0]] = x[run, k], True
        places, types = [*places, x], [*types, there]
    arrays = {"x": np.stack(places, axis=1), "types": np.stack(types, axis=1).astype(np.int8)}
    reading = {"kind": "particles", "types": "{file}:types", "box": f"{edge},{edge}"}
    observables = ["particle-number", "density:x=0..0.3333"]
    spec = {"observables": observables, "interval": 1.0, "reading": reading, "splits": _BY_FILE}
    return {"files": _save(folder, **arrays), **spec}


def write_blob(folder: Path) -> dict[str, Any]:
    """A blob with friction and noise on its momentum; a picture is two frames, one on the other.

    One frame alone does not say where the blob is moving to.
    """
    count, frames, size, rng = 200, 21, 24, np.random.default_rng(0)
    place = rng.uniform(8, 16, (count, 2))
    state = _starts(np.concatenate([place, rng.normal(0, 0.5, (count, 2))], axis=-1), 16)
    r, v = state[:, :2], state[:, 2:]
    path = [r - v, r]
    for _ in range(frames - 1):
        v = 0.95 * v - 0.02 * (r - size / 2) + rng.normal(0, 0.05, v.shape)
        r = r + v
        path.append(r)
    places, pixels = np.stack(path, axis=1), np.arange(size)
    y, x = (np.exp(-((pixels - places[..., k, None]) ** 2) / 8) for k in (0, 1))
    shown = np.rint(255 * y[..., :, None] * x[..., None, :]).astype(np.uint8)
    stacked = np.concatenate([shown[:, :-1], shown[:, 1:]], axis=2)
    files = _save(folder, x=stacked, place=places[:, 1:])
    reading = {"kind": "image"}
    spec = {"observables": ["{file}:place"], "interval": 0.1, "splits": _BY_FILE}
    return {"files": files, **spec, "reading": reading}


DATA: dict[str, Callable[[Path], dict[str, Any]]] = {
    "double-well": write_double_well,
    "kawasaki": write_kawasaki,
    "particles": write_particles,
    "blob": write_blob,
}


def measure(
    name: str, seeds: Sequence[int], *, epochs: int | None, device: str = "cpu"
) -> dict[str, Any]:
    """Scores of TAMPL+ on one of the data sets, seed by seed."""
    with tempfile.TemporaryDirectory() as folder:
        spec = DATA[name](Path(folder))
        spec["files"] = [str(file) for file in spec["files"]]
        store = import_store(ImportSpec(**spec), Path(folder) / "store", progress=False)
        train, valid = store.dataset("train"), store.dataset("valid")
        test, rows = store.references("test"), []
        for seed in seeds:
            began = time.perf_counter()
            model = tampl.TamplPlus().fit(
                train, valid, epochs=epochs, seed=seed, device=device, progress=False
            )
            seconds = time.perf_counter() - began
            found = tampl.evaluate(model, test, progress=False)
            others = {key: score.rmse for key, score in found.scores.items()}
            own = {"seed": seed, "rmse": found.rmse, "mmd": found.mmd, "crps": found.crps}
            rows.append({**own, "seconds": seconds})
            print(name, rows[-1], others, file=sys.stderr)
        return {
            "microstates": store.description.microstate.in_words,
            "observables": [each.symbol for each in store.description.observables],
            "trajectories": {key: part.count for key, part in store.manifest.splits.items()},
            "members": store.manifest.splits["test"].members,
            "floor": others["floor"],
            "mean_trajectory": others["mean_trajectory"],
            "persistence": others["persistence"],
            "tampl+": rows,
        }


def judge(found: dict[str, Any]) -> dict[str, Any]:
    """What was measured on a data set, with the verdict on the mean over seeds."""
    rmse = mean(row["rmse"] for row in found["tampl+"])
    over_simple = rmse / min(found["mean_trajectory"], found["persistence"])
    over_floor = rmse / found["floor"]
    good = over_simple < HALF or over_floor < FLOORS
    verdict = {"rmse": rmse, "over_simple": over_simple, "over_floor": over_floor, "good": good}
    return {**found, **verdict}


def join(files: Sequence[Path]) -> dict[str, Any]:
    """One record of several that were made with other data sets or seeds, side by side."""
    pieces = [json.loads(file.read_text()) for file in files]
    first, found = pieces[0], dict[str, dict[str, Any]]()
    for file, piece in zip(files, pieces, strict=True):
        for key in ("epochs", "commit", "cpu", "device"):
            theirs, ours = (each.get(key, each["provenance"].get(key)) for each in (piece, first))
            if theirs != ours:
                sys.exit(f"{file} has {key} {theirs}, and {files[0]} {ours}: join equal runs")
        for name, facts in piece["data"].items():
            rows = [*found.get(name, {"tampl+": []})["tampl+"], *facts["tampl+"]]
            seeds = [row["seed"] for row in rows]
            if len(set(seeds)) < len(seeds):
                sys.exit(f"{file} has seed {seeds[-1]} of {name} once more: give each once")
            found[name] = {**facts, "tampl+": sorted(rows, key=lambda row: row["seed"])}
    words = "python benchmarks/own_data.py --data DATA --seeds SEED --json, joined by --join"
    return {
        "data": {name: judge(found[name]) for name in DATA if name in found},
        "epochs": first["epochs"],
        "provenance": {**first["provenance"], "command": words},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--data", choices=list(DATA), nargs="+", default=list(DATA))
    parser.add_argument("--epochs", type=int, help="fewer than the default, for a trial")
    parser.add_argument("--device", default="cpu", help="where to train: cpu, cuda or auto")
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE", help="join such records")
    arguments = parser.parse_args()
    if arguments.join:
        record = join(arguments.join)
    else:
        torch.set_num_threads(1)
        epochs, device = arguments.epochs, resolve_device(arguments.device)
        found = {
            name: judge(measure(name, arguments.seeds, epochs=epochs, device=device))
            for name in arguments.data
        }
        record = {"data": found, "epochs": epochs, "provenance": provenance(device)}
    print(strict_json(record, indent=1) if arguments.json or arguments.join else record)


if __name__ == "__main__":
    main()
