"""A trajectory of molecular dynamics: adenylate kinase, which opens; from PSF and DCD files.

    pip install 'tampl[md]' MDAnalysisTests; python examples/own_md.py

The trajectory is the one that MDAnalysis is tested with: 98 frames of a transition between two
conformations (Beckstein et al., J. Mol. Biol. 394, 160, 2009). One short trajectory is enough to
show the way, and too little to trust the forecast.
"""

import sys
from pathlib import Path

from MDAnalysisTests.datafiles import DCD, PSF

import tampl
from tampl.lab.sources import ImportSpec, Reading, SplitSpec, import_store

FOLDER, EPOCHS = Path([*sys.argv, "own_md"][1]), int([*sys.argv, 60, 60][2])

# As on the command line:
#   tampl import adk.dcd --topology adk.psf --molecule --select "name CA" --frames 6 --gap 3
#       --observable radius-of-gyration:unit=A --observable end-to-end-distance:unit=A --out store
spec = ImportSpec(
    files=(str(DCD),),
    observables=("radius-of-gyration:unit=A", "end-to-end-distance:unit=A"),
    reading=Reading(topology=PSF, select="name CA", molecule=True),
    splits=SplitSpec(frames=6, gap=3),
)
store = import_store(spec, FOLDER / "store")
model = tampl.TamplPlus().fit(store.dataset("train"), store.dataset("valid"), epochs=EPOCHS)
test = store.dataset("test")
print(tampl.evaluate(model, test))
ahead = model.forecast(test.x[:, 0], y0=test.y[:, 0], horizon=5)
ahead.plot(truth=test.y).savefig(FOLDER / "forecast.png", dpi=150)
