"""Training from a store that does not fit into memory: how much memory, and at which speed?

Files of synthetic lattices are imported into a store, which is opened without memory for
microstates and trained from by TAMPL with a small encoder, which asks more of the disk than a
large one. Epochs alternate, all of the same number of pairs, so that the ratio does not depend on
the machine's speed:

    random      random windows of the whole store, from disk
    blocks      some trajectories of the store in the order of blocks, from disk
    in_memory   the same trajectories in memory

The system's cache of the files is dropped before each epoch. The first epoch of each is left out.
Files and store, each of the given size, are deleted afterwards.

    python benchmarks/streaming.py --gigabytes 20 --json
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from tampl.data import Dataset, Store
from tampl.lab.cli.entry import keep_freed_memory
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.lab.sources import ImportSpec, import_store
from tampl.lab.sources.splits import SplitSpec
from tampl.lab.sources.tracks import Reading
from tampl.methods import Tampl
from tampl.methods.base import make_trainer
from tampl.models.encoders import LatticeEncoderSpec
from tampl.training import Trainer

RECIPE = Path(__file__).parent.parent / "recipes" / "sirs.toml"
WIDTHS = (4, 8, 8)
"""Of the encoder."""

FILE = 2**25
"""Bytes of microstates in a file."""

WINDOW = 11
"""Frames in a window: a part of the windows then needs about as many frames as pairs."""


def write_files(recipe: Recipe, folder: Path, gigabytes: float) -> None:
    """Writes files of random lattices: their bytes matter here, not their physics."""
    kind, frames = recipe.system.description.microstate, recipe.system.description.frames
    each = frames * int(np.prod(kind.shape))
    many = max(1, FILE // each)
    x = np.random.default_rng(7).integers(0, 3, (many, frames, *kind.shape), dtype=np.uint8)
    y = recipe.system.observe(x)
    counts = {"train": max(4, round(gigabytes * 1e9 / each)), "valid": 1, "test": 2}
    parts = [(name, min(many, n - k)) for name, n in counts.items() for k in range(0, n, many)]
    for number, (name, count) in enumerate(parts):
        # Moved lattices have other bytes and the same macrostates.
        moved = np.roll(x[:count], divmod(number, kind.shape[-1]), axis=(-2, -1))
        np.savez(folder / f"{name}-{number:06}.npz", x=moved, y=y[:count])


def import_files(folder: Path, store: Path) -> Store:
    """What `tampl import` makes of the files."""
    splits = SplitSpec(files={name: f"{name}*" for name in ("train", "valid", "test")})
    files = tuple(str(file) for file in sorted(folder.glob("*.npz")))
    reading = Reading(kind="lattice")
    spec = ImportSpec(
        files=files, observables=("{file}:y",), interval=0.5, reading=reading, splits=splits
    )
    return import_store(spec, store, progress=False)


def measure(
    store: Store, recipe: Recipe, share: float, epochs: int
) -> Iterator[tuple[str, object]]:
    start = time.perf_counter()
    lazy = store.dataset("train", memory=0)
    yield "open_seconds", time.perf_counter() - start
    inside = max(2, round(share * len(lazy)))
    held = Dataset.described(
        lazy.description, np.asarray(lazy.x[:inside]), lazy.y[:inside], lazy.labels[:inside]
    )
    part = lazy.select(np.arange(inside))
    trainers = {
        "random": make(recipe, lazy, order="random", fraction=inside / len(lazy)),
        "blocks": make(recipe, part, order="blocks", fraction=1.0),
        "in_memory": make(recipe, held, order="random", fraction=1.0),
    }
    rates: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(1 + epochs):
        for name, trainer in trainers.items():
            drop_cache(store)
            selections = trainer._selections(trainer.epoch)
            seconds = sum(trainer.run_epoch().seconds.values())
            rates[name].append(sum(len(each.pairs) for each in selections) / seconds)
    for name in ("random", "blocks"):
        pairs = zip(rates[name][1:], rates["in_memory"][1:], strict=True)
        yield f"ratio_{name}", median(a / b for a, b in pairs)
    for name, values in rates.items():
        yield f"pairs_per_second_{name}", median(values[1:])
    yield (
        "pairs_in_an_epoch",
        sum(len(each.pairs) for each in trainers["in_memory"]._selections(0)),
    )
    yield "bytes_in_memory", held.x.nbytes
    yield "bytes_on_disk", lazy.x.nbytes


def make(recipe: Recipe, data: Dataset, *, order: str, fraction: float) -> Trainer:
    training = type(recipe.training).model_validate(
        {
            **recipe.training.model_dump(),
            "window": WINDOW,
            "order": order,
            "fraction": fraction,
            "symmetries": (),
        }
    )
    encoder = LatticeEncoderSpec(name="lattice", widths=WIDTHS, hidden=(32,))
    architecture = recipe.model.model_copy(update={"encoder": encoder})
    return make_trainer(Tampl(), data, architecture=architecture, training=training)


def drop_cache(store: Store) -> None:
    """Asks the system to forget what it holds of the shards in memory."""
    for shard in store.manifest.shards:
        with (store.path / shard.file).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def forget_peak() -> None:
    """Lets the peak of the memory begin anew, as the making of the files does not count."""
    Path("/proc/self/clear_refs").write_text("5")


def read_peak() -> int:
    """The most memory that this process had, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--share", type=float, default=0.01, help="seen by an epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the store is written for a while")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    keep_freed_memory()
    recipe = read_recipe(options.recipe)
    with TemporaryDirectory(dir=options.folder) as folder:
        (files := Path(folder) / "files").mkdir()
        write_files(recipe, files, options.gigabytes)
        forget_peak()
        start = time.perf_counter()
        store = import_files(files, Path(folder) / "store")
        record: dict[str, object] = {
            "import_seconds": time.perf_counter() - start,
            "import_peak_bytes": read_peak(),
        }
        shutil.rmtree(files)
        record |= dict(measure(store, recipe, options.share, options.epochs))
    record |= {"peak_bytes": (peak := read_peak()), "provenance": provenance("cpu")}
    if options.json:
        print(json.dumps(record, indent=1))
    else:
        print(
            f"{record['bytes_on_disk'] / 1e9:.1f} GB on disk, {peak / 1e9:.2f} GB of memory, "
            f"{record['ratio_random']:.2f} of the speed in memory at random, "
            f"{record['ratio_blocks']:.2f} in blocks"
        )


if __name__ == "__main__":
    main()
