"""What does the latent cache save? A cached TAMPL epoch over a literal Algorithm 1 epoch.

Both train the recipe's own networks on the same frames of the paper's lattice, in turns within one
run, so that the ratio does not depend on the machine's speed. The first epoch of each is left out:
it warms up, and the cached one encodes everything once more there.

    python benchmarks/latent_cache.py --json
"""

import argparse
import json
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tampl.data import generate
from tampl.lab.cli.entry import keep_freed_memory
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.methods import LiteralTampl, Tampl
from tampl.methods.base import make_trainer

RECIPE = Path(__file__).parent.parent / "recipes" / "sirs.toml"


def measure(recipe: Recipe, trajectories: int, epochs: int, device: str) -> dict[str, object]:
    plan = recipe.data.model_copy(
        update={"train": trajectories, "valid": 1, "test": 2, "members": 2}
    )
    with TemporaryDirectory() as folder:
        store = generate(recipe.system, plan, Path(folder) / "store", progress=False)
        train = store.dataset("train", verify=True)
        trainers = {
            name: make_trainer(
                method,
                train,
                architecture=recipe.model,
                training=recipe.training,
                device=device,
            )
            for name, method in {"cached": Tampl(), "literal": LiteralTampl()}.items()
        }
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(1 + epochs):
        for name, trainer in trainers.items():
            seconds[name].append(sum(trainer.run_epoch().seconds.values()))
    cached, literal = (seconds[name][1:] for name in ("cached", "literal"))
    return {
        "ratio": median(c / l for c, l in zip(cached, literal, strict=True)),
        "cached_seconds": median(cached),
        "literal_seconds": median(literal),
        "frames": trajectories * recipe.system.description.frames,
        "epochs": epochs,
        "provenance": provenance(device),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--trajectories", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=4, help="epochs timed of each kind")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    options = parser.parse_args()
    keep_freed_memory()  # as the command line does
    recipe = read_recipe(options.recipe)
    record = measure(recipe, options.trajectories, options.epochs, options.device)
    if options.json:
        print(json.dumps(record))
    else:
        print(f"cached  {record['cached_seconds']:.3f} s per epoch")
        print(f"literal {record['literal_seconds']:.3f} s per epoch")
        print(f"ratio   {record['ratio']:.3f}")


if __name__ == "__main__":
    main()
