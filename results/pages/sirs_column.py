"""The paper's SIRS column as the kept runs of `results/sirs` have it."""

from collections.abc import Sequence
from statistics import mean

from tampl.evaluation.comparison import ANCHOR, Comparison, Verdict, summarize_known
from tampl.lab.report.grids import MISSING, name_of, score_text, spread_text
from tampl.lab.report.tables import comparison_grid, difference_grid
from tampl.lab.runs import RunRecord

from . import paper
from .records import SEED, Record, Records, Section
from .tables import listed, seeded, spread, table, trained

VERDICTS = {
    Verdict.WORSE: "worse",
    Verdict.TIE: "tie",
    Verdict.BETTER: "better",
    None: "one seed, no interval",
}

METRICS = ("rmse", "mmd")

BEFORE = "compare-sirs-71f73e5.json"
"""The column before, with another refit of TAMPL+."""

EARLIER = ("compare-sirs-40.json", "compare-sirs-48.json", "sirs-tampl-42.json")
"""Comparisons and a run with other settings, the latest first."""


def write_column(records: Records) -> str:
    """Scores, what they are beside the paper's, and differences by seed."""
    column = records.comparisons["sirs"]
    return f"""\
## The paper's size (`recipes/sirs.toml`)

{describe_runs(records.runs("sirs"), column)} `results/sirs/`.

{paper.beside(comparison_grid(column), column).markdown()}
Excess is what is left of a score without the noise of finite ensembles. The paper's initial \
patterns are not described in detail and ours differ from them, so equal forecasts need not have \
equal scores: the floor, {column.scores["floor"].rmse.mean:.4f}, and the error of the mean \
training trajectory, {column.scores["mean_trajectory"].rmse.mean:.4f}, say what the scale is. \
{describe_targets(column)}

Differences paired by seed, with the 95 % interval of Student's t; below zero a method is better:

{difference_grid(column).markdown()}
{describe_verdicts(column)}

![Initial lattices and the futures of their observables: simulation, TAMPL and two \
closures](images/sirs-predictions.png)

Two test microstates, one cluster of infected sites and four: simulation, TAMPL with seed {SEED}, \
mean field and pair approximation. Bands are one standard deviation; infected sites are red, \
recovered ones blue.

![One simulated trajectory, and the observables as simulated and as each method forecasts \
them](images/sirs-comparison.png)

The second of them again, all methods with seed {SEED}.

![Lattices along one simulated trajectory from each of the two](images/sirs-strip.png)

One simulated trajectory from each of the two.
"""


def write_envelope(records: Records) -> str:
    """The scores inside limits and envelope beside the paper's plain ones."""
    lines = []
    for method in records.comparisons["sirs"].choices:
        own = [run for run in records.runs("sirs") if run.method == method]
        trusts = [run.trust for run in own if run.trust is not None]
        ours = [_summary([getattr(run.scores[method], key) for run in own]) for key in METRICS]
        plain = [_summary([getattr(trust.plain, key) for trust in trusts]) for key in METRICS]
        held = 100 * mean(trust.held for trust in trusts)
        lines.append([name_of(method), *ours, *plain, f"{held:.2g} %"])
    return f"""\
### With and without the envelope

The scores above are inside limits and envelope, and from the observed y_0; plain ones are the \
paper's algorithm with the same models (`limits=False`). Held is the fraction of members and \
times that had to be brought back into the envelope.

{table(["", "RMSE", "MMD²", "plain RMSE", "plain MMD²", "held"], lines)}
"""


def _summary(values: Sequence[float | None]) -> str:
    known = summarize_known(values)
    return MISSING if known is None else spread_text(known.mean, known.std)


def describe_runs(runs: Sequence[RunRecord], column: Comparison) -> str:
    """Seeds, machine and settings, and what is missing."""
    recipe = runs[0].recipe
    transition = recipe["model"]["transition"]
    missing = [f"{name_of(method)} {seed}" for method, seed in column.waiting]
    without = f" Not there: {listed(missing)}." if missing else ""
    return (
        f"{seeded(column.seeds)}, {trained(runs)}, {recipe['training']['epochs']} epochs "
        f"a turn. "
        f"The velocity network has hidden layers of "
        f"{listed(transition['hidden'])} units and is integrated in {transition['steps']} steps "
        f"of the {transition['solver']} rule.{without}"
    )


