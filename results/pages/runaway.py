"""Why JLD runs away at the paper's size: ten trials, and one transition after another on one z."""

from collections.abc import Mapping, Sequence
from statistics import mean

from tampl.lab.report.grids import score_text

from .records import Record, Records, Section
from .tables import listed, machine, seeded, table

TRIALS, RECORD = "trials-sirs-jld.json", "runaway-sirs.json"
CHANGES = {
    "jld-recipe": "the recipe",
    "jld-float32": "float32 instead of bfloat16",
    "jld-rates-1e-3": "rates of 1e-3 instead of 4e-3",
    "jld-one-draw": "one draw a pair instead of 8",
    "jld-no-average": "no average of the weights",
    "jld-latent-8": "latent dimension 8 instead of 16",
    "jld-sixteen-equal-steps": "16 equal solver steps instead of 4 graded ones",
    "jld-velocity-512": "velocity network of 4 x 512 instead of 4 x 256",
    "jld-recipe-43": "training seed 43",
    "jld-batch-128": "batches of 128, half the epochs, rates of 2e-3",
}
"""What the table calls the trials, in its order."""
LAWS = {
    "as trained": "as trained",
    "own units": "fitted anew, own units",
    "unit width": "fitted anew, z divided by its std",
    "unit target": "fitted anew, only the target divided",
    "unit condition": "fitted anew, only the condition divided",
    "increments": "fitted anew, increments in their own units",
}
"""What the table calls the transitions."""
_UNITS = ("unit width", "increments")
"""Those in units as wide as the base noise."""


def write_runaway(records: Records) -> str:
    """The trials, the transitions, and what follows from them."""
    trials, found = records.load(TRIALS), records.load(RECORD)
    by_name = {trial["name"]: trial for trial in trials["trials"]}
    full, small = found["problems"]["sirs"], found["problems"]["sirs-mini"]
    lines = [_show_trial(title, by_name[name]) for name, title in CHANGES.items()]
    header = ["change", "ran away", "plain RMSE", "RMSE", "latent std"]
    return f"""\
### Why JLD runs away

{say_error(by_name)} {say_cause(full)}

JLD itself, one change at a time: {by_name["jld-recipe"]["settings"]["training.epochs"]} epochs \
where nothing else is said, on {machine(trials)} at commit {trials["provenance"]["commit"]}, \
scored on {full["initial_states"]} initial states of data seed 1; no test data were read. Ran \
away: members that leave the range of true values doubled to both sides, in the last quarter of \
the horizon. The plain RMSE is without envelope and limits, the other one inside both. \
{say_lucky(by_name)}`results/{TRIALS}`.

{table(header, lines)}

Transitions on one frozen representation, that of the recipe's trial: the new ones have the \
same velocity network, {full["steps"]:,} steps and {full["pairs"]:,} pairs, \
{seeded(full["seeds"]).lower()}, and differ in the units alone in which they see z; \
increments in their own units were standardised one by one. All are \
rolled out freely, and RMSE is plain. Outside: members outside the envelope of the training \
states in the last frame. The error of a step is that of its mean, the true noise included, \
beside the increment. From afar: states that run away from three times the distance of training \
states to their centre. On {machine(found)}. `results/{RECORD}`.

{_tabulate(full)}

{say_rest(full, small)}
"""


def say_error(trials: Mapping[str, Record]) -> str:
    """JLD's error with and without envelope, in the recipe's trial and in all."""
    recipe = trials["jld-recipe"]
    away = [trial for trial in trials.values() if _last(trial) > 0]
    shares = sorted(_last(trial) for trial in away)
    stds = sorted(_latent_std(trial) for trial in trials.values())
    return (
        f"JLD's RMSE is {score_text(recipe['plain']['rmse'])} without envelope and "
        f"{score_text(recipe['bounded']['rmse'])} inside it; of {len(trials)} trials, the "
        f"recipe's and {len(trials) - 1} with a change, {len(away)} run away "
        f"({_percent(shares[0])} to {_percent(shares[-1])} of members), and in all the latent std "
        f"ends between {stds[0]:.3f} and {stds[-1]:.3f}."
    )


def say_lucky(trials: Mapping[str, Record]) -> str:
    """Trials that stayed, but only at the epoch that was chosen."""
    best = {name: min(trial["validations"]) for name, trial in trials.items()}
    lucky = [name for name, trial in trials.items() if not _last(trial)]
    return "".join(
        f"The trial of {CHANGES[name]} was saved by its checkpoint: its validation RMSE was "
        f"{best[name]:.2f} there and {trials[name]['validations'][-1]:.1f} at the end. "
        for name in lucky
        if trials[name]["validations"][-1] > 2 * best[name]
    )


