"""How long does the data set of a recipe take, from drawing initial states to the last shard?

Makes the data in a temporary folder by the function behind `tampl simulate`; observables, labels
and checksums are part of it; `written_after` is when the last file of a split was there. A small
data set is made first, so that compilation is timed apart.

    python benchmarks/dataset.py recipes/mixing.toml --device cuda --json
"""

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tampl.errors import InputError
from tampl.lab.pipeline import simulate
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe


def smallest(recipe: Recipe) -> Recipe:
    """The recipe with few and short runs, to compile what it needs.

    Test states stay as many as they are: a system may have a fixed number of them.
    """
    fewest = {"train": 1, "valid": 1, "members": 2, "train_runs": 1, "valid_runs": 1}
    system = recipe.system.model_copy(update={"frames": 2})
    data = recipe.data.model_copy(update=fewest)
    return dataclasses.replace(recipe, system=system, data=data)


def benchmark(path: Path, device: str, members: int | None) -> dict[str, Any]:
    recipe = read_recipe(path)
    if members is not None:
        data = recipe.data.model_copy(update={"members": members})
        recipe = dataclasses.replace(recipe, data=data)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        simulate(smallest(recipe), Path(folder) / "smallest", device=device)
        compiled, began = time.perf_counter(), time.time()
        store = simulate(recipe, Path(folder) / "data", device=device)
        done = time.perf_counter()
        files = [file for file in store.path.rglob("*") if file.is_file()]
        written = {
            split: max(file.stat().st_mtime for file in store.path.rglob(f"{split}-*"))
            for split in store.manifest.splits
        }
        gigabytes = sum(file.stat().st_size for file in files) / 1e9
        splits = store.manifest.splits
    return {
        "recipe": path.name,
        "seconds": round(done - compiled, 2),
        "written_after": {split: round(at - began, 2) for split, at in written.items()},
        "small_data_set_seconds": round(compiled - start, 2),
        "runs": {
            name: split.count * (split.members or split.runs) for name, split in splits.items()
        },
        "frames": recipe.system.description.frames,
        "gigabytes": round(gigabytes, 3),
        "provenance": provenance(device),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, help="runs of a test state, if not the recipe's")
    parser.add_argument("--json", action="store_true", help="print JSON instead of one line")
    arguments = parser.parse_args()
    try:
        result = benchmark(arguments.recipe, arguments.device, arguments.members)
    except InputError as error:
        parser.error(str(error))
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    runs = sum(result["runs"].values())
    print(f"{runs} runs of {result['frames']} frames in {result['seconds']:.1f} s")


if __name__ == "__main__":
    main()
