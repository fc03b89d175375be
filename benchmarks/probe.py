r"""Does a representation see folds? A probe of the polymer's latent states.

A chain of given extension unfolds soon or late, as it is folded. The probe predicts the logarithm
of the time until a chain unfolds from frozen features of one microstate, by kernel ridge
regression; its settings are chosen by cross-validation over training chains, and it is scored by
R^2 on initial states of other chains. Features are

    extension   the macrostate alone;
    strands     what a person might measure on the picture: the extension, how many strands cross
                each of twelve places along x, and the widths of the chain across it;
    chain       the lowest cosine modes of x along the chain, which a picture does not show: the
                order of the beads;
    a model     its latent state E(x), in uncorrelated units.

Training samples are the initial states and frames `--every` apart up to the unfolding. A chain
that does not unfold by the end of its trajectory counts as if it did in the last frame. Validation
states are those of TRUTH, a store of ensembles from initial states of another data seed, as
trials.py makes it; no test data are read. Chance sets a ceiling: several simulations of a state
say how much variance no function of the state explains, and so the R^2 of the conditional mean.

    python benchmarks/probe.py --data STORE --truth TRUTH --models A.safetensors --json
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.linalg import cho_factor, cho_solve

import tampl
from tampl.data import Dataset, References, Store
from tampl.description import Description
from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.models import MacroModel, resolve_device
from tampl.systems.extension import unfolding_time

PLACES, MODES, FOLDS = 12, 6, 5
LENGTHS, RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0), (1e-2, 1e-1, 1.0, 10.0)
"""Inverse square lengths of the kernel, per feature, and ridges, among which is chosen."""

Features = Callable[[NDArray[Any], NDArray[np.float64]], NDArray[np.float64]]
"""Features (n, k) of microstates (n, beads, 3) and their extensions (n,)."""


@dataclass(frozen=True)
class Samples:
    """Microstates and the logarithm of the time until they unfold.

    Attributes:
        x: Microstates, (n, beads, 3).
        y: Extensions, (n,).
        target: Logarithms; of several simulations of a state (n, k).
        chain: The trajectory that each is of, (n,).
    """

    x: NDArray[Any]
    y: NDArray[np.float64]
    target: NDArray[np.float64]
    chain: NDArray[np.int64]


def measure_strands(x: NDArray[Any], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Extension, strands at places along x, widths in y and z."""
    along = x[..., 0].astype(np.float64)
    low, high = np.minimum(along[:, :-1], along[:, 1:]), np.maximum(along[:, :-1], along[:, 1:])
    first, last = along.min(axis=1)[:, None], along.max(axis=1)[:, None]
    places = first + (last - first) * (np.arange(PLACES) + 0.5) / PLACES
    crossed = (low[:, None] <= places[..., None]) & (places[..., None] < high[:, None])
    return np.column_stack([y, crossed.sum(axis=-1), x[..., 1:].std(axis=1)])


