"""What a conserved sum did to TAMPL+: models whose units gave it a coordinate, and without it.

The fractions of an SIRS epidemic add up to one. The units of a refitted law once gave this sum a
coordinate, which is zero in all data. Nothing held the map of a model back there: with one seed of
three it ran along it. Each model forecasts ensembles from initial states of another data seed, by
its map and by the flow that the map is fitted to; then again with the coordinate taken away.

    python results/conserved.py MODEL.safetensors ... --truth TRUTH > results/conserved-sirs.json
"""

import argparse
import copy
import json
from collections.abc import Iterator
from pathlib import Path

import tampl
from tampl.data import References, Store
from tampl.evaluation import score
from tampl.lab.provenance import provenance

STILL = 1e-3
"""A coordinate that varies less, in units of one, between encoded states does not vary."""


def main() -> None:
    """Prints the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--truth", type=Path, required=True, help="store of ensembles")
    arguments = parser.parse_args()
    truth = Store.open(arguments.truth).references("test")
    models = {path.stem: dict(describe(path, truth)) for path in arguments.models}
    sizes = {"states": len(truth.x), "members": truth.y.shape[1]}
    print(json.dumps({**sizes, "models": models, "provenance": provenance("cpu")}, indent=1))


def describe(path: Path, truth: References) -> Iterator[tuple[str, dict[str, float]]]:
    """RMSE of a model by map and by flow, inside limits and envelope and without."""
    model = tampl.load(path)
    yield "as trained, map", measure(model, truth)
    flow = copy.deepcopy(model)
    flow.transition.map = None
    yield "as trained, flow", measure(flow, truth)
    state = model.transition.state(model.start_arrays(truth.x, truth.y[:, 0, 0]))
    fixed = state.std(dim=0) < STILL
    for units in (model.transition.state, model.transition.increment):
        units.axes[:, fixed] = 0
        units.back[fixed] = 0
    yield "without the coordinate, map", measure(model, truth)


def measure(model: tampl.MacroModel, truth: References) -> dict[str, float]:
    """The RMSE of forecasts."""
    found = {}
    for name, limits in (("bounded", True), ("plain", False)):
        ahead = model.forecast(
            truth.x,
            truth.y[:, 0, 0],
            horizon=truth.y.shape[2] - 1,
            members=truth.y.shape[1],
            limits=limits,
            progress=False,
        )
        found[name] = score(ahead.samples, truth.y, model.normalization).rmse
    return found


if __name__ == "__main__":
    main()
