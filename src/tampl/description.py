"""What data are of: the kind of microstate, the observables and the times of the frames.

A description travels with data sets, stores and models, so that a model is never applied to data
of another system without notice. It also says what is known of the observables beforehand: their
limits, which of them are conserved, and which add up to a constant. Forecasts respect that.
"""

import json
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from .errors import InputError
from .frozen import Frozen
from .microstates import AnyMicrostate

__all__ = [
    "Description",
    "Observable",
    "Total",
    "first_difference",
    "match_interval",
    "refuse_other_system",
    "without_knowledge",
]

_ABSENT = object()

# What rounding may do to the ratio of two intervals, relative to it.
_ROUNDING = 1e-9


class Observable(Frozen):
    """One macroscopic feature.

    Attributes:
        name: Its name in words.
        symbol: Its symbol.
        unit: Its unit; empty for a pure number.
        lower: The lowest value it can have; None for no limit.
        upper: The highest value it can have; None for no limit.
        conserved: Whether it keeps its initial value along every trajectory.
    """

    name: str
    symbol: str
    unit: str = ""
    lower: float | None = None
    upper: float | None = None
    conserved: bool = False

    @model_validator(mode="after")
    def _refuse_empty_range(self) -> Self:
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise InputError(
                f"`lower` is {self.lower:g} and `upper` is {self.upper:g} for {self.name!r}; the "
                "lower limit must be below the upper one"
            )
        return self

    @model_serializer(mode="wrap")
    def _leave_out_what_is_not_known(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tree = dump(self)
        known = {key for key in _KNOWLEDGE if tree[key] is not None and tree[key] is not False}
        return {k: v for k, v in tree.items() if k not in _KNOWLEDGE or k in known}


_KNOWLEDGE = ("lower", "upper", "conserved")


class Total(Frozen):
    """Observables that add up to a constant, such as S + I + R = 1."""

    symbols: tuple[str, ...]
    value: float


class Description(Frozen):
    """What must agree between a data set and a model: the system and how it is observed."""

    system: str
    parameters: dict[str, Any]
    microstate: AnyMicrostate
    observables: tuple[Observable, ...]
    interval: float
    frames: int
    # Empty for our systems, which have no units; without it no store or model of format 1 is read.
    time_unit: str = ""
    totals: tuple[Total, ...] = ()

    @property
    def times(self) -> NDArray[np.float64]:
        """Times of the frames, t = 0 first, shape (F,)."""
        return self.interval * np.arange(self.frames, dtype=np.float64)

    def thin(self, every: int) -> "Description":
        """That of every `every`-th frame."""
        thinned = {"interval": every * self.interval, "frames": (self.frames - 1) // every + 1}
        return self if every == 1 else self.model_copy(update=thinned)

    @model_validator(mode="after")
    def _refuse_unknown_symbols(self) -> Self:
        known = {observable.symbol for observable in self.observables}
        for total in self.totals:
            if unknown := [symbol for symbol in total.symbols if symbol not in known]:
                raise InputError(
                    f"`totals` names {unknown[0]!r}; observables are {', '.join(sorted(known))}"
                )
        return self

    @model_serializer(mode="wrap")
    def _leave_out_no_totals(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tree = dump(self)
        return tree if self.totals else {k: v for k, v in tree.items() if k != "totals"}


def without_knowledge(tree: dict[str, Any]) -> dict[str, Any]:
    """A description as a JSON tree without what is known of the observables beforehand.

    That knowledge changes no data: stores and models from before it was written down are of the
    same system.
    """
    observables = [
        {key: value for key, value in observable.items() if key not in _KNOWLEDGE}
        for observable in tree["observables"]
    ]
    return {k: v for k, v in tree.items() if k != "totals"} | {"observables": observables}


def refuse_other_system(ours: Description, data: Description, *, whose: str) -> None:
    """Refuses data of another system than ours; trajectories may have other lengths.

    Arguments:
        ours: What a model or a recipe speaks of.
        data: What a store or a data set holds.
        whose: What the message calls ours, e.g. "the model".
    """
    for key in ("system", "microstate", "observables", "interval", "parameters"):
        here, there = (
            without_knowledge(record.model_dump(mode="json"))[key] for record in (ours, data)
        )
        if key == "parameters":
            here, there = ({**parameters, "frames": None} for parameters in (here, there))
        difference = first_difference({key: here}, {key: there})
        if difference is not None:
            where, mine, theirs = difference
            raise InputError(
                f"{whose} and the data are of different systems: `{where}` is {mine} in {whose}, "
                f"{theirs} in the data; give data of the same system"
            )


def match_interval(ours: Description, data: Description, *, whose: str) -> int:
    """Refuses data of another system than ours; returns how many of its intervals are one of ours.

    The arguments are those of `refuse_other_system`. The interval of ours may be a whole multiple
    of that of the data, as it is for a model that was trained with a lag.
    """
    ratio = ours.interval / data.interval
    every = max(1, round(ratio))
    if abs(ratio - every) <= _ROUNDING * ratio:
        data = data.model_copy(update={"interval": ours.interval})
    refuse_other_system(ours, data, whose=whose)
    return every


def first_difference(here: Any, there: Any, key: str = "") -> tuple[str, str, str] | None:  # noqa: ANN401
    """Finds the first key at which two JSON trees differ.

    Returns:
        The dotted key and both values as JSON ("absent" where there is none), or None.

    Example:
        >>> first_difference({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 4})
        ('a.b', '1', '3')
    """
    if isinstance(here, dict) and isinstance(there, dict):
        branches = [(k, here.get(k, _ABSENT), there.get(k, _ABSENT)) for k in {**here, **there}]
    elif isinstance(here, list) and isinstance(there, list):
        pairs = enumerate(zip_longest(here, there, fillvalue=_ABSENT))
        branches = [(str(i), a, b) for i, (a, b) in pairs]
    else:
        a, b = _show(here), _show(there)
        return None if a == b else (key, a, b)
    differences = (first_difference(a, b, f"{key}.{k}".lstrip(".")) for k, a, b in branches)
    return next((difference for difference in differences if difference), None)


def _show(value: Any) -> str:  # noqa: ANN401
    return "absent" if value is _ABSENT else json.dumps(value)
