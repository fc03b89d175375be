"""The paper's column of one experiment as the kept runs have it."""

from collections.abc import Sequence
from functools import partial
from statistics import mean

from tampl.evaluation.comparison import ANCHOR, Comparison, Verdict, summarize_known
from tampl.lab.report.grids import MISSING, name_of, spread_text
from tampl.lab.report.tables import difference_grid
from tampl.lab.runs import RunRecord

from . import paper
from .claims import known_closures
from .experiments import Experiment
from .records import SEED, Records, Section
from .tables import listed, seeded, table, trained

VERDICTS = {
    Verdict.WORSE: "worse",
    Verdict.TIE: "tie",
    Verdict.BETTER: "better",
    None: "one seed, no interval",
}

METRICS = ("rmse", "mmd")

SEARCHED = {
    "jld-sig": "`penalty.weight`",
    "jld-vic": "`penalty.variance`",
    "jld-recon": "`penalty.weight`",
    "vamp": "`epsilon`",
}
"""Settings that a search on validation data chooses for each system."""


def write_column(experiment: Experiment, records: Records) -> str:
    """Scores, what they are beside the paper's, and differences by seed."""
    recipe = experiment.recipe
    column, runs = records.comparisons[recipe], records.runs(recipe)
    told = [f"{describe_runs(runs, column)} `results/{recipe}/`."]
    told += [gaps] if (gaps := describe_gaps(experiment, records)) else []
    opening = "\n\n".join(told)
    return f"""\
## {experiment.title} (`recipes/{recipe}.toml`)

{opening}

{paper.beside(recipe, column).markdown()}
Excess is what is left of a score without the noise of finite ensembles. The paper's initial \
patterns are not described in detail and ours differ from them, so equal forecasts need not have \
equal scores: the floor, {column.scores["floor"].error:.4f}, and the error of the mean \
training trajectory, {column.scores["mean_trajectory"].error:.4f}, say what the scale is. \
{describe_useless(column)}{describe_targets(experiment, column)}

Differences paired by seed, with the 95 % interval of Student's t; below zero a method is better:

{difference_grid(column).markdown()}
{describe_verdicts(column)}

![Initial states and the futures of their observables, as simulated and as \
forecast](images/{recipe}-predictions.png)

Two test microstates, {experiment.shown}: {_name_curves(runs)}. Bands are one standard \
deviation; {experiment.colours}.

![One simulated trajectory, and the observables as simulated and as each method forecasts \
them](images/{recipe}-comparison.png)

The second of them again, all methods with seed {SEED}.

![Microstates along one simulated trajectory from each of the two](images/{recipe}-strip.png)

One simulated trajectory from each of the two.
"""


def _name_curves(runs: Sequence[RunRecord]) -> str:
    closures = [name_of(key).lower() for key in known_closures(runs)]
    *others, last = ("simulation", f"TAMPL with seed {SEED}", *closures)
    return f"{listed(others)} and {last}"


def write_envelope(experiment: Experiment, records: Records) -> str:
    """The scores inside limits and envelope beside the paper's plain ones."""
    lines = []
    for method in records.comparisons[experiment.recipe].choices:
        own = [run for run in records.runs(experiment.recipe) if run.method == method]
        trusts = [run.trust for run in own if run.trust is not None]
        ours = [_summary([getattr(run.scores[method], key) for run in own]) for key in METRICS]
        plain = [_summary([getattr(trust.plain, key) for trust in trusts]) for key in METRICS]
        held = 100 * mean(trust.held for trust in trusts)
        lines.append([name_of(method), *ours, *plain, f"{held:.2g} %"])
    return f"""\
{experiment.heading("with and without the envelope")}

The scores above are inside limits and envelope, and from the observed y_0; plain ones are the \
paper's algorithm with the same models (`limits=False`). Held is the fraction of members and \
times that had to be brought back into the envelope.

{table(["", "RMSE", "MMD²", "plain RMSE", "plain MMD²", "held"], lines)}
"""


def _summary(values: Sequence[float | None]) -> str:
    known = summarize_known(values)
    return MISSING if known is None else spread_text(known.mean, known.std)


def describe_runs(runs: Sequence[RunRecord], column: Comparison) -> str:
    """Seeds, machine and settings, and what single methods have for themselves."""
    recipe = runs[0].recipe
    training, transition = recipe["training"], recipe["model"]["transition"]
    share = training.get("fraction", 1.0)
    part = "" if share == 1 else f" with {share:.0%} of the pairs each".replace("%", " %")
    own = {run.method: run.recipe["methods"][run.method] for run in runs}
    lags = own.get("tampl+", {}).get("tampl", {}).get("lags", [1])
    apart = (
        f" The representation of TAMPL+ learns from pairs {listed(lags)} frames apart, that of "
        "TAMPL from neighbouring frames."
    )
    return (
        f"{seeded(column.seeds)}, {trained(runs)}, {training['epochs']} epochs a turn{part}. "
        f"The velocity network has hidden layers of {listed(transition['hidden'])} units and is "
        f"integrated in {transition['steps']} steps of the {transition['solver']} rule."
        f"{'' if lags == [1] else apart}"
    )


