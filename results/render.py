"""Makes the tables of README.md and docs/results.md from the records in this folder.

python results/render.py           # writes the blocks between the marks
python results/render.py --check   # exit code 1 if a page says something else
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tampl.report.names import in_reading_order, name_of

RESULTS = Path(__file__).parent
ROOT = RESULTS.parent
MARKS = ("<!-- results:begin -->\n", "<!-- results:end -->")

Record = Mapping[str, Any]


def load(name: str) -> dict[str, Any]:
    """Reads a record of this folder."""
    return json.loads((RESULTS / name).read_text())


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def spread(summary: Record | None) -> str:
    """Mean and sample standard deviation, or the one value."""
    if summary is None:
        return "N/A"
    if summary["std"] is None:
        return f"{summary['mean']:.4f}"
    return f"{summary['mean']:.4f} ± {summary['std']:.4f}"


def interval(difference: Record | None) -> str:
    """A paired difference with its interval and verdict."""
    if difference is None:
        return "N/A"
    low, high = difference["low"], difference["high"]
    if low is None:
        return f"{difference['mean']:+.4f}"
    return f"{difference['mean']:+.4f} ({low:+.4f} to {high:+.4f}), {difference['verdict']}"


def machine(record: Record) -> str:
    """Where a record was made."""
    device = record["provenance"]["device"]
    return f"{record['provenance']['cpu']}" if device == "cpu" else f"one {device}"


def scores_table(record: Record) -> str:
    """All rows of a comparison."""
    lines = []
    for key, row in record["scores"].items():
        scale = "" if row["latent_std"] is None else f"{row['latent_std']:.2f}"
        collapsed = f"{len(row['collapsed'])} of {len(row['seeds'])}" if row["seeds"] else ""
        lines.append([name_of(key), spread(row["rmse"]), spread(row["mmd"]), scale, collapsed])
    return table(["", "RMSE", "MMD²", "latent std", "collapsed"], lines)


def paired_table(record: Record) -> str:
    """Differences to TAMPL."""
    lines = [
        [name_of(key), interval(pair["rmse"]), interval(pair["mmd"])]
        for key, pair in record["paired"].items()
    ]
    return table(["method minus TAMPL", "RMSE", "MMD²"], lines)


def sweep_table(record: Record) -> str:
    """One line for each value."""
    lines = [
        [
            f"{row['value']}",
            spread(row["validation"]),
            spread(row["rmse"]),
            spread(row["mmd"]),
            spread(row["latent_std"]),
        ]
        for row in record["rows"]
    ]
    key = record["key"].rpartition(".")[2]
    header = [f"{name_of(record['method'])}, `{key}`", "validation RMSE", "RMSE", "MMD²"]
    return table([*header, "latent std"], lines)


def tuning_table(record: Record) -> str:
    """The values that were tried, the chosen one in bold, and the same once more on a CPU."""
    lines = []
    for name, axis in record["axes"].items():
        best = min(axis["trials"], key=lambda trial: trial["validation"])
        for trial in axis["trials"]:
            value = f"{trial['value']:g}"
            lines.append(
                [
                    f"{name_of(name)}, `{axis['key']}`",
                    f"**{value}**" if trial is best else value,
                    f"{trial['validation']:.3f}",
                    f"{trial['repeated']:.3f}",
                ]
            )
    return table(["setting", "value", "validation RMSE", "repeated on a CPU"], lines)


def accuracy_table(record: Record) -> str:
    """What was tried at the paper's size, each with three solvers."""
    solvers = ("midpoint 4, graded", "midpoint 3, graded", "midpoint 24, graded")
    lines = []
    for trial in record["trials"]:
        scores = [trial["solvers"][solver] for solver in solvers]
        cells = [f"{score['rmse']:.3f} ({score['spread']['I']:.2f})" for score in scores]
        lines.append([trial["change"], f"{trial['epochs']}", f"{trial['validation']:.3f}", *cells])
    return table(["change", "epochs", "validation RMSE", *solvers], lines)


def full_column(row: Record | None) -> list[str]:
    """The scores of a comparison's row; empty where there is none."""
    return ["", ""] if row is None else [spread(row["rmse"]), spread(row["mmd"])]


def render_readme() -> str:
    """README's block."""
    mini, full, seeds = (
        load(f"{name}.json")
        for name in ("compare-sirs-mini", "compare-sirs-48", "seeds-sirs-mini")
    )
    speed, cache = load("sirs_simulation.json"), load("latent_cache.json")
    demo = load("demo.json")
    lines = []
    for key in in_reading_order({**mini["scores"], **full["scores"]}):
        columns = [full_column(record["scores"].get(key)) for record in (mini, full)]
        lines.append([name_of(key), *columns[0], *columns[1]])
    ratios = [
        run["scores"]["tampl"]["rmse"] / run["scores"]["mean_trajectory"]["rmse"]
        for run in seeds["runs"]
    ]
    return "\n".join(
        [
            f"Lattice SIRS: RMSE of the forecast mean and squared MMD of the marginals, on "
            f"standardised observables. Left all methods on the demo's 32 x 32 lattice, mean and "
            f"sample standard deviation over {len(mini['seeds'])} training seeds; right the runs "
            f"on the paper's 100 x 100 lattice that are done, TAMPL with two seeds, others with "
            f"one, {full['settings']['epochs']} epochs, with settings that are not final. Trained "
            f"on {machine(full)}.",
            "",
            table(["", "RMSE, 32 x 32", "MMD²", "RMSE, 100 x 100", "MMD²"], lines),
            "",
            f"Over {len(ratios)} trainings on the small lattice with different training and data "
            f"seeds, TAMPL's RMSE was {min(ratios):.2f} to {max(ratios):.2f} of the mean training "
            f"trajectory's. The weights of the transition, or of all modules where they are "
            f"trained together, are averaged over the last steps (`average` in the recipes). "
            f"Differences "
            f"paired by seed, sweeps and what was tuned: [docs/results.md](docs/results.md).",
            "",
            f"`make demo` from a new clone took {demo['seconds'] / 60:.0f} minutes on "
            f"{demo['provenance']['cores']} cores ({machine(demo)}), installation included.",
            "",
            f"One trajectory of the paper's size takes {speed['milliseconds_per_trajectory']:.1f} "
            f"ms on one core ({speed['provenance']['cpu']}). A cached epoch takes "
            f"{cache['ratio']:.2f} of the time of a literal Algorithm 1 epoch on two cores of "
            f"that machine.",
            "",
        ]
    )


