"""Families of microstates that the page draws from, with what their sliders change.

Every system has its own initial microstates. Those of the package offer more: clusters and
fractions of an epidemic, patterns of a mixture that are scrambled or made uneven, and the fixed
chains of the polymer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..seeding import numpy_generator
from ..system import System

if TYPE_CHECKING:
    from ..systems import SIRS, Mixing, Polymer

__all__ = ["FAMILIES", "Family", "Slider", "find_families"]

Values = Mapping[str, float]


@dataclass(frozen=True)
class Slider:
    """A number that a family is drawn with."""

    key: str
    label: str
    lower: float
    upper: float
    step: float
    default: float


@dataclass(frozen=True)
class Family:
    """Microstates of one sort.

    Attributes:
        name: The name, unique among the families of a system.
        draws: Makes a microstate in stored form of the sliders' values and a seed.
        sliders: The sliders.
        random: Whether two draws differ.
    """

    name: str
    draws: Callable[[Values, int], NDArray[Any]]
    sliders: tuple[Slider, ...] = ()
    random: bool = True

    def draw(self, values: Values, seed: int) -> NDArray[Any]:
        """Draws a microstate; sliders that are not named have their defaults.

        Arguments:
            values: Values of sliders by key.
            seed: Governs what is random.
        """
        known = {slider.key: slider for slider in self.sliders}
        for key, value in values.items():
            if key not in known:
                raise InputError(f"`{key}` is no slider of {self.name!r}: {', '.join(known)}")
            lower, upper = known[key].lower, known[key].upper
            if not lower <= value <= upper:
                raise InputError(f"`{key}` is {value:g}; it must be from {lower:g} to {upper:g}")
        defaults = {key: slider.default for key, slider in known.items()}
        return self.draws({**defaults, **values}, seed)


def find_families(system: System | None) -> dict[str, Family]:
    """The families of a system by name; without a simulator there are none."""
    if system is None:
        return {}
    find = FAMILIES.get(system.description.system, _own_initial_states)
    return {family.name: family for family in find(system)}


def _own_initial_states(system: System) -> list[Family]:
    def draw(_: Values, seed: int) -> NDArray[Any]:
        return system.initial(numpy_generator(seed, "studio")).microstate

    return [Family("initial states of the system", draw)]


def _epidemics(system: "SIRS") -> list[Family]:
    sites = system.size**2

    def draw(values: Values, seed: int) -> NDArray[Any]:
        generator = numpy_generator(seed, "studio")
        covered = system.model_copy(update={"coverage": values["infected"]})
        infected = max(1, round(values["infected"] * sites))
        lattice = covered.pattern(min(int(values["clusters"]), infected), generator).reshape(-1)
        susceptible = np.flatnonzero(lattice == 0)
        immune = min(round(values["recovered"] * sites), len(susceptible))
        lattice[generator.permutation(susceptible)[:immune]] = 2
        return lattice.reshape(system.size, system.size)

    most = min(64, sites // 4)
    few = min(4, most)
    return [
        Family(
            "clusters",
            draw,
            (
                Slider("clusters", "clusters K", 1, most, 1, few),
                Slider("infected", "infected", 0.01, 0.9, 0.01, system.coverage),
                Slider("recovered", "recovered", 0, 0.9, 0.01, 0),
            ),
        )
    ]


def _mixtures(system: "Mixing") -> list[Family]:
    # A slider that moves changes the types alone; the particles stay where they are.
    @lru_cache(maxsize=32)
    def arrange(pattern: str, seed: int) -> NDArray[np.uint16]:
        return system.arrange(pattern, numpy_generator(seed, "studio", pattern))

    def draw(pattern: str, values: Values, seed: int) -> NDArray[Any]:
        state = arrange(pattern, seed).copy()
        generator, types = numpy_generator(seed, "studio", "types"), state[:, -1]
        order = generator.permutation(len(types))
        scrambled = order[: round(values["scrambled"] * len(types))]
        types[scrambled] = types[generator.permutation(scrambled)]
        wanted = round(values["share"] * len(types))
        there = np.count_nonzero(types == 1)
        source = 1 if there > wanted else 2
        types[order[types[order] == source][: abs(there - wanted)]] = 3 - source
        return state

    sliders = (
        Slider("scrambled", "scrambled", 0, 1, 0.01, 0),
        Slider("share", "share of type 1", 0.1, 0.9, 0.01, 0.5),
    )
    return [
        Family(pattern, partial(draw, pattern), sliders)
        for pattern in dict.fromkeys(system.patterns)
    ]


def _chains(system: "Polymer") -> list[Family]:
    coils = Family(
        "coil", lambda _, seed: system.initial(numpy_generator(seed, "studio")).microstate
    )
    if not system.regimes:
        return [coils]
    from ..systems.regimes import load_regimes

    def give(chain: NDArray[np.float32], _: Values, seed: int) -> NDArray[Any]:
        return chain

    fixed = [
        Family(f"{name} to unfold", partial(give, chain), random=False)
        for name, chain in load_regimes().items()
    ]
    return [coils, *fixed]


FAMILIES: dict[str, Callable[[Any], list[Family]]] = {
    "sirs": _epidemics,
    "mixing": _mixtures,
    "polymer": _chains,
}
"""What the systems of the package offer beyond their own initial microstates."""
