"""What data are of: the kind of microstate, the observables and the times of the frames.

A description travels with data sets, stores and models, so that a model is never applied to data
of another system without notice. It also says what is known of the observables beforehand: their
limits, which of them are conserved, and which add up to a constant. Forecasts respect that.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from .errors import InputError
from .frozen import Frozen
from .microstates import AnyMicrostate

__all__ = ["Description", "Observable", "Total", "without_knowledge"]


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