def render_results() -> str:
    """The block of docs/results.md."""
    mini, cpu = load("compare-sirs-mini.json"), load("compare-sirs-mini-cpu.json")
    jld, dimension = load("sweep-sirs-mini-jld.json"), load("sweep-sirs-mini-latent_dim.json")
    tuning, accuracy = load("tuning.json"), load("accuracy.json")
    full, early = load("compare-sirs-48.json"), load("sirs-tampl-42.json")
    speed = load("throughput.json")
    return "\n".join(
        [
            "## Small lattice (`recipes/sirs-mini.toml`)",
            "",
            f"Training seeds {', '.join(map(str, mini['seeds']))}, on {machine(mini)}. Weights "
            f"are averaged as the recipe says, for every method. "
            f"`results/compare-sirs-mini.json`.",
            "",
            scores_table(mini),
            "",
            "Differences paired by seed, with the 95 % interval of Student's t:",
            "",
            paired_table(mini),
            "",
            f"All nine methods with seed {cpu['seeds'][0]} on two cores ({machine(cpu)}) took "
            f"{cpu['seconds'] / 60:.0f} minutes, simulation and evaluation included: TAMPL "
            f"{cpu['scores']['tampl']['rmse']['mean']:.4f}, JLD "
            f"{cpu['scores']['jld']['rmse']['mean']:.4f}. `results/compare-sirs-mini-cpu.json`.",
            "",
            "### Weight of JLD's transition loss",
            "",
            sweep_table(jld),
            "",
            "### Latent dimension of TAMPL",
            "",
            sweep_table(dimension),
            "",
            "### Weights of the penalties",
            "",
            f"Chosen on validation data with seed {tuning['seed']} and {tuning['epochs']} epochs, "
            f"a third of the recipe's. VICReg's covariance weight is a 25th of its variance "
            f"weight, as in its paper. The lowest of the first column was taken. One seed is "
            f"noisy: repeated on a CPU, neighbours change places. `results/tuning.json`.",
            "",
            tuning_table(tuning),
            "",
            "## The paper's size: runs so far",
            "",
            f"On {machine(full)}, {full['settings']['epochs']} epochs, velocity network "
            f"{full['settings']['velocity']}, {full['settings']['steps']} graded steps: the runs "
            f"that a time budget allowed, seeds {', '.join(map(str, full['seeds']))} being "
            f"wanted. TAMPL's mean is above the paper's 0.1056. `recipes/sirs.toml` has other "
            f"epochs and steps since. `results/compare-sirs-48.json`.",
            "",
            scores_table(full),
            "",
            f"Before it, one run of {early['epochs']} epochs with a velocity network of 4 x 512, "
            f"five equal steps and rates of 2e-3: TAMPL {early['scores']['tampl']['rmse']:.4f}, "
            f"MMD² {early['scores']['tampl']['mmd']:.4f}, "
            f"{early['median_epoch_seconds']:.1f} s an epoch. `results/sirs-tampl-42.json`.",
            "",
            f"An epoch of TAMPL took {speed['epoch_s']:.3f} s in the later setting, "
            f"{100 * speed['fraction']:.0f} % of the card's matrix rate in {speed['precision']}. "
            f"`results/throughput.json`.",
            "",
            "## The paper's size: what was tried",
            "",
            f"On validation data only, seed {accuracy['seed']}, on {machine(accuracy)}: the "
            f"validation RMSE that chooses checkpoints, which keeps the noise of single runs, and "
            f"the RMSE against ensembles from {accuracy['references'].partition(';')[0]}, with "
            f"the spread of I over the true one in brackets. Graded steps shorten towards the "
            f"end. Begins from {accuracy['base']['transition']}, batch "
            f"{accuracy['base']['batch_size']}. `results/accuracy.json`.",
            "",
            accuracy_table(accuracy),
            "",
            f"Begun and cut off by the time limit: {'; '.join(accuracy['cut_off'])}.",
            "",
        ]
    )


PAGES: Mapping[Path, Callable[[], str]] = {
    ROOT / "README.md": render_readme,
    ROOT / "docs" / "results.md": render_results,
}


def filled(text: str, block: str) -> str:
    """A page with its block replaced."""
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    return f"{before}{MARKS[0]}{block}{MARKS[1]}{after}"


def main() -> int:
    """Writes the blocks, or compares them."""
    wanted = {page: filled(page.read_text(), render()) for page, render in PAGES.items()}
    if "--check" in sys.argv:
        return int(any(page.read_text() != text for page, text in wanted.items()))
    for page, text in wanted.items():
        page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
