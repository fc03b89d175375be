"""Makes ranking-RECIPE.json: the scores of many seeds of a comparison, without its models.

tampl compare recipes/sirs-mini.toml --seeds 42,43,44,45,46,47,48,49 --out RUNS
python results/ranking.py RUNS > results/ranking-sirs-mini.json
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from tampl.files import strict_json


def rank(folder: Path) -> dict[str, Any]:
    """All evaluated runs of a comparison: scores inside limits and envelope, and plain ones."""
    found = defaultdict[str, dict[str, Any]](dict)
    evaluations = [
        json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/evaluation.json"))
    ]
    for each in evaluations:
        name, trust = each["method"], each["trust"]
        found[name][str(each["seed"])] = {
            **each["scores"][name],
            "crps": each["crps"],
            "plain": trust["plain"],
            "held": trust["held"],
            "seconds": each["seconds"],
        }
    first = evaluations[0]
    return {
        "methods": dict(found),
        "others": {key: score for key, score in first["scores"].items() if key not in found},
        "data": first["data"],
        "training_provenance": first["training_provenance"],
        "provenance": first["provenance"],
    }


if __name__ == "__main__":
    print(strict_json(rank(Path(sys.argv[1])), indent=1))
