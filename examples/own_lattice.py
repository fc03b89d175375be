"""Lattices with observables of the library: domains of an Ising model that grow after a quench.

python examples/own_lattice.py
"""

import sys
from pathlib import Path

import numpy as np

import tampl
from tampl.lab.sources import ImportSpec, import_store

FOLDER, EPOCHS = Path([*sys.argv, "own_lattice"][1]), int([*sys.argv, 15, 15][2])
RUNS, FRAMES, SIZE = 60, 21, 16
# Your own files stand here, one for each trajectory: whole numbers (frames, height, width).
rng = np.random.default_rng(0)
spins = rng.random((RUNS, SIZE, SIZE)) < rng.uniform(0.3, 0.7, (RUNS, 1, 1))
black = np.indices((SIZE, SIZE)).sum(axis=0) % 2 == 0
path = [spins]
for _ in range(FRAMES - 1):
    for half in (black, ~black):  # a heat bath of temperature 2 on every other site
        field = sum(np.roll(spins, s, axis) * 2.0 - 1 for s in (1, -1) for axis in (1, 2))
        drawn = rng.random(spins.shape) < 1 / (1 + np.exp(-field))
        spins = np.where(half & (rng.random(spins.shape) < 0.3), drawn, spins)
    path.append(spins)
FOLDER.mkdir(exist_ok=True)
files = [str(FOLDER / f"run{k}.npy") for k in range(RUNS)]
for k, file in enumerate(files):
    np.save(file, np.stack(path, axis=1)[k].astype(np.uint8))

# tampl import run*.npy --kind lattice --observable ising-energy ... --interval 1 --out store
spec = {"files": files, "observables": ("magnetisation", "ising-energy"), "interval": 1.0}
store = import_store(ImportSpec(**spec, reading={"kind": "lattice"}), FOLDER / "store")
model = tampl.TamplPlus().fit(store.dataset("train"), store.dataset("valid"), epochs=EPOCHS)
test = store.dataset("test")
print(tampl.evaluate(model, test))
ahead = model.forecast(test.x[:, 0], y0=test.y[:, 0], horizon=FRAMES - 1)
ahead.plot(truth=test.y).savefig(FOLDER / "forecast.png", dpi=150)