def measure_modes(x: NDArray[Any], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Extension and sizes of the lowest modes of x along the chain."""
    return np.column_stack(
        [y, np.abs(dct(x[..., 0].astype(np.float64), axis=1)[:, 1 : MODES + 1])]
    )


def encode_with(model: MacroModel) -> Features:
    """The latent states of a model."""

    def encode(x: NDArray[Any], y: NDArray[np.float64]) -> NDArray[np.float64]:
        with torch.no_grad():
            state = model.start_arrays(x, y[:, None])
        return state[:, : model.spec.latent_dim].double().cpu().numpy()

    return encode


def find_stretched(y: NDArray[np.float64]) -> float:
    """The mean extension of stretched chains: those of the last frames beyond half the longest."""
    last = y[:, -max(1, y.shape[1] // 10) :]
    return float(last[last > 0.7 * last.max()].mean())


def take_samples(data: Dataset, times: NDArray[np.float64], frames: NDArray[np.int64]) -> Samples:
    """The frames of each chain before it unfolds."""
    interval = data.description.interval
    chain, frame = np.nonzero(interval * frames[None] < times[:, None])
    frame = frames[frame]
    left = np.log(times[chain] - interval * frame)
    order = np.sort(np.unique(chain))  # one trajectory at a time, which may be on disk
    x = np.concatenate([np.asarray(data.x[run])[frame[chain == run]] for run in order])
    return Samples(x, data.y[chain, frame, 0], left, chain)


def limit(times: NDArray[np.float64], description: Description) -> NDArray[np.float64]:
    """Chains that have not unfolded by the end count as if they did in the last frame."""
    return np.minimum(times, description.interval * (description.frames - 1))


def find_ceiling(target: NDArray[np.float64]) -> float:
    """R^2 of the conditional mean, from several runs of each state (n, k), without bias."""
    within = target.var(axis=1, ddof=1).mean()
    return float(1 - within / target.var())


def probe(features: Features, train: Samples, valid: Samples) -> dict[str, float]:
    """R^2 on validation states, and the settings that cross-validation chose."""
    seen, unseen = (features(each.x, each.y) for each in (train, valid))
    seen, unseen = whiten(seen, unseen)
    near, far = square_distances(seen, seen), square_distances(unseen, seen)
    fold, best = train.chain % FOLDS, (np.inf, 0.0, 0.0)
    for length in LENGTHS:
        kernel = np.exp(-length * near)
        for ridge in RIDGES:
            error = 0.0
            for k in range(FOLDS):
                inside, outside = fold != k, fold == k
                weights, mean = solve(kernel[np.ix_(inside, inside)], train.target[inside], ridge)
                found = kernel[np.ix_(outside, inside)] @ weights + mean
                error += float(((found - train.target[outside]) ** 2).sum())
            best = min(best, (error, length, ridge))
    _, length, ridge = best
    weights, mean = solve(np.exp(-length * near), train.target, ridge)
    found = np.exp(-length * far) @ weights + mean
    missed = (valid.target - found[:, None]) ** 2
    return {
        "r2": float(1 - missed.mean() / valid.target.var()),
        "features": seen.shape[1],
        "length": length,
        "ridge": ridge,
    }


def solve(
    kernel: NDArray[np.float64], target: NDArray[np.float64], ridge: float
) -> tuple[NDArray[np.float64], float]:
    """Weights of kernel ridge regression, and the mean that they are added to."""
    factor = cho_factor(kernel + ridge * np.eye(len(kernel)), check_finite=False)
    return cho_solve(factor, target - target.mean()), float(target.mean())


def whiten(
    seen: NDArray[np.float64], unseen: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both in units in which the first are uncorrelated and of one size."""
    centre, width = seen.mean(axis=0), seen.std(axis=0) + np.finfo(float).tiny
    seen, unseen = (seen - centre) / width, (unseen - centre) / width
    variances, axes = np.linalg.eigh(seen.T @ seen / len(seen))
    axes = axes / np.sqrt(np.maximum(variances, 1e-6 * variances[-1]))
    return seen @ axes, unseen @ axes


def square_distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over features, (n, m)."""
    square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.maximum(square, 0) / a.shape[1]


def measure(
    train: Dataset, truth: References, models: Mapping[str, MacroModel], *, every: int
) -> dict[str, Any]:
    """The record: the ceiling, and what each of the features explains.

    Arguments:
        train: The training set.
        truth: Ensembles from validation states.
        models: Trained models by name.
        every: Frames between training samples of a chain.
    """
    description = train.description
    stretched = find_stretched(train.y[..., 0])
    times, repeated = (
        unfolding_time(y[..., 0], stretched, interval=description.interval)
        for y in (train.y, truth.y)
    )
    frames = np.arange(0, description.frames, every)
    samples = take_samples(train, limit(times, description), frames)
    unseen = Samples(
        truth.x,
        truth.y[:, 0, 0, 0],
        np.log(limit(repeated, description)),
        np.arange(len(truth)),
    )
    kinds: dict[str, Features] = {
        "extension": lambda x, y: y[:, None],
        "strands": measure_strands,
        "chain": measure_modes,
        **{name: encode_with(model) for name, model in models.items()},
    }
    ceiling = find_ceiling(unseen.target)
    found = {name: probe(features, samples, unseen) for name, features in kinds.items()}
    return {
        "stretched": stretched,
        "never_unfold": float(np.isinf(times).mean()),
        "training_samples": len(samples.target),
        "validation_states": len(truth),
        "simulations_of_each": truth.y.shape[1],
        "ceiling": ceiling,
        "probes": {
            name: values | {"share_of_ceiling": values["r2"] / ceiling}
            for name, values in found.items()
        },
    }


def describe(record: Mapping[str, Any]) -> str:
    """A line for each of the features."""
    lines = [f"ceiling {record['ceiling']:.3f}"]
    for name, found in record["probes"].items():
        lines.append(f"{name}: R² {found['r2']:.3f}, {found['share_of_ceiling']:.0%} of it")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="store of the training set")
    parser.add_argument("--truth", type=Path, required=True, help="store of ensembles")
    parser.add_argument("--models", type=Path, nargs="*", default=[], help="trained models")
    parser.add_argument("--every", type=int, default=20, help="frames between training samples")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    arguments = parser.parse_args()
    device = resolve_device(arguments.device)
    record = measure(
        Store.open(arguments.data).dataset("train"),
        Store.open(arguments.truth).references("test"),
        {path.stem: tampl.load(path, device=device) for path in arguments.models},
        every=arguments.every,
    )
    record["provenance"] = provenance(device)
    print(strict_json(record, indent=1) if arguments.json else describe(record))


if __name__ == "__main__":
    main()