def describe_gaps(experiment: Experiment, records: Records) -> str:
    """What is missing beside the paper's table, and which settings are not this system's."""
    column = records.comparisons[experiment.recipe]
    absent = paper.missing(experiment.recipe, column)
    waiting = [f"{name_of(method)} {seed}" for method, seed in column.waiting]
    borrowed = find_borrowed(experiment, records)
    parts = []
    if absent:
        parts.append(f"Not run at this size: {listed([name_of(key) for key in absent])}.")
    if waiting:
        parts.append(f"Not there: {listed(waiting)}.")
    if borrowed:
        texts = [f"{name_of(key)} ({SEARCHED[key]})" for key in borrowed]
        parts.append(
            "Preliminary rows, whose settings were not yet chosen on validation data of this "
            f"system: {listed(texts)}. They are those [chosen](method.md#rules-of-the-comparison) "
            f"for `recipes/{experiment.lender}.toml`."
        )
    return " ".join(parts)


def find_borrowed(experiment: Experiment, records: Records) -> list[str]:
    """The methods whose settings are still those of another system, and were not searched here.

    A search shows as a record `tuning-RECIPE.json`, or as other settings than the lender's.
    """
    if experiment.lender is None:
        return []
    search = f"tuning-{experiment.recipe}.json"
    searched = records.load(search)["axes"] if (records.folder / search).exists() else {}
    ours, theirs = (
        {run.method: run.recipe["methods"][run.method] for run in records.runs(recipe)}
        for recipe in (experiment.recipe, experiment.lender)
    )
    return [
        key
        for key in SEARCHED
        if key in ours and key not in searched and ours[key] == theirs.get(key)
    ]


def describe_useless(column: Comparison) -> str:
    """Which methods say less than the mean trajectory, which no microstate enters."""
    limit = column.scores["mean_trajectory"].error
    above = [name_of(key) for key in column.choices if column.scores[key].error > limit]
    return f"Worse than that trajectory: {listed(above)}. " if above else ""


def describe_targets(experiment: Experiment, column: Comparison) -> str:
    """TAMPL beside the paper's TAMPL, and where the trials stand if it is missed."""
    recipe = experiment.recipe
    shown = [key for key in (ANCHOR, "tampl+") if key in column.scores]
    parts = [
        f"{name_of(key)} has RMSE {paper.distance(recipe, column, key, 'rmse')}, and MMD² "
        f"{paper.distance(recipe, column, key, 'mmd')}"
        for key in shown
    ]
    row, goal = column.scores[ANCHOR], paper.SCORES[recipe][ANCHOR]
    missed = row.rmse.mean > goal["rmse"][0] or row.mmd.mean > goal["mmd"][0]
    tried = f" What was tried to lower it: [below](#{experiment.trials})." if missed else ""
    return (
        "Beside the paper's TAMPL, and its range of one standard deviation to both sides: "
        f"{'; '.join(parts)}.{tried}"
    )


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
        sides = {
            "below": [
                name_of(key) for key, pair in found.items() if pair and min(pair.values) > 0
            ],
            "above": [
                name_of(key) for key, pair in found.items() if pair and max(pair.values) < 0
            ],
        }
        always = " and ".join(
            f"{side} that of {listed(own)}" for side, own in sides.items() if own
        )
        text = f" With every seed TAMPL's is {always}." if always else ""
        parts += [f"{title} beside TAMPL's: {'; '.join(groups)}.{text}"] if groups else []
    return " ".join(parts)


def write_runs(experiment: Experiment, records: Records) -> str:
    """What the runs took, and how far a ledger says they are."""
    runs, lines = records.runs(experiment.recipe), []
    ledger = _describe_ledger(experiment.ledger, records)
    for method in records.comparisons[experiment.recipe].choices:
        own = [run for run in runs if run.method == method]
        epochs = sorted({len(run.history) for run in own})
        seconds = f"{mean(run.seconds for run in own):.0f}"
        lines.append([name_of(method), listed([run.seed for run in own]), listed(epochs), seconds])
    return f"""\
{experiment.heading("the runs")}

Seconds of training, the mean over seeds; runs that are made side by side share the machine. \
Where parts are trained one after another, their epochs add up.{ledger}

{table(["", "seeds", "epochs", "seconds"], lines)}
"""


def _describe_ledger(name: str | None, records: Records) -> str:
    if name is None:
        return ""
    states = [entry["state"] for entry in records.load(name)]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    return f" The ledger, `results/{name}`: {listed(counts)}."


def sections_of(experiment: Experiment) -> tuple[Section, ...]:
    """The sections of an experiment's scores."""
    writers = (write_column, write_envelope)
    return tuple(Section(partial(write, experiment), experiment.runs) for write in writers)


def runs_of(experiment: Experiment) -> tuple[Section, ...]:
    """The section of an experiment's runs."""
    needs = filter(None, (experiment.recipe, experiment.ledger))
    return (Section(partial(write_runs, experiment), tuple(needs)),)
