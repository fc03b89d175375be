"""How far must an encoder of lattices see? Encoders taught the future itself, by their depth.

TAMPL learns its latent state by losses of one step or of a few. What it could know at best, an
encoder of the same shape shows that is taught nothing but the future: the macrostate some frames
ahead, from the first frames of training trajectories, whose lattices are moved, mirrored and
transposed at random. It is scored against the mean of ensembles from initial states of another
data seed; no test data are read. After k convolutions of stride two a site has seen 2^(k + 1) - 1
sites across, and the mean over sites tells nothing of what lies further apart.

    python benchmarks/reach.py recipes/sirs.toml --data STORE --truth TRUTH \
        --widths 32,64,128,128 32,64,128,128,128,128 --json
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tampl.data import Dataset, References, Store
from tampl.errors import InputError
from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.microstates import Lattice
from tampl.models.encoders import LatticeEncoderSpec
from tampl.nn import MLP
from tampl.seeding import ambient_seed, torch_generator

RATE, FINAL, CLIP = 2e-3, 0.01, 1.0


def main() -> None:
    """Prints one record, or a line for each encoder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="store to train on")
    parser.add_argument("--truth", type=Path, required=True, help="store of ensembles")
    parser.add_argument("--widths", nargs="+", required=True, help="channels of each encoder")
    parser.add_argument("--ahead", type=int, nargs="+", default=[4, 8, 15, 20], help="frames")
    parser.add_argument("--first", type=int, default=4, help="frames of a trajectory to start at")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    recipe, train = read_recipe(arguments.recipe), Store.open(arguments.data).dataset("train")
    truth = Store.open(arguments.truth).references("test")
    if not isinstance(train.description.microstate, Lattice):
        raise InputError("this benchmark is of lattices; choose a recipe of sirs")
    rows = []
    for text in arguments.widths:
        widths = tuple(map(int, text.split(",")))
        row = measure(recipe, train, truth, widths, arguments)
        rows.append(row)
        if not arguments.json:
            print(row, flush=True)
    if arguments.json:
        known = {key: getattr(arguments, key) for key in ("ahead", "first", "epochs")}
        sizes = {"states": len(truth.x), "members": truth.y.shape[1]}
        found = {**known, **sizes, "noise": noise(train, truth, arguments.ahead), "encoders": rows}
        print(strict_json({**found, "provenance": provenance("cpu")}, indent=1))


def measure(
    recipe: Recipe,
    train: Dataset,
    truth: References,
    widths: Sequence[int],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Trains an encoder; its squared errors by frames ahead, in standardised units."""
    generator, began = torch_generator(0, "reach"), time.perf_counter()
    ahead, kind = arguments.ahead, train.description.microstate
    assert isinstance(kind, Lattice)
    assert isinstance(recipe.model.encoder, LatticeEncoderSpec)
    spec = recipe.model.encoder.model_copy(update={"widths": tuple(widths)})
    observables = train.y.shape[-1]
    with ambient_seed(0, "weights"):
        encoder = spec.build(kind, recipe.model.latent_dim)
        head = MLP(recipe.model.latent_dim, len(ahead) * observables, hidden=[128])
    network = nn.Sequential(encoder, head)
    y, unit = torch.as_tensor(standardised(train, train.y)).float(), arguments.batch_size
    starts = len(train.x) * arguments.first
    steps = arguments.epochs * starts // unit
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, RATE * FINAL)
    for _ in range(steps):
        chosen = torch.randint(starts, (unit,), generator=generator)
        run, frame = chosen // arguments.first, chosen % arguments.first
        x = kind.network_input(torch.as_tensor(train.x[run, frame]), torch.float32)
        told = network(move(x, generator)).unflatten(-1, (len(ahead), observables))
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
        "widths": list(widths),
        "sites_across": 2 ** (len(widths) + 1) - 1,
        "squared_errors": errors,
        "seconds": time.perf_counter() - began,
    }


def move(x: Tensor, generator: torch.Generator) -> Tensor:
    """Lattices (B, C, L, L) shifted, mirrored and transposed alike, at random."""
    side = x.shape[-1]
    shifts = torch.randint(side, (2,), generator=generator).tolist()
    mirrored, transposed = torch.randint(2, (2,), generator=generator).tolist()
    x = torch.roll(x, shifts, dims=(-2, -1))
    x = x.flip(-1) if mirrored else x
    return x.transpose(-2, -1) if transposed else x


def standardised(train: Dataset, y: np.ndarray) -> np.ndarray:
    """Macrostates in the units of the training set."""
    unit = train.statistics.y
    return (y - unit.mean) / unit.std


def noise(train: Dataset, truth: References, ahead: Sequence[int]) -> list[float]:
    """What the ensembles' own noise adds to a squared error of their mean."""
    spread = standardised(train, truth.y).var(axis=1, ddof=1).mean(axis=(0, -1))
    return [float(spread[k] / truth.y.shape[1]) for k in ahead]


if __name__ == "__main__":
    main()