def say_cause(full: Record) -> str:
    """What stops it on the same representation."""
    own, unit, increments = (full["laws"][name] for name in ("own units", *_UNITS))
    return (
        f"The cause is the collapsed scale: on one frozen encoder and readout, transitions fitted "
        f"anew in the units of that z, of std {full['latent_std']:.3f}, carry "
        f"{_shares(own, 'outside_envelope')} of the members out of the region of the training "
        f"states and {_shares(own)} run away, while of the same transitions with z divided by "
        f"that one number {_shares(unit, 'outside_envelope')} end outside and {_shares(unit)} run "
        f"away, and with increments in their own units {_shares(increments)} do."
    )


def say_rest(full: Record, small: Record) -> str:
    """What it is not, whom it takes, and what stays open."""
    own, trained = small["laws"]["own units"], full["as trained"]
    families, states = trained["members_by_family"], full["families"]
    worst = max(families, key=families.__getitem__)
    others = {name: share for name, share in families.items() if name != worst}
    rest = sum(states[name] * share for name, share in others.items()) / sum(
        states[name] for name in others
    )
    lacks = "" if worst in small["families"] else " and which the small lattice does not have"
    later = max(own, key=lambda law: law["members"])
    return f"""\
It does not need the noise of a step: the mean of a step runs away by itself from \
{trained["without_noise"]} of {full["initial_states"]} initial states. Members run away after the \
epidemic has peaked (median frame {trained["first_frame"]:.0f}): {_percent(families[worst])} of \
those that start from {worst.removeprefix("K=")} clusters, whose epidemic is the fastest{lacks}, \
and {_percent(rest)} of the others. The scale decides whether members leave the region of the \
training states, not what becomes of them there: from three times the distance a part of the \
states runs away with every transition of the table. {_say_half(full)}The small lattice is safer \
but not safe. JLD's latent std collapses there too, to {small["latent_std"]:.3f}, and \
{_percent(small["as trained"]["members"])} of its members run away in {small["horizon"]} frames; \
of transitions that are fitted anew in its units {_listed_shares(own)} do, in the worst case at a \
median frame of {later["first_frame"]:.0f}. Why its own transition leads back from afar \
({_percent(small["as trained"]["from_afar"]["3"])} run away) is open."""


def _say_half(full: Record) -> str:
    """Which of the two units it is, where that was measured."""
    laws = full["laws"]
    if not {"unit target", "unit condition"} <= laws.keys():
        return ""
    target, condition = (
        _shares(laws[name], "outside_envelope") for name in ("unit target", "unit condition")
    )
    return (
        f"Of the two units it is that of the target, which is narrow beside the base noise: with "
        f"the target alone divided {target} of the members end outside, with the condition alone "
        f"{condition}. "
    )


def _show_trial(title: str, trial: Record) -> list[str]:
    return [
        title,
        _percent(_last(trial)),
        score_text(trial["plain"]["rmse"]),
        score_text(trial["bounded"]["rmse"]),
        f"{_latent_std(trial):.3f}",
    ]


def _tabulate(full: Record) -> str:
    header = ["transition", "ran away", "outside", "RMSE", "error of a step", "from afar"]
    rows = {"as trained": [full["as trained"]], **full["laws"]}
    lines = [
        [
            LAWS[name],
            _listed_shares(found),
            listed([_percent(law["outside_envelope"]) for law in found]),
            listed([score_text(law["rmse"]) for law in found]),
            listed([f"{law['one_step']:.3f}" for law in found]),
            listed([_percent(law["from_afar"]["3"]) for law in found]),
        ]
        for name, found in rows.items()
    ]
    return table(header, lines)


def _last(trial: Record) -> float:
    return trial["runaway"]["members_by_quarter"][-1]


def _latent_std(trial: Record) -> float:
    return trial["latent"][-1]["std_mean"]


def _shares(found: Sequence[Record], key: str = "members") -> str:
    shares = [law[key] for law in found]
    return f"{_percent(mean(shares))} ({_percent(min(shares))} to {_percent(max(shares))})"


def _listed_shares(found: Sequence[Record]) -> str:
    return listed([_percent(law["members"]) for law in found])


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.1f} %" if 0 < percent < 10 or 99 < percent < 100 else f"{percent:.0f} %"


SECTIONS = (Section(write_runaway, (TRIALS, RECORD)),)
