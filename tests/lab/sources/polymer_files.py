"""Parquet files in the layout of the published polymer data, of a few short chains."""

import numpy as np
import pyarrow
from pyarrow import parquet

from tampl.seeding import kernel_words, numpy_generator
from tampl.systems import Polymer

SYSTEM = Polymer(
    beads=6, flow=0.3, dt=1e-3, interval=0.05, frames=4, height=8, width=8, regimes=False
)
ROWS = {"train": 5, "valid": 2, "test_fast": 3, "test_medium": 3, "test_slow": 3}


def trajectories(split, count, *, system=SYSTEM):
    """Coordinates (n, F, B, 3); those of a test split start from one configuration."""
    same = split.startswith("test")
    generators = [numpy_generator(0, split, 0 if same else i) for i in range(count)]
    x = np.stack([system.initial(g).microstate for g in generators])
    words = np.stack([kernel_words(0, split, i) for i in range(count)])
    return system.simulate(x, words).microstates


def write_rows(path, x, *, drop=(), t=None, dtype="float64"):
    """Writes trajectories (n, F, B, 3) as rows with the columns `t`, `x` and `args`."""
    matrix = pyarrow.list_(pyarrow.list_(pyarrow.type_for_alias(dtype)))
    n, frames = x.shape[:2]
    times = np.linspace(0, 0.5005, frames) if t is None else t
    columns = {
        "t": [times[:, None].tolist()] * n,
        "x": pyarrow.array(x.reshape(n, frames, -1).astype(dtype).tolist(), matrix),
        "args": [np.ones((frames, 1)).tolist()] * n,
    }
    kept = {name: value for name, value in columns.items() if name not in drop}
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(kept), path)


def write_data_set(folder, *, converted=False, dtype="float64"):
    """Writes all splits, the training split in two files, and returns their coordinates."""
    data = {split: trajectories(split, count) for split, count in ROWS.items()}
    for split, x in data.items():
        parts = np.array_split(x, 2) if split == "train" else [x]
        for k, part in enumerate(parts):
            plain = f"data/{split}-{k:05d}-of-{len(parts):05d}.parquet"
            name = f"default/{split}/{k:04d}.parquet" if converted else plain
            write_rows(folder / name, part, dtype=dtype)
    return data
