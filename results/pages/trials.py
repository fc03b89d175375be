"""Trials, one training seed each, on validation data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tampl.lab.report.grids import in_reading_order, name_of

from . import paper
from .records import Record, Records, Section
from .tables import listed, machine, table

PROBE = "probe-polymer-fine.json"
CONSERVED, CONSERVED_RUNS = "conserved-sirs.json", "compare-sirs-034c42c.json"
REACH = "reach-sirs.json"
PLUS_RECORD, EFFORT_RECORD = "trials-sirs-plus.json", "trials-sirs-effort.json"
MIXING_RECORD, MIXING_LAGS = "trials-mixing.json", "trials-mixing-mini-lags.json"

CORRELATED = "4565386"
"""The commit whose TAMPL+ had units of its law that were standardised, but still correlated."""

UNTOLD = ("training.epochs",)
"""Settings with a column of their own."""


def write_plus(records: Records) -> str:
    """TAMPL+ on SIRS."""
    found = records.load(PLUS_RECORD)
    return f"""\
### Trials of TAMPL+ on SIRS

{_introduce(found)} A trial without `lags` learns its representation from neighbouring frames. \
{_describe_units(found)}{_describe_lowest(found)} `results/{PLUS_RECORD}`.

{_tabulate(found)}
"""


def write_reach(records: Records) -> str:
    """What encoders of several depths could know of the future."""
    found = records.load(REACH)
    lines = [
        [
            f"{len(each['widths'])}",
            f"{each['sites_across']}",
            *(f"{error:.4f}" for error in each["squared_errors"]),
        ]
        for each in found["encoders"]
    ]
    lines.append(["Noise of the ensembles", "", *(f"{value:.4f}" for value in found["noise"])])
    ahead = [f"{frames} frames" for frames in found["ahead"]]
    return f"""\
### How far the encoder of SIRS sees

The mean over sites follows the convolutions, so what lies further apart than a site sees is not \
told together: an encoder that sees few sites across cannot know when two fronts will meet. \
Encoders that are taught nothing but the mean macrostate some frames ahead, from the first \
{found["first"]} frames of training trajectories, {found["epochs"]} epochs: squared error beside \
the mean of {found["members"]} members from {found["states"]} initial states of another data \
seed, in standardised units. The recipe has 4 convolutions. With TAMPL's losses alone deeper \
encoders were no better ([what was tried](#what-was-tried)). On {machine(found)}. \
`results/{REACH}`.

{table(["convolutions", "sites across", *ahead], lines)}
"""


def write_conserved(records: Records) -> str:
    """Three runs of TAMPL+, one of which ran along a conserved sum."""
    found, runs = records.load(CONSERVED), records.load(CONSERVED_RUNS)
    commit, scores = runs["provenance"]["commit"], runs["scores"]["tampl+"]["rmse"]
    models = found["models"]
    lines = [
        [name.replace("-", " "), *(f"{e['bounded']:.4f} ({e['plain']:.4f})" for e in own.values())]
        for name, own in models.items()
    ]
    columns = list(next(iter(models.values())))
    return f"""\
### A conserved sum

With lags, a wider refit and a wider map, TAMPL+ has at commit {commit} on the test set an RMSE \
of {listed([f"{value:.4f}" for value in scores["values"]])} with seeds \
{listed(runs["scores"]["tampl+"]["seeds"])} (`results/{CONSERVED_RUNS}`). Looked into on \
validation data: S + I + R is always 1, and the units of the refitted law gave this sum a \
coordinate, which is zero in all data, so that nothing held the map back there. With one seed \
it ran along it, and the flow that it is fitted to did not; with the coordinate taken away the \
same map is as good as those of the other seeds. Directions that do not vary have \
no coordinate since. These runs are not repeated yet, so the column above is still that of its \
own commit. RMSE against ensembles of {found["members"]} members from {found["states"]} initial \
states of another data seed, in brackets without limits and envelope; on {machine(found)}. \
`results/{CONSERVED}`.

