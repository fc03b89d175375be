"""How far must an encoder of lattices see? Encoders taught the future itself, by their depth.

TAMPL learns its latent state by losses of one step or of a few. What it could know at best, an
encoder of the same shape shows that is taught nothing but the future: the macrostate some frames
ahead, from the first frames of training trajectories, moved by the symmetries of the lattice at
random. It is scored against the mean of ensembles from initial states of another
data seed; no test data are read. After k convolutions of stride two a site has seen 2^(k + 1) - 1
sites across, and the mean over sites tells nothing of what lies further apart.

    python benchmarks/reach.py recipes/sirs.toml --data STORE --truth TRUTH \
        --widths 32,64,128,128 32,64,128,128,128,128 --json
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tampl.data import Dataset, References, Store
from tampl.errors import InputError
from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.microstates import Lattice
from tampl.nn import MLP
from tampl.seeding import ambient_seed, torch_generator

RATE, FINAL, CLIP = 2e-3, 0.01, 1.0


@dataclass(frozen=True)
class Plan:
    """What every encoder is taught.

    Attributes:
        ahead: Frames from a microstate to the macrostates that are to be told.
        first: How many first frames of a trajectory microstates are taken from.
        epochs: How often a training goes over them.
        batch_size: Microstates in a batch.
    """

    ahead: tuple[int, ...] = (4, 8, 15, 20)
    first: int = 4
    epochs: int = 16
    batch_size: int = 64


def main() -> None:
    """Prints one record, or a line for each encoder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="store to train on")
    parser.add_argument("--truth", type=Path, required=True, help="store of ensembles")
    parser.add_argument("--widths", nargs="+", required=True, help="channels of each encoder")
    parser.add_argument("--ahead", type=int, nargs="+", default=Plan.ahead)
    parser.add_argument("--first", type=int, default=Plan.first)
    parser.add_argument("--epochs", type=int, default=Plan.epochs)
    parser.add_argument("--batch-size", type=int, default=Plan.batch_size)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    recipe, train = read_recipe(arguments.recipe), Store.open(arguments.data).dataset("train")
    truth = Store.open(arguments.truth).references("test")
    if not isinstance(train.description.microstate, Lattice):
        raise InputError("this benchmark is of lattices; choose a recipe of sirs")
    ahead, first = tuple(arguments.ahead), arguments.first
    plan = Plan(ahead, first, arguments.epochs, arguments.batch_size)
    rows = []
    for text in arguments.widths:
        rows.append(measure(recipe, train, truth, tuple(map(int, text.split(","))), plan))
        if not arguments.json:
            print(rows[-1], flush=True)
    if arguments.json:
        sizes = {"states": len(truth.x), "members": truth.y.shape[1]}
        noise = describe_noise(train, truth, plan.ahead)
        found = {**asdict(plan), **sizes, "noise": noise, "encoders": rows}
        print(strict_json({**found, "provenance": provenance("cpu")}, indent=1))


def measure(
    recipe: Recipe,
    train: Dataset,
    truth: References,
    widths: tuple[int, ...],
    plan: Plan,
) -> dict[str, Any]:
    """Trains an encoder; its squared errors by frames ahead, in standardised units."""
    generator, began = torch_generator(0, "reach"), time.perf_counter()
    ahead, kind = plan.ahead, train.description.microstate
    spec = recipe.model.encoder.model_copy(update={"widths": widths})
    observables = train.y.shape[-1]
    with ambient_seed(0, "weights"):
        encoder = spec.build(kind, recipe.model.latent_dim)
        head = MLP(recipe.model.latent_dim, len(ahead) * observables, hidden=[128])
    network = nn.Sequential(encoder, head)
    y = torch.as_tensor(standardised(train, train.y)).float()
    starts = len(train.x) * plan.first
    steps = plan.epochs * starts // plan.batch_size
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, RATE * FINAL)
    for _ in range(steps):
        chosen = torch.randint(starts, (plan.batch_size,), generator=generator)
        run, frame = chosen // plan.first, chosen % plan.first
        stored = torch.as_tensor(train.x[run, frame])[:, None]
        moved = kind.transformed(stored, kind.symmetries, generator).squeeze(1)
        told = network(kind.network_input(moved, torch.float32)).unflatten(
            -1, (len(ahead), observables)
        )
        later = torch.stack([y[run, frame + k] for k in ahead], dim=1)
        optimiser.zero_grad()
        (told - later).square().mean().backward()
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimiser.step()
        schedule.step()
    mean = standardised(train, truth.y.mean(axis=1))
    with torch.no_grad():
        x = kind.network_input(torch.as_tensor(truth.x), torch.float32)
        told = network(x).unflatten(-1, (len(ahead), observables)).numpy()
    errors = [float(((told[:, j] - mean[:, k]) ** 2).mean()) for j, k in enumerate(ahead)]
    return {
        "widths": widths,
        "sites_across": 2 ** (len(widths) + 1) - 1,
        "squared_errors": errors,
        "seconds": time.perf_counter() - began,
    }


def standardised(train: Dataset, y: np.ndarray) -> np.ndarray:
    """Macrostates in the units of the training set."""
    unit = train.statistics.y
    return (y - unit.mean) / unit.std


def describe_noise(train: Dataset, truth: References, ahead: Sequence[int]) -> list[float]:
    """What the ensembles' own noise adds to a squared error of their mean."""
    spread = standardised(train, truth.y).var(axis=1, ddof=1).mean(axis=(0, -1))
    return [float(spread[k] / truth.y.shape[1]) for k in ahead]


if __name__ == "__main__":
    main()
