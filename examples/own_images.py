"""Pictures in folders, with a table beside each: a blob that drifts across and grows dim.

python examples/own_images.py
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import tampl
from tampl.lab.sources import ImportSpec, import_store

FOLDER, EPOCHS = Path([*sys.argv, "own_images"][1]), int([*sys.argv, 15, 15][2])
RUNS, FRAMES, SIZE = 60, 11, 32

# Your own folders stand here: one for each trajectory, with its pictures and a CSV file.
rng, pixels = np.random.default_rng(0), np.indices((SIZE, SIZE))
for run in range(RUNS):
    folder = FOLDER / f"run{run}"
    folder.mkdir(parents=True, exist_ok=True)
    place, light, rows = rng.uniform(8, 24, 2), rng.uniform(0.6, 1.0), ["height,light"]
    for frame in range(FRAMES):
        rows.append(f"{SIZE - place[0]:.4f},{light:.4f}")
        blob = np.exp(-((pixels - place[:, None, None]) ** 2).sum(axis=0) / 8)
        Image.fromarray((255 * light * blob).astype(np.uint8)).save(folder / f"{frame}.png")
        place, light = rng.normal(np.add(place, (0.5, 0.0)), 0.2), 0.95 * light
    (folder / "y.csv").write_text("\n".join(rows))

# As on the command line: tampl import run* --observable {file}/y.csv --interval 0.1 --out store
files = tuple(str(FOLDER / f"run{run}") for run in range(RUNS))
spec = ImportSpec(files=files, observables=("{file}/y.csv",), interval=0.1, time_unit="s")
store = import_store(spec, FOLDER / "store")
model = tampl.TamplPlus().fit(store.dataset("train"), store.dataset("valid"), epochs=EPOCHS)
test = store.dataset("test")
print(tampl.evaluate(model, test))
ahead = model.forecast(test.x[:, 0], y0=test.y[:, 0], horizon=FRAMES - 1)
ahead.plot(truth=test.y).savefig(FOLDER / "forecast.png", dpi=150)
