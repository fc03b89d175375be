"""Do the units of a vector matter? Scores on a double well whose coordinates are scaled.

    python benchmarks/vector_units.py --json > results/vector_units.json

A model standardises vectors with the statistics of its training set. A factor of 1024 is exact in
floating point, so that the scores must be the same; a factor of 1000 rounds differently, so that
they must agree within the scatter of training seeds.
"""

import argparse
import sys
from statistics import stdev

import torch
from double_well import make_references, make_trajectories

import tampl
from tampl.files import strict_json
from tampl.lab.provenance import provenance

METHODS = {"tampl": tampl.Tampl(), "tampl+": tampl.TamplPlus()}
FACTORS = (1.0, 1024.0, 1 / 1024, 1000.0, 1 / 1000)
SEEDS = (42, 43, 44)
TRAIN, VALID, TEST, MEMBERS = 160, 20, 40, 32


def measure(method: tampl.Tampl | tampl.TamplPlus, factor: float, seed: int) -> dict[str, float]:
    """RMSE and squared MMD of a method on data in other units."""
    data = make_trajectories(TRAIN + VALID, seed=0, scale=factor)
    train, valid = data.split(TRAIN / len(data), VALID / len(data), seed=0)
    test = make_references(data.description, TEST, MEMBERS, seed=0, scale=factor)
    model = method.fit(train, valid, seed=seed, device="cpu", progress=False)
    found = tampl.evaluate(model, test, progress=False)
    return {"rmse": found.rmse, "mmd": found.mmd, "floor": found.floor.rmse}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    record: dict[str, object] = {"data": "double well in 20 dimensions", "trajectories": TRAIN}
    for name, method in METHODS.items():
        scores = {}
        for factor in FACTORS:
            scores[f"{factor:g}"] = [measure(method, factor, seed) for seed in arguments.seeds]
            print(name, f"{factor:g}", scores[f"{factor:g}"], file=sys.stderr)
        plain, exact, rounded = (
            [[score["rmse"] for score in scores[f"{factor:g}"]] for factor in factors]
            for factors in (FACTORS[:1], FACTORS[1:3], FACTORS[3:])
        )
        record[name] = {
            "scores": scores,
            "largest_change_exact": _largest_change(plain[0], exact),
            "largest_change_rounded": _largest_change(plain[0], rounded),
            "scatter_of_seeds": stdev(plain[0]) if len(plain[0]) > 1 else None,
        }
    record["provenance"] = provenance("cpu")
    print(strict_json(record, indent=1) if arguments.json else record)


def _largest_change(plain: list[float], others: list[list[float]]) -> float:
    return max(abs(a - b) for row in others for a, b in zip(plain, row, strict=True))


if __name__ == "__main__":
    main()
