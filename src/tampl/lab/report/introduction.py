"""What the reader of a page needs first: system, observables and methods, colours and captions.

Every sentence is about what the data have. Data from elsewhere may lack closures, families of
initial microstates, several trajectories from each of them, or several training seeds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...description import Description, Observable
from ...errors import InputError
from ...evaluation.cases import Cases
from ...evaluation.metrics import FLOOR
from ...evaluation.suite import MEAN_TRAJECTORY, PERSISTENCE
from ...methods import METHODS
from ...microstates import Lattice, Particles
from ...microstates.grids import STATES
from ...microstates.particles import TYPES
from ..recipes import find_system
from .grids import name_of

__all__ = [
    "caption_cases",
    "caption_comparison",
    "caption_scales",
    "caption_trust",
    "describe_observables",
    "find_closures",
    "introduce",
    "list_colours",
    "read_description",
    "start_alike",
]

_SYSTEMS = {
    "sirs": (
        "an epidemic on a periodic lattice, whose sites are susceptible, infected or recovered "
        "and change at random"
    ),
    "mixing": "two types of Lennard-Jones particles that mix in a box",
    "polymer": "a chain of beads and rods that unfolds in an elongational flow",
}

_METHODS = {
    "tampl": (
        "encoder and transition trained in turn, the encoder against a frozen target, the "
        "transition on the frozen encoder"
    ),
    "tampl+": "TAMPL, then the law of latent state and macrostate refitted on its representation",
    "jld": "encoder, transition and readout trained jointly",
    "jld-sig": "joint training with latent states held near a Gaussian",
    "jld-vic": "joint training with the variance and covariance penalties of VICReg",
    "vamp": "latent states by the VAMP-2 score, with a linear transition",
    "jld-recon": "joint training that also reconstructs microstates",
    "two-stage-recon": "an autoencoder first, then a transition on its latent states",
    "macro-only": "a transition of the observables alone, without an encoder",
    "next-macro": "an encoder trained on present and next observables alone",
}

_PARTED = 2.0
"""How many times further apart than at first twins must be later for a figure of them."""

_SAME = 1e-6


def read_description(plain: Mapping[str, Any]) -> Description | None:
    """The description in a record; None where it has none, or one of an unknown kind."""
    try:
        return Description.model_validate(plain) if plain else None
    except InputError:  # a record can be read without the plug-in that made it
        return None


def introduce(description: Description | None, methods: Iterable[str]) -> list[str]:
    """Two sentences: what the system and its observables are, and what the methods do.

    Arguments:
        description: What the data are of; None leaves the first sentence out.
        methods: Names of the methods on the page.
    """
    known = {name_of(name): _describe_method(name) for name in methods}
    listed = "; ".join(f"{name}: {text}" if text else name for name, text in known.items())
    sentences = [
        "From one microstate, a trained model finds a latent state, advances it by a learnt "
        f"transition and reads the observables off. {listed}."
    ]
    if description is not None:
        sentences.insert(0, _describe_system(description))
    return sentences


def describe_observables(description: Description | None) -> dict[str, str]:
    """Name and unit of each observable by its symbol, and what times are measured in."""
    if description is None:
        return {}
    facts = {
        observable.symbol: _name_observable(observable) for observable in description.observables
    }
    return facts | {
        "time": f"in {description.time_unit}" if description.time_unit else "without a unit",
        "time between frames": _join_unit(description.interval, description.time_unit),
    }


def list_colours(description: Description | None) -> dict[str, str]:
    """States of a lattice or types of particles with their colours; empty for other kinds."""
    kind = None if description is None else description.microstate
    if description is not None and isinstance(kind, Lattice):
        names = getattr(_find_class(description), "state_names", ())
        texts = [names[n] if n < len(names) else f"state {n}" for n in range(kind.states)]
        colours: Sequence[str] = STATES
    elif isinstance(kind, Particles):
        texts, colours = [f"type {n}" for n in range(1, kind.types + 1)], TYPES
    else:
        return {}
    # Those beyond the last colour begin again with the first one.
    return {
        ", ".join(texts[place :: len(colours)]): color
        for place, color in enumerate(colours[: len(texts)])
    }


def find_closures(names: Iterable[str], methods: Iterable[str]) -> list[str]:
    """The names that are neither methods nor simple forecasts."""
    others = {*methods, FLOOR, MEAN_TRAJECTORY, PERSISTENCE, "reference"}
    return [name for name in names if name not in others]


def start_alike(cases: Cases) -> bool | None:
    """Whether the twins have the same macrostate at first; None where they do not part later.

    Distances are measured in the range of each observable over all cases.
    """
    if not cases.twins:
        return None
    one, two = (cases.case(index).reference.mean for index in cases.twins)
    every = np.concatenate([case.reference.mean for case in cases.cases])
    scale = np.nanmax(every, axis=0) - np.nanmin(every, axis=0)
    # Where a frame is missing, none differs.
    apart = np.nan_to_num(np.abs(one - two) / np.where(scale > 0, scale, 1.0))
    first, later = apart[0].max(), apart[1:].max(initial=0.0)
    if first <= _SAME:
        return True
    return False if later >= _PARTED * first else None


def caption_cases(cases: Cases, method: str) -> dict[str, str]:
    """The captions of `predictions` and `twins`.

    Arguments:
        cases: The cases that the figures show.
        method: The method whose forecasts they show.
    """
    closures = find_closures(cases.cases[0].predictions, [method])
    several = any(case.reference.std is not None for case in cases.cases)
    spread = any(
        method in case.predictions and case.predictions[method].std is not None
        for case in cases.cases
    )
    bands = "Bands are one standard deviation over the members of an ensemble"
    if not several:
        bands = "The simulation is a single trajectory"
        bands += "; bands are one standard deviation of the forecast" if spread else ""
    determined = "; closures are deterministic" if closures else ""
    text = "Initial microstates and their macroscopic futures"
    unseen = "No training has seen these microstates."
    captions = {"predictions": f"{text}. {bands}{determined}. {unseen}"}
    alike = start_alike(cases)
    if alike is not None:
        which = (
            "whose initial macrostates are the same"
            if alike
            else "whose initial macrostates are the nearest of all pairs"
        )
        same = "the same" if alike else "nearly the same"
        band = " Bands are one standard deviation of the simulations." if several else ""
        captions["twins"] = (
            f"Two test microstates {which}. A forecast that starts from the macrostate alone must "
            f"be {same} for both; a latent state of the microstate can tell them apart.{band}"
        )
    return captions


def caption_comparison(
    cases: Mapping[str, Cases], index: int, *, seed: int, snapshots: int
) -> str:
    """The caption of `comparison`.

    Arguments:
        cases: The cases of each method's run.
        index: The test microstate.
        seed: The seed of the runs.
        snapshots: How many microstates are on top.
    """
    found = {name: kept.case(index) for name, kept in cases.items()}
    several = any(case.reference.std is not None for case in found.values())
    spread = [case.predictions[name].std is not None for name, case in found.items()]
    top = "On top one simulated trajectory of microstates."
    if snapshots == 1:
        top = "On top the initial microstate."
    by = "by many simulations (black)" if several else "by one simulation (black)"
    band = ", and one standard deviation over members as a band" if any(spread) else ""
    if any(spread) and not all(spread):
        band += "; a deterministic method has no band"
    return (
        f"{top} Below, from the same initial microstate, the observables {by} and by each method: "
        f"the mean{band}. All panels of a column have the same range, that of the simulation with "
        f"a margin, and cut curves that leave it. Training seed {seed}."
    )


def caption_scales(seeds: Sequence[int]) -> str:
    """The caption of `latent scales`."""
    which = f"; seed {seeds[0]} strong, the others faint" if len(seeds) > 1 else ""
    return (
        f"Mean standard deviation of the latent coordinates over the data, epoch by epoch{which}. "
        "A collapse shows as a fall by orders of magnitude."
    )


def caption_trust(method: str) -> dict[str, str]:
    """The captions of `calibration` and `markov`.

    Arguments:
        method: The method whose forecasts they show.
    """
    return {
        "calibration": (
            f"Calibration of {name_of(method)} on test microstates, a row for each observable. "
            "Left: the fraction of simulated trajectories inside the central bands, and what it "
            "should be (dotted). Middle: the standard deviation of the ensemble beside the "
            "distance of a trajectory from its mean, in standard deviations of the training set; "
            "the two should agree. Right: ranks of the trajectories among the members, uniform "
            "(dotted) if the forecast is calibrated."
        ),
        "markov": (
            "Chapman-Kolmogorov test on validation trajectories: the transition runs k steps "
            "from encoded frames, and its 80 % band should cover 80 % of what is found k frames "
            "later, for every k."
        ),
    }


def _describe_system(description: Description) -> str:
    system = description.system
    text = _SYSTEMS.get(system) or _read_summary(_find_class(description))
    what = f"The system {system} is {text}" if system in _SYSTEMS else f"The system is {system}"
    if text and system not in _SYSTEMS:
        what += f" ({text})"
    observables = [
        f"{observable.symbol} ({_name_observable(observable)})"
        for observable in description.observables
    ]
    plural = "s are" if len(observables) > 1 else " is"
    interval = _join_unit(description.interval, description.time_unit)
    return (
        f"{what}; microstates are {description.microstate.in_words}, and the observable{plural} "
        f"{_enumerate(observables)}, at {description.frames} times {interval} apart."
    )


def _describe_method(name: str) -> str:
    # A run may be named with its seed or folder: "tampl seed 3".
    for key in (name, name.partition(" ")[0]):
        if key in _METHODS:
            return _METHODS[key]
        if key in METHODS:
            return _read_summary(type(METHODS[key]))
    return ""


def _find_class(description: Description) -> type | None:
    try:
        system = find_system(description)
    except InputError:  # parameters of another version
        return None
    return None if system is None else type(system)


def _read_summary(found: type | None) -> str:
    """The first line of a class's docstring, as a part of a sentence."""
    lines = ((found.__doc__ if found is not None else "") or "").strip().splitlines()
    return lines[0].rstrip(".") if lines else ""


def _enumerate(texts: Sequence[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def _name_observable(observable: Observable) -> str:
    return f"{observable.name}, in {observable.unit}" if observable.unit else observable.name


def _join_unit(value: float, unit: str) -> str:
    return f"{value:g} {unit}".strip()
