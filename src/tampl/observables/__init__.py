"""Common observables computed from microstates, by name; and one's own.

    y = tampl.observe(x, ["magnetisation", "cluster-count:state=1"], microstate=kind)

An observable is written as

    NAME                    radius-of-gyration
    NAME:KEY=VALUE,...      density:x=0..0.5,type=1
    MODULE:FUNCTION         mine:width

where a range is two numbers with dots between, and yes or no say whether. Every map takes
`symbol=...`. The table of all of them is in `docs/observables.md`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..description import Observable
from ..errors import InputError
from ..microstates import Microstate
from ..plugins import find_entry, known_names, register_entry
from .base import Interval, ObservableMap, Observer
from .clusters import ClusterCount, LargestCluster
from .conformations import EndToEndDistance, Extension, RadiusOfGyration
from .densities import Density, MeanWavenumber, ParticleNumber, StructureFactorPeak
from .displacements import MeanSquaredDisplacement
from .functions import FunctionMap, import_map
from .lattices import (
    Fraction,
    Fractions,
    IsingEnergy,
    Magnetisation,
    PottsEnergy,
    PottsOrder,
)
from .orders import HexaticOrder, NematicOrder, PhaseOrder

__all__ = [
    "OBSERVABLES",
    "ClusterCount",
    "Density",
    "EndToEndDistance",
    "Extension",
    "Fraction",
    "Fractions",
    "FunctionMap",
    "HexaticOrder",
    "Interval",
    "IsingEnergy",
    "LargestCluster",
    "Magnetisation",
    "MeanSquaredDisplacement",
    "MeanWavenumber",
    "NematicOrder",
    "ObservableMap",
    "Observer",
    "ParticleNumber",
    "PhaseOrder",
    "PottsEnergy",
    "PottsOrder",
    "RadiusOfGyration",
    "StructureFactorPeak",
    "describe_observables",
    "find_observable",
    "known_observables",
    "observe",
    "register_observable",
]

_GROUP = "tampl.observables"

_MAPS: tuple[type[ObservableMap], ...] = (
    *(Fraction, Fractions, Magnetisation, PottsOrder, IsingEnergy, PottsEnergy),
    *(Density, ParticleNumber, LargestCluster, ClusterCount),
    *(StructureFactorPeak, MeanWavenumber, HexaticOrder),
    *(RadiusOfGyration, EndToEndDistance, Extension, NematicOrder, PhaseOrder),
    MeanSquaredDisplacement,
)

OBSERVABLES: dict[str, type[ObservableMap]] = {
    map_.model_fields["name"].default: map_ for map_ in _MAPS
}
"""Every map by its name."""

AnyObservable = str | ObservableMap | Callable[..., Any]
"""An observable as text, as a map, or as a function of one microstate."""


def register_observable(name: str, map_: type[ObservableMap]) -> None:
    """Makes a map from outside of the package known by its name.

    Arguments:
        name: The default of its field `name`.
        map_: A subclass of `tampl.observables.ObservableMap`.
    """
    register_entry(OBSERVABLES, name, map_, what="observable")


def known_observables() -> list[str]:
    """Every name, those of installed plug-ins too."""
    return known_names(OBSERVABLES, _GROUP)


def find_observable(text: AnyObservable) -> ObservableMap:
    """The map that a text stands for: NAME, NAME:KEY=VALUE,... or MODULE:FUNCTION.

    Arguments:
        text: The text. A module is imported, and so runs; a map and a function are taken too.

    Example:
        >>> find_observable("density:x=0..0.5,type=1").x
        (0.0, 0.5)
    """
    if isinstance(text, ObservableMap):
        return text
    if callable(text):
        return FunctionMap.of(text)
    if not isinstance(text, str):
        raise InputError(
            f"`observable` is {text!r}; give a name, NAME:KEY=VALUE or MODULE:FUNCTION"
        )
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text):
        return import_map(text)
    name, _, rest = text.partition(":")
    settings: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, found, value = (word.strip() for word in part.partition("="))
        if not found or not key or key == "name" or key in settings:
            raise InputError(
                f"`observable` is {text!r}; after the colon come settings such as key=value, each "
                "once, with commas between"
            )
        settings[key] = value
    map_ = find_entry(OBSERVABLES, name, group=_GROUP, key="observable")
    try:
        return map_.model_validate(settings)
    except InputError as error:
        known = ", ".join(key for key in map_.model_fields if key != "name")
        raise InputError(f"`observable` is {text!r}: {error}; its settings are {known}") from error


def observe(
    x: ArrayLike,
    observables: AnyObservable | Sequence[AnyObservable],
    *,
    microstate: Microstate,
    present: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Computes observables of trajectories.

    Arguments:
        x: Microstates in stored form, (n, F, *shape).
        observables: One observable or several: names with settings, maps, or one's own functions
            of one microstate.
        microstate: The kind of microstate, such as `tampl.Lattice(...)`.
        present: Which frames exist, (n, F); all by default.

    Returns:
        Macrostates (n, F, m), in the order of `describe_observables`; NaN where a frame is absent.

    Example:
        >>> import tampl
        >>> x = np.array([[[[0, 1], [1, 1]], [[0, 0], [1, 1]]]])
        >>> kind = tampl.Lattice(height=2, width=2, states=2)
        >>> tampl.observe(x, ["magnetisation", "fraction:state=0"], microstate=kind).tolist()
        [[[0.5, 0.25], [0.0, 0.5]]]
    """
    maps, states = _find_all(observables), np.asarray(x)
    for map_ in maps:
        map_.refuse_other_kind(microstate)
    if states.ndim != len(microstate.shape) + 2 or not len(states):
        raise InputError(
            f"`x` has shape {states.shape}; trajectories of {microstate.in_words} have shape "
            f"(trajectories, frames, {', '.join(map(str, microstate.shape))})"
        )
    there = np.asarray(True if present is None else present, dtype=bool)
    if there.shape not in ((), states.shape[:2]):
        raise InputError(
            f"`present` has shape {there.shape}; it must be (trajectories, frames), "
            f"{states.shape[:2]}"
        )
    there = np.broadcast_to(there, states.shape[:2])
    y = np.full((*there.shape, len(describe_observables(maps, microstate))), np.nan)
    for number, (frames, known) in enumerate(zip(states, there, strict=True)):
        try:
            y[number, known] = np.concatenate(
                [map_.observe(frames[known], microstate) for map_ in maps], axis=1
            )
        except InputError as error:
            raise InputError(f"trajectory {number}: {error}") from error
    return y


def describe_observables(
    observables: AnyObservable | Sequence[AnyObservable], microstate: Microstate
) -> tuple[Observable, ...]:
    """What `observe` gives: names, symbols, units and limits, for `tampl.Dataset`.

    A symbol that an observable before has too is numbered.

    Arguments:
        observables: One observable or several, as for `observe`.
        microstate: The kind of microstate.
    """
    found: dict[str, Observable] = {}
    for map_ in _find_all(observables):
        map_.refuse_other_kind(microstate)
        for observable in map_.describe(microstate):
            symbol, number = observable.symbol, 1
            while symbol in found:
                number += 1
                symbol = f"{observable.symbol}_{number}"
            found[symbol] = observable.model_copy(update={"symbol": symbol})
    return tuple(found.values())


def _find_all(observables: AnyObservable | Sequence[AnyObservable]) -> list[ObservableMap]:
    one = isinstance(observables, str | ObservableMap) or callable(observables)
    listed: Sequence[Any] = [observables] if one else list(observables)  # type: ignore[arg-type]
    if not listed:
        raise InputError("`observables` is empty; give one observable at least")
    return [find_observable(text) for text in listed]
