r"""Lattices: fractions of states, order parameters of Ising and Potts models, energies.

Site i of N is in state s_i = 0, ..., q - 1, and f_a is the fraction of sites in state a.
Neighbours are those along the axes, each pair counted once.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt

from ..description import Observable
from ..errors import InputError
from ..microstates import Lattice, Microstate
from .base import ObservableMap, Observer

__all__ = [
    "Fraction",
    "Fractions",
    "IsingEnergy",
    "Magnetisation",
    "PottsEnergy",
    "PottsOrder",
    "refuse_unknown_state",
]


def refuse_unknown_state(state: int, kind: Lattice) -> None:
    """Refuses a state that the sites of a lattice do not have."""
    if state >= kind.states:
        raise InputError(f"`state` is {state}; states of the lattice are 0 to {kind.states - 1}")


class Fraction(ObservableMap):
    """Fraction of the sites that are in one state.

    Attributes:
        state: The state.
    """

    name: Literal["fraction"] = "fraction"
    state: NonNegativeInt = 1
    kinds: ClassVar = (Lattice,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or f"f{self.state}"
        name = f"fraction in state {self.state}"
        return (Observable(name=name, symbol=symbol, lower=0, upper=1),)

    def begin(self, kind: Microstate) -> Observer:
        refuse_unknown_state(self.state, _lattice(kind))
        return lambda stored: (stored == self.state).mean(axis=(1, 2))


class Fractions(ObservableMap):
    """Fractions of the sites in every state, which add up to one: q observables."""

    name: Literal["fractions"] = "fractions"
    kinds: ClassVar = (Lattice,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or "f"
        return tuple(
            Observable(name=f"fraction in state {a}", symbol=f"{symbol}{a}", lower=0, upper=1)
            for a in range(_lattice(kind).states)
        )

    def begin(self, kind: Microstate) -> Observer:
        states = range(_lattice(kind).states)

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            return np.stack([(stored == a).mean(axis=(1, 2)) for a in states], axis=1)

        return observe


class Magnetisation(ObservableMap):
    """Mean spin of a lattice of two states, spins being -1 for state 0 and +1 for state 1.

    M = (1 / N) sum_i (2 s_i - 1).
    """

    name: Literal["magnetisation"] = "magnetisation"
    kinds: ClassVar = (Lattice,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or "M"
        return (Observable(name="magnetisation", symbol=symbol, lower=-1, upper=1),)

    def begin(self, kind: Microstate) -> Observer:
        _refuse_more_states(self.name, _lattice(kind))
        return lambda stored: 2 * stored.mean(axis=(1, 2)) - 1


class PottsOrder(ObservableMap):
    """Order parameter of a Potts model: 0 for equal fractions of all states, 1 for one state.

    (q max_a f_a - 1) / (q - 1); with two states, the absolute magnetisation.
    """

    name: Literal["potts-order"] = "potts-order"
    kinds: ClassVar = (Lattice,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or "m"
        return (Observable(name="order parameter", symbol=symbol, lower=0, upper=1),)

    def begin(self, kind: Microstate) -> Observer:
        q = _lattice(kind).states
        fractions = Fractions().begin(kind)
        return lambda stored: (q * fractions(stored).max(axis=1) - 1) / (q - 1)


class IsingEnergy(ObservableMap):
    """Energy per site of an Ising model, spins being -1 for state 0 and +1 for state 1.

    E / N = -(coupling / N) sum_<ij> S_i S_j - (field / N) sum_i S_i.

    Attributes:
        coupling: Coupling of neighbours.
        field: External field.
        periodic: Whether the lattice closes on itself.
    """

    name: Literal["ising-energy"] = "ising-energy"
    coupling: float = 1.0
    field: float = 0.0
    periodic: bool = True
    kinds: ClassVar = (Lattice,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        return (Observable(name="energy per site", symbol=self.symbol or "E"),)

    def begin(self, kind: Microstate) -> Observer:
        _refuse_more_states(self.name, _lattice(kind))

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            spins = 2 * stored.astype(np.int64) - 1
            bonds = sum((a * b).sum(axis=(1, 2)) for a, b in _neighbours(spins, self.periodic))
            sites = spins[0].size
            return -self.coupling * bonds / sites - self.field * spins.mean(axis=(1, 2))

        return observe


class PottsEnergy(ObservableMap):
    """Energy per site of a Potts model, in which neighbours in the same state attract.

    E / N = -(coupling / N) sum_<ij> [s_i = s_j].

    Attributes:
        coupling: Coupling of neighbours.
        periodic: Whether the lattice closes on itself.
    """

    name: Literal["potts-energy"] = "potts-energy"
    coupling: float = 1.0
    periodic: bool = True
    kinds: ClassVar = (Lattice,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        return (Observable(name="energy per site", symbol=self.symbol or "E"),)

    def begin(self, kind: Microstate) -> Observer:
        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            bonds = sum((a == b).sum(axis=(1, 2)) for a, b in _neighbours(stored, self.periodic))
            return -self.coupling * bonds / stored[0].size

        return observe


def _lattice(kind: Microstate) -> Lattice:
    assert isinstance(kind, Lattice)
    return kind


def _refuse_more_states(name: str, kind: Lattice) -> None:
    if kind.states != 2:
        raise InputError(
            f"`{name}` needs a lattice of two states, and this one has {kind.states}: choose "
            "potts-order, potts-energy or fraction"
        )


def _neighbours(
    sites: NDArray[Any], periodic: bool
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Both ends of all bonds along each axis; an axis of one site has none."""
    for axis in (1, 2):
        size = sites.shape[axis]
        first, rest = np.split(sites, [1], axis=axis)
        yield np.take(sites, range(size - 1), axis=axis), rest
        # A ring of two sites has one bond, not two.
        if periodic and size > 2:
            yield np.take(sites, [size - 1], axis=axis), first
