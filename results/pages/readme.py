"""README's block: TAMPL at the paper's sizes in a few rows, beside the paper, and the demo."""

from collections.abc import Callable, Mapping

from tampl.evaluation.comparison import ANCHOR
from tampl.lab.report.grids import MISSING, name_of

from . import paper
from .column import find_borrowed
from .experiments import EXPERIMENTS, Experiment
from .records import Record, Records, Section
from .tables import counted, listed, machine, spread, table, trained

SHOWN = ("tampl", "tampl+")
"""The rows of their own; of the other methods the table shows the best."""

METRICS = {"rmse": "RMSE", "mmd": "MMD²"}


def write_column(records: Records) -> str:
    """The paper's sizes in a few rows, with the machine that the runs were trained on."""
    columns = {each.recipe: records.comparisons[each.recipe].as_dict() for each in EXPERIMENTS}
    counts = listed(sorted({len(column["seeds"]) for column in columns.values()}))
    trainings = [
        f"{each.subject} (`recipes/{each.recipe}.toml`), with models "
        f"{trained(records.runs(each.recipe))}"
        for each in EXPERIMENTS
    ]
    gaps = "".join(describe_gaps(each, records) for each in EXPERIMENTS)
    return f"""\
Scores on {", and on ".join(trainings)}: RMSE of the forecast mean and squared MMD of the \
marginal distributions, in standardised units; lower is better. A cell is the mean and the sample \
standard deviation over {counts} training seeds. The paper's rows are the numbers that it prints; \
its initial patterns differ from ours.{gaps}

{scores_table(columns)}

All methods, the smaller sizes, the paired differences and their caveats are in \
[docs/results.md](docs/results.md).
"""


def describe_gaps(experiment: Experiment, records: Records) -> str:
    """Which of the paper's methods are missing, and which are not tuned for this system."""
    absent = paper.missing(experiment.recipe, records.comparisons[experiment.recipe])
    borrowed = find_borrowed(experiment, records)
    parts = {
        f"Not run for {experiment.name}": absent,
        f"Preliminary for {experiment.name}, with weights chosen for another system": borrowed,
    }
    texts = (f" {text}: {listed(map(name_of, keys))}." for text, keys in parts.items() if keys)
    return "".join(texts)


def scores_table(columns: Mapping[str, Record]) -> str:
    """TAMPL, TAMPL+, the best of the other methods and the noise floor, beside the paper.

    Arguments:
        columns: The comparisons by recipe.
    """
    names = {each.recipe: each.name for each in EXPERIMENTS}
    places = [(recipe, metric) for recipe in columns for metric in METRICS]

    def write_line(title: str, cell: Callable[[str, str], str]) -> list[str]:
        return [title, *(cell(recipe, metric) for recipe, metric in places)]

    def write_own(key: str) -> list[str]:
        return write_line(name_of(key), lambda recipe, m: _write_cell(columns[recipe], key, m))

    others = "Best of the other methods"
    lines = [
        write_own(ANCHOR),
        write_line(f"{name_of(ANCHOR)}, paper", lambda recipe, m: _paper_cell(recipe, ANCHOR, m)),
        write_own("tampl+"),
        write_line(others, lambda recipe, m: _best_of(columns[recipe], m)),
        write_line(f"{others}, paper", _best_of_paper),
        write_own("floor"),
    ]
    header = [f"{names[recipe]}, {METRICS[metric]}" for recipe, metric in places]
    return table(["", *header], [line for line in lines if any(line[1:])])


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


def _best_of(record: Record, metric: str) -> str:
    """The lowest mean of a column with the name of its method."""
    means = {
        key: record["scores"][key][metric]["mean"]
        for key in record["methods"]
        if key in record["scores"].keys() - set(SHOWN)
        and record["scores"][key][metric] is not None
    }
    if not means:
        return MISSING
    best = min(means, key=means.__getitem__)
    return f"{_write_cell(record, best, metric)} ({name_of(best)})"


def _best_of_paper(recipe: str, metric: str) -> str:
    known = paper.SCORES[recipe]
    means = {key: row[metric][0] for key, row in known.items() if metric in row}
    best = min(means.keys() - set(SHOWN), key=means.__getitem__)
    return f"{_paper_cell(recipe, best, metric)} ({name_of(best)})"


def _paper_cell(recipe: str, key: str, metric: str) -> str:
    return paper.cells(recipe, key)[metric == "mmd"]


def _write_cell(record: Record, key: str, metric: str) -> str:
    """A mean with its deviation; empty where the method was not run."""
    if key not in record["scores"]:
        return ""
    row = record["scores"][key]
    count = counted(len(row["seeds"]), len(record["seeds"])) if row["seeds"] else ""
    return spread(row[metric]) + count


SECTIONS = (
    Section(write_column, tuple(name for each in EXPERIMENTS for name in each.runs)),
    Section(write_demo, ("demo.json",)),
)