{table(["TAMPL+", *columns], lines)}
"""


def write_effort(records: Records) -> str:
    """The same few rates and numbers of draws for every method on SIRS."""
    found, recipe = records.load(EFFORT_RECORD), records.runs("sirs")[0].recipe
    trials = sorted(found["trials"], key=_effort_of)
    methods = in_reading_order({trial["method"] for trial in trials})
    efforts, lines, chosen = list(dict.fromkeys(map(_effort_of, trials))), [], []
    for method in methods:
        own = {_effort_of(trial): trial for trial in trials if trial["method"] == method}
        best = min(own, key=lambda effort: own[effort]["validation"])
        cells = [_show_effort(own[key], key == best) if key in own else "" for key in efforts]
        lines.append([name_of(method), *cells])
        chosen.append(f"{name_of(method)} at {_name_effort(best)}")
    without = [name_of(key) for key in paper.SCORES["sirs"] if key not in methods]
    rate = recipe["training"]["transition"]["learning_rate"]
    held = _name_effort((rate, recipe["model"]["transition"]["draws"]))
    note = found["provenance"].get("note", "")
    absent = f" No trial of {listed(without)} is recorded." if without else ""
    return f"""\
### Equal effort for the methods on SIRS

The same rates of both parts and numbers of draws a pair for every method, \
{listed(sorted({trial["settings"]["training.epochs"] for trial in trials}))} epochs, training \
seed {listed(sorted({trial["seed"] for trial in trials}))}, on {machine(found)} at commit \
{listed(sorted({trial["commit"] for trial in trials}))}. A cell has the validation RMSE that \
chooses checkpoints, the lowest of a method in bold, and in brackets the RMSE against ensembles \
from initial states of another data seed, whose noise floor is \
{trials[0]["bounded"]["floor"][0]:.4f}. The first is without limits and envelope, the second \
inside both. Lowest validation RMSE of the recorded trials: \
{"; ".join(chosen)}. The recipe has {held}. {note}{absent} `results/{EFFORT_RECORD}`.

{table(["", *map(_name_effort, efforts)], lines)}
"""


def _effort_of(trial: Mapping[str, Any]) -> tuple[float, int]:
    """Rate and draws; a method that draws nothing has none."""
    settings = trial["settings"]
    return settings["training.transition.learning_rate"], settings.get("model.transition.draws", 0)


def _name_effort(effort: tuple[float, int]) -> str:
    rate, draws = effort
    return f"rate {rate:g}" + (f" with {draws} draws" if draws else "")


def _show_effort(trial: Mapping[str, Any], best: bool) -> str:
    validation = _show_validation(trial)
    return f"{f'**{validation}**' if best else validation} ({trial['bounded']['rmse']:.4f})"


def write_lags(records: Records) -> str:
    """TAMPL+ on the small lattice with representations that learn from several lags."""
    return f"""\
### Small lattice: several lags

