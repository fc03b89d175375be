"""A user's own function as an observable: `MODULE:FUNCTION`.

The function takes one microstate in stored form and returns one number. A function of two
arguments is also given the kind of microstate, which for example decodes particles:
`positions, types = kind.decode(frame)`. A module may instead hold an `ObservableMap`, for several
observables with units and limits. A module is imported only where a user typed its name.
"""

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..description import Observable
from ..errors import InputError
from ..microstates import Microstate
from .base import ObservableMap, Observer

__all__ = ["FunctionMap", "import_map"]


class FunctionMap(ObservableMap):
    """A user's own function of one microstate, which returns a number.

    Attributes:
        function: The function.
        source: What messages call it, such as "mine:width".
    """

    name: Literal["function"] = "function"
    function: Callable[..., Any]
    source: str
    kinds: ClassVar = (Microstate,)

    @classmethod
    def of(cls, function: Callable[..., Any], source: str = "") -> "FunctionMap":
        """The map of a function; its own name is the observable's."""
        return cls(function=function, source=source or getattr(function, "__name__", "function"))

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        name = self.source.rpartition(":")[2]
        return (Observable(name=name, symbol=self.symbol or name),)

    def begin(self, kind: Microstate) -> Observer:
        extra = (kind,) if _takes_two(self.function) else ()
        done = 0

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            nonlocal done
            values = [self._call(frame, extra, done + n) for n, frame in enumerate(stored)]
            done += len(stored)
            return np.array(values)

        return observe

    def _call(self, frame: NDArray[Any], extra: tuple[Microstate, ...], number: int) -> float:
        try:
            value = np.asarray(self.function(frame, *extra))
        except Exception as error:  # whatever somebody else's code raises
            raise InputError(
                f"`{self.source}` raises {type(error).__name__} in frame {number}: "
                f"{' '.join(str(error).split())}"
            ) from error
        if value.size != 1 or value.dtype.kind not in "biuf" or not np.isfinite(value).all():
            shown = f"{value.item()!r}" if value.size == 1 else f"of shape {value.shape}"
            raise InputError(
                f"`{self.source}` returns a value {shown} in frame {number}; it must return one "
                "finite number for each microstate"
            )
        return float(value.item())


def import_map(text: str) -> ObservableMap:
    """The map that `MODULE:NAME` stands for; a module in the current folder counts.

    Arguments:
        text: The module and the name of a function or of an `ObservableMap` in it.
    """
    place, _, name = text.partition(":")
    sys.path.insert(0, "")
    try:
        module = import_module(place)
    except ModuleNotFoundError as error:
        raise InputError(
            f"`observable` is {text!r}, and there is no module {error.name!r}: give "
            "MODULE:FUNCTION of a module in this folder or of an installed package"
        ) from error
    except Exception as error:  # whatever somebody else's code raises
        raise InputError(
            f"`observable` is {text!r}, and its module raises {type(error).__name__} when it is "
            f"imported: {' '.join(str(error).split())}"
        ) from error
    finally:
        sys.path.remove("")
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, ObservableMap):
        found = found.model_validate({})
    if isinstance(found, ObservableMap):
        return found
    if not callable(found):
        known = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        listed = f"; its functions are {', '.join(sorted(known))}" if known else ""
        raise InputError(f"`observable` is {text!r}, and {place} has no function {name!r}{listed}")
    return FunctionMap.of(found, text)


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function has a second argument that must be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some compiled functions do not tell
        return False
    needed = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) >= 2
