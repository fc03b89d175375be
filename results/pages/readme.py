"""README's block: TAMPL at the paper's size in four rows, beside the paper, and the demo."""

from tampl.lab.report.grids import MISSING, name_of

from . import paper
from .records import Record, Records, Section
from .tables import counted, machine, spread, table, trained

SHOWN = ("tampl", "tampl+")
"""The rows of their own; of the other methods the table shows the best."""


def write_column(records: Records) -> str:
    """The paper's size in four rows, with the machine that the runs were trained on."""
    column = records.comparisons["sirs"].as_dict()
    return f"""\
Scores on the SIRS epidemic of 100 x 100 sites (`recipes/sirs.toml`), with models \
{trained(records.runs("sirs"))}: RMSE of the forecast mean and squared MMD of the marginal \
distributions, in standardised units; lower is better. A cell is the mean and the sample standard \
deviation over {len(column["seeds"])} training seeds. On the right are the numbers that the paper \
prints; its initial patterns differ from ours.

{scores_table(column)}

All methods, both lattice sizes, the paired differences and their caveats are in \
[docs/results.md](docs/results.md).
"""


def scores_table(record: Record) -> str:
    """TAMPL, TAMPL+, the best of the other methods in each column, and the noise floor."""
    metrics = ("rmse", "mmd")

    def write_line(key: str) -> list[str]:
        ours = (_write_cell(record, key, metric) for metric in metrics)
        return [name_of(key), *ours, *paper.cells(key)]

    known = [key for key in record["methods"] if key in record["scores"]]
    others = [key for key in known if key not in SHOWN]
    best = [_best_of(record, others, metric) for metric in metrics]
    best += [_best_of_paper(metric) for metric in metrics]
    lines = [write_line(key) for key in SHOWN if key in known]
    lines.append(["Best of the other methods", *best])
    if "floor" in record["scores"]:
        lines.append(write_line("floor"))
    return table(["", "RMSE", "MMD²", "RMSE, paper", "MMD², paper"], lines)


def write_demo(records: Records) -> str:
    """The demo's own scores, which are those of a CPU, and its duration."""
    demo = records.load("demo.json")
    scores = {
        name: demo["scores"][name]["rmse"]
        for name in ("tampl+", "tampl", "vamp", "jld", "mean_trajectory")
    }
    texts = ", ".join(f"{rmse:.4f} ({name_of(name)})" for name, rmse in scores.items())
    return f"""\
`make demo` trains on your machine, on a lattice of 32 x 32 sites and with one seed. From a new \
clone it took {demo["seconds"] / 60:.0f} minutes on {demo["provenance"]["cores"]} cores \
({machine(demo)}), installation included. The RMSE was {texts} (`results/demo.json`, commit \
{demo["provenance"]["commit"]}).
"""


def _best_of(record: Record, methods: list[str], metric: str) -> str:
    """The lowest mean of a column with the name of its method."""
    means = {
        key: record["scores"][key][metric]["mean"]
        for key in methods
        if record["scores"][key][metric] is not None
    }
    if not means:
        return MISSING
    best = min(means, key=means.__getitem__)
    return f"{_write_cell(record, best, metric)} ({name_of(best)})"


def _best_of_paper(metric: str) -> str:
    means = {key: row[metric][0] for key, row in paper.SCORES.items() if metric in row}
    best = min(means.keys() - set(SHOWN), key=means.__getitem__)
    return f"{paper.cells(best)[metric == 'mmd']} ({name_of(best)})"


def _write_cell(record: Record, key: str, metric: str) -> str:
    row = record["scores"][key]
    count = counted(len(row["seeds"]), len(record["seeds"])) if row["seeds"] else ""
    return spread(row[metric]) + count


SECTIONS = (
    Section(write_column, ("sirs",)),
    Section(write_demo, ("demo.json",)),
)