TAMPL+ whose representation learns from pairs of several lags (`lags` of \
[`tampl`](method.md#tampl)), and which with `lambda_ahead` learns to tell later macrostates. \
{_introduce(records.load("trials-sirs-mini-lags.json"))} \
`results/trials-sirs-mini-lags.json`.

{_tabulate(records.load("trials-sirs-mini-lags.json"))}
"""


def write_mixing(records: Records) -> str:
    """TAMPL+ and TAMPL on the mixture."""
    found = records.load(MIXING_RECORD)
    return f"""\
### Binary mixing at the paper's size: trials

{_introduce(found)} An epoch has a third of the pairs. The encoder sees plain positions, or with \
`harmonics` waves of them; a representation without `lags` learns from neighbouring frames. \
{_describe_units(found)}{_describe_lowest(found)} `results/{MIXING_RECORD}`.

{_tabulate(found)}
"""


def write_mixing_lags(records: Records) -> str:
    """TAMPL+ on the mixture of a laptop with several lags, and a loss of later macrostates."""
    found = records.load(MIXING_LAGS)
    return f"""\
### Binary mixing on a laptop: several lags

{_introduce(found)} `lambda_ahead` is the weight of the loss of \
[later macrostates](method.md#tampl). `results/{MIXING_LAGS}`.

{_tabulate(found)}
"""


def write_polymer(records: Records) -> str:
    """TAMPL+ on chains with fine frames, and what its representations see of a fold."""
    found, probed = records.load("trials-polymer-fine.json"), records.load(PROBE)
    return f"""\
## Polymer with fine frames: trials

Short chains with as little strain from frame to frame as at the paper's size \
(`recipes/polymer-fine.toml`). {_introduce(found)} `results/trials-polymer-fine.json`.

{_tabulate(found)}

What a latent state tells of the fold: R² of a probe that predicts the logarithm of the time \
until a chain unfolds, fitted on {probed["training_samples"]} frames of training chains and \
scored on {probed["validation_states"]} other initial states, {probed["simulations_of_each"]} \
simulations of each. {100 * probed["never_unfold"]:.1f} % of the training chains do not unfold; \
they count as if they did in the last frame. Chance leaves {probed["ceiling"]:.2f}. The order of \
the beads does not show on a picture; strands are counted by hand (`benchmarks/probe.py`). On \
{machine(probed)}. `results/{PROBE}`.

{_tabulate_probes(probed)}
"""


def _tabulate_probes(record: Record) -> str:
    titles = {"strands": "extension, strands and widths", "chain": "extension and ordered beads"}
    lines = [
        [titles.get(name, name), f"{each['r2']:.3f}", f"{100 * each['share_of_ceiling']:.0f} %"]
        for name, each in record["probes"].items()
    ]
    return table(["features", "R²", "of the ceiling"], lines)


def _introduce(record: Record) -> str:
    return (
        f"On validation data: scores against ensembles from initial states of another data seed, "
        f"on {machine(record)}. In brackets the plain ones, without limits and envelope."
    )


def _describe_units(record: Record) -> str:
    """Says which trials had other units of the law of TAMPL+ than the present ones."""
    if all(trial["commit"] != CORRELATED for trial in record["trials"]):
        return ""
    return (
        f"In trials of {CORRELATED} the units of the law of TAMPL+ were standardised, but still "
        "correlated; later ones have the present units. "
    )


def _describe_lowest(record: Record) -> str:
    best = min(record["trials"], key=lambda trial: trial["bounded"]["rmse"])
    return f"Lowest RMSE: {best['name']}, {best['bounded']['rmse']:.4f}."


def _tabulate(record: Record) -> str:
    """Scores first: the settings are long, and a page may have to be moved to see them."""
    header = ["trial", "RMSE", "MMD²", "validation RMSE", "latent std", "epochs", "commit"]
    lines = [list(_cells(trial)) for trial in record["trials"]]
    floors = zip(*(trial["bounded"]["floor"] for trial in record["trials"]), strict=True)
    lines.append([name_of("floor"), *map(_show_range, floors), *[""] * 5])
    return table([*header, "settings"], lines)


def _cells(trial: Mapping[str, Any]) -> Iterator[str]:
    ours, plain = trial["bounded"], trial["plain"]
    yield trial["name"]
    for key in ("rmse", "mmd"):
        beside = f"{plain[key]:.4f}" if plain[key] < 100 else "over 100"
        yield f"{ours[key]:.4f} ({beside})"
    yield _show_validation(trial)
    yield f"{trial['latent'][-1]['std_mean']:.2g}"
    yield str(trial["settings"].get("training.epochs", "the recipe's"))
    yield trial["commit"]
    told = {key: value for key, value in trial["settings"].items() if key not in UNTOLD}
    short = {key.removeprefix("model.").removeprefix("methods.tampl+."): told[key] for key in told}
    yield ", ".join(f"`{key}` {value}" for key, value in short.items())


def _show_range(values: Sequence[float]) -> str:
    """One value, or the range of a floor that references simulated anew have changed."""
    ends = dict.fromkeys(f"{value:.4f}" for value in (min(values), max(values)))
    return " to ".join(ends)


def _show_validation(trial: Mapping[str, Any]) -> str:
    return f"{trial['validation']:.3f}" if trial["validation"] < 100 else "over 100"


PLUS = (
    Section(write_plus, (PLUS_RECORD,)),
    Section(write_reach, (REACH,), optional=True),
    Section(write_conserved, (CONSERVED, CONSERVED_RUNS), optional=True),
)
EFFORT = (Section(write_effort, (EFFORT_RECORD, "sirs"), optional=True),)
LAGS = (Section(write_lags, ("trials-sirs-mini-lags.json",), optional=True),)
MIXING = (Section(write_mixing, (MIXING_RECORD,)),)
MIXING_ON_LAPTOPS = (Section(write_mixing_lags, (MIXING_LAGS,), optional=True),)
POLYMER = (Section(write_polymer, ("trials-polymer-fine.json", PROBE), optional=True),)