def describe_targets(column: Comparison) -> str:
    """TAMPL beside the paper's TAMPL, and where the trials stand if it is missed."""
    shown = [key for key in (ANCHOR, "tampl+") if key in column.scores]
    parts = [
        f"{name_of(key)} has RMSE {paper.distance(column, key, 'rmse')}, and MMD² "
        f"{paper.distance(column, key, 'mmd')}"
        for key in shown
    ]
    row, goal = column.scores[ANCHOR], paper.SCORES[ANCHOR]
    missed = row.rmse.mean > goal["rmse"][0] or row.mmd.mean > goal["mmd"][0]
    tried = " What was tried to lower it: [below](#what-was-tried)." if missed else ""
    return f"Beside the paper's TAMPL: {'; '.join(parts)}.{tried}"


def describe_verdicts(column: Comparison) -> str:
    """Which methods the intervals set apart from TAMPL, and which every seed does."""
    parts = []
    for metric, title in (("rmse", "RMSE"), ("mmd", "MMD²")):
        found = {key: getattr(pair, metric) for key, pair in column.paired.items()}
        known = {key: pair.verdict for key, pair in found.items() if pair is not None}
        groups = [
            f"{text}: {listed([name_of(key) for key in known if known[key] is verdict])}"
            for verdict, text in VERDICTS.items()
            if verdict in known.values()
        ]
        ahead = [name_of(key) for key, pair in found.items() if pair and min(pair.values) > 0]
        always = f" With every seed TAMPL's is below that of {listed(ahead)}." if ahead else ""
        parts += [f"{title} beside TAMPL's: {'; '.join(groups)}.{always}"] if groups else []
    return " ".join(parts)


def write_runs(records: Records) -> str:
    """What the runs took, and how far the ledger says they are."""
    runs, ledger = records.runs("sirs"), records.load("plan.json")
    states = [entry["state"] for entry in ledger]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    lines = []
    for method in records.comparisons["sirs"].choices:
        own = [run for run in runs if run.method == method]
        epochs = sorted({len(run.history) for run in own})
        seconds = f"{mean(run.seconds for run in own):.0f}"
        lines.append([name_of(method), listed([run.seed for run in own]), listed(epochs), seconds])
    return f"""\
### The runs

Seconds of training, the mean over seeds; runs that are made side by side share the machine. \
Where parts are trained one after another, their epochs add up. The ledger, `results/plan.json`: \
{listed(counts)}.

{table(["", "seeds", "epochs", "seconds"], lines)}
"""


def write_earlier(records: Records) -> str:
    """What was run with earlier settings of the recipe."""
    latest, before, first = (records.load(name) for name in EARLIER)
    column = records.load(BEFORE)
    return f"""\
### Earlier settings

{column["settings"]["note"]} RMSE and MMD² of TAMPL+ were \
{spread(column["scores"]["tampl+"]["rmse"])} and {spread(column["scores"]["tampl+"]["mmd"])}: \
`results/{BEFORE}`. The plain scores of the other methods are nearly the same as then.

{_describe_comparison(latest)}: `results/{EARLIER[0]}`. {latest["settings"]["note"]} \
{_describe_comparison(before)}: `results/{EARLIER[1]}`. Before that, one run of \
{first["epochs"]} epochs with a velocity network of 4 x 512, five equal steps and rates \
of 2e-3: TAMPL {first["scores"]["tampl"]["rmse"]:.4f}, MMD² \
{first["scores"]["tampl"]["mmd"]:.4f}, {first["median_epoch_seconds"]:.1f} s an epoch; \
`results/{EARLIER[2]}`.
"""


def _describe_comparison(record: Record) -> str:
    settings, scores = record["settings"], record["scores"]
    parts = [
        f"{name_of(key)} {score_text(scores[key]['rmse']['mean'])} "
        f"(seed{'s' * (len(scores[key]['seeds']) > 1)} {listed(scores[key]['seeds'])})"
        for key in record["methods"]
        if key in scores
    ]
    return (
        f"With {settings['epochs']} epochs, a velocity network of {settings['velocity']}, and "
        f"{settings['steps']} graded steps, the runs that a time budget allowed had the RMSE "
        f"{listed(parts)}"
    )


COLUMN = (Section(write_column, ("sirs",)), Section(write_envelope, ("sirs",)))
RUNS = (
    Section(write_runs, ("sirs", "plan.json")),
    Section(write_earlier, (BEFORE, *EARLIER)),
)
