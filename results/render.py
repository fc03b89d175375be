"""Makes README's table of results from the records in this folder.

python results/render.py           # writes the block between the marks in README.md
python results/render.py --check   # exit code 1 if README.md says something else
"""

import json
import sys
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tampl.report.names import name_of

RESULTS = Path(__file__).parent
README = RESULTS.parent / "README.md"
MARKS = ("<!-- results:begin -->\n", "<!-- results:end -->")
ROWS = ("tampl", "floor", "mean_trajectory", "pair", "mean_field")


def load(name: str) -> dict[str, Any]:
    """Reads a record of this folder."""
    return json.loads((RESULTS / name).read_text())


def spread(values: list[float | None]) -> str:
    """Mean and sample standard deviation, or the value that all have."""
    known = [value for value in values if value is not None]
    if not known:
        return "N/A"
    if len(set(known)) == 1:
        return f"{known[0]:.4f}"
    return f"{mean(known):.4f} +- {stdev(known):.4f}"


def render() -> str:
    """The block of README between its marks."""
    demo, full = load("demo.json"), load("sirs-tampl-42.json")
    speed, cache = load("sirs_simulation.json"), load("latent_cache.json")
    seeds = [run for run in demo["runs"] if run["data_seed"] == 0]
    lines = [
        f"Lattice SIRS: RMSE of the forecast mean and squared MMD of the marginals, on "
        f"standardised observables. Left the demo's 32 x 32 lattice, mean and standard deviation "
        f"over {len(seeds)} training seeds; right the paper's 100 x 100 lattice, one seed, "
        f"trained on one {full['provenance']['device']}.",
        "",
        "| | RMSE, 32 x 32 | MMD² | RMSE, 100 x 100 | MMD² |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in ROWS:
        scores = [run["scores"][row] for run in seeds]
        columns = [spread([score[key] for score in scores]) for key in ("rmse", "mmd")]
        columns += [spread([full["scores"][row][key]]) for key in ("rmse", "mmd")]
        lines.append(f"| {name_of(row)} | {' | '.join(columns)} |")
    ratios = [
        run["scores"]["tampl"]["rmse"]
        / min(run["scores"][other]["rmse"] for other in ("pair", "mean_field", "mean_trajectory"))
        for run in demo["runs"]
    ]
    lines += [
        "",
        f"Over {len(ratios)} demos with different training and data seeds, TAMPL's RMSE was "
        f"{min(ratios):.2f} to {max(ratios):.2f} of the best of closures and mean trajectory. "
        f"The transition's weights are averaged over the last steps (the recipes' "
        f"`training.transition.average`).",
        "",
        f"One trajectory of the paper's size takes {speed['milliseconds_per_trajectory']:.1f} ms "
        f"on one core ({speed['provenance']['cpu']}). A cached epoch takes {cache['ratio']:.2f} "
        f"of the time of a literal Algorithm 1 epoch on two cores of that machine.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Writes the block, or compares it."""
    text = README.read_text()
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    wanted = f"{before}{MARKS[0]}{render()}{MARKS[1]}{after}"
    if "--check" in sys.argv:
        return int(wanted != text)
    README.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
