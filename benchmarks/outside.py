"""Initial states that are unlike those a model was trained on, by name, with what follows them.

A family is a list of microstates and the ensembles that the simulator makes of them. `None` stands
for ensembles where the microstates are refused before any forecast.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from double_well import make_references
from numpy.typing import NDArray

from tampl.description import Description
from tampl.seeding import kernel_words, numpy_generator
from tampl.system import System
from tampl.systems.mixing import Mixing
from tampl.systems.polymer import Polymer
from tampl.systems.sirs import SIRS

__all__ = ["FAMILIES", "Outside", "make_double_wells"]

STATES, MEMBERS = 20, 32


@dataclass(frozen=True)
class Outside:
    """Microstates of one family, and the macrostates that follow each of them.

    Attributes:
        x: Microstates in stored form, (G, *shape).
        y: Macrostates, (G, N, F, m); None for microstates that no model takes.
    """

    x: NDArray[Any]
    y: NDArray[np.float64] | None


def simulate(system: System, x: NDArray[Any], family: str) -> Outside:
    """Ensembles of a system from microstates."""
    words = np.stack(
        [
            np.stack([kernel_words(0, "outside", family, state, k) for k in range(MEMBERS)])
            for state in range(len(x))
        ]
    )
    return Outside(x, system.ensemble(x, words))


def paint_lattices(system: SIRS, family: str, generator: np.random.Generator) -> NDArray[Any]:
    """One lattice of a family; 0 is susceptible, 1 infected, 2 recovered."""
    size = system.size
    row, column = np.mgrid[:size, :size]
    if family == "stripes":
        width, shift = generator.integers(1, 5), generator.integers(size)
        axis = row if generator.random() < 0.5 else column
        return ((axis + shift) // width % 2).astype(np.uint8)
    if family == "one stripe":
        axis, shift = (row if generator.random() < 0.5 else column), generator.integers(size)
        width = round(system.coverage * size) or 1
        return ((axis + shift) % size < width).astype(np.uint8)
    if family == "checkerboard":
        edge = generator.choice([1, 2, 4])
        return ((row // edge + column // edge) % 2).astype(np.uint8)
    if family == "all infected":
        x = np.ones((size, size), np.uint8)
        x[generator.integers(size), generator.integers(size)] = generator.integers(3)
        return x
    if family == "none infected":
        x = np.zeros((size, size), np.uint8)
        x[generator.integers(size), generator.integers(size)] = 2 * generator.integers(2)
        return x
    if family == "none infected, many recovered":
        return np.where(generator.random((size, size)) < generator.random() / 2, 2, 0).astype(
            np.uint8
        )
    assert family == "recovered patches"
    x = system.initial(generator).microstate.copy()
    for _ in range(generator.integers(2, 6)):
        y0, x0, radius = *generator.integers(size, size=2), generator.uniform(0.1, 0.25) * size
        near = [np.minimum((a - b) % size, (b - a) % size) for a, b in ((row, y0), (column, x0))]
        x[(near[0] ** 2 + near[1] ** 2 < radius**2) & (x == 0)] = 2
    return x


def make_lattices(system: SIRS, family: str) -> Outside:
    """Lattices of a family."""
    generators = [numpy_generator(0, "outside", family, state) for state in range(STATES)]
    x = np.stack([paint_lattices(system, family, generator) for generator in generators])
    return simulate(system, x, family)


def make_fluids(system: Mixing, family: str) -> Outside:
    """Mixtures of other numbers of particles in the same box."""
    number = int(family.partition(" ")[0]) // 2
    other = system.model_copy(update={"particles": number})
    generators = [numpy_generator(0, "outside", family, state) for state in range(STATES)]
    states = other.initial_states("test", generators)
    return simulate(other, np.stack([state.microstate for state in states]), family)


def make_chains(system: Polymer, family: str) -> Outside:
    """Chains of other lengths, or straight ones where training has coils alone."""
    generators = [numpy_generator(0, "outside", family, state) for state in range(STATES)]
    if family.endswith("beads"):
        other = system.model_copy(update={"beads": int(family.partition(" ")[0])})
        states = other.initial_states("train", generators)
        return Outside(np.stack([state.microstate for state in states]), None)
    place = np.arange(system.beads) - (system.beads - 1) / 2
    x = np.zeros((STATES, system.beads, 3), np.float32)
    for chain, generator in zip(x, generators, strict=True):
        axis = np.array([0.0, 1.0, 0.0]) + 0.1 * generator.normal(size=3)
        chain[:] = np.outer(place, axis / np.linalg.norm(axis))
    return simulate(system, x, family)


def make_double_wells(description: Description, family: str) -> Outside:
    """Vectors far from both wells, or with fast coordinates that are far from rest."""
    scale = {"six times as far": 6.0, "three times as far": 3.0}[family]
    references = make_references(description, STATES, MEMBERS, seed=7, start=scale)
    return Outside(references.x, references.y)


FAMILIES: Mapping[str, Mapping[str, Callable[..., Outside]]] = {
    "sirs": {
        family: make_lattices
        for family in (
            "stripes",
            "one stripe",
            "checkerboard",
            "all infected",
            "none infected",
            "none infected, many recovered",
            "recovered patches",
        )
    },
    "mixing": {
        family: make_fluids for family in ("100 particles", "200 particles", "600 particles")
    },
    "polymer": {
        family: make_chains for family in ("20 beads", "60 beads", "straight across the flow")
    },
}
"""How to make the states of each family, by system and name."""
