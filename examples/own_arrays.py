"""Arrays in files become a forecast: a particle in two wells, hidden among nine idle coordinates.

python examples/own_arrays.py
"""

import sys
from pathlib import Path

import numpy as np

import tampl
from tampl.data import Store
from tampl.lab.sources import ImportSpec, import_store

FOLDER, EPOCHS = Path([*sys.argv, "own_arrays"][1]), int([*sys.argv, 30, 30][2])
RUNS, FRAMES = 120, 31

# Your own files stand here: x.npy (trajectories, frames, size) and y.npy (trajectories, frames).
rng = np.random.default_rng(0)
x = rng.normal(size=(RUNS, FRAMES, 10))
for frame in range(1, FRAMES):
    x[:, frame] = x[:, frame - 1]
    for _ in range(10):
        drift = -4 * x[:, frame]
        drift[:, 0] = 4 * x[:, frame, 0] * (1 - x[:, frame, 0] ** 2)
        x[:, frame] += 0.02 * drift + rng.normal(size=(RUNS, 10)) * 0.1
turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
FOLDER.mkdir(exist_ok=True)
np.save(FOLDER / "x.npy", x @ turn)
np.save(FOLDER / "y.npy", x[..., 0])

# As on the command line: tampl import x.npy --observable y.npy --interval 0.2 --out store
files, y = (str(FOLDER / "x.npy"),), (str(FOLDER / "y.npy"),)
store = import_store(ImportSpec(files=files, observables=y, interval=0.2), FOLDER / "store")
model = tampl.TamplPlus().fit(*map(store.dataset, ("train", "valid")), epochs=EPOCHS)
test = Store.open(FOLDER / "store").dataset("test")
print(tampl.evaluate(model, test))
ahead = model.forecast(test.x[:, 0], y0=test.y[:, 0], horizon=FRAMES - 1)
ahead.plot(truth=test.y).savefig(FOLDER / "forecast.png", dpi=150)
