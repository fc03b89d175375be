"""Kinds of microstates: how one is stored, checked, shown to a network and drawn.

A microstate x_t is kept in its *stored form* (a lattice as one byte per site, particles in fixed
point, a chain as coordinates), on disk and on the training device alike, and becomes the *network
input* (one-hot channels, scaled positions, a picture) one batch at a time.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, SerializeAsAny

from ..errors import InputError
from ..plugins import find_entry, register_entry
from .base import Microstate, Symmetry
from .chain import Chain
from .grids import Image, Lattice
from .particles import Particles
from .vector import Vector

__all__ = [
    "KINDS",
    "AnyMicrostate",
    "Chain",
    "Image",
    "Lattice",
    "Microstate",
    "Particles",
    "Symmetry",
    "Vector",
    "find_kind",
    "register_microstate",
]

KINDS: dict[str, type[Microstate]] = {
    "lattice": Lattice,
    "particles": Particles,
    "chain": Chain,
    "image": Image,
    "vector": Vector,
}
"""Every kind by the name that stores and models keep."""


def register_microstate(name: str, kind: type[Microstate]) -> None:
    """Makes a kind of microstate from outside of the package known by its name.

    Arguments:
        name: The default of its field `kind`.
        kind: A subclass of `tampl.microstates.Microstate`.
    """
    register_entry(KINDS, name, kind, what="kind of microstate")


def find_kind(name: object) -> type[Microstate]:
    """The kind of a name, from the package, registered or installed."""
    return find_entry(KINDS, name, group="tampl.microstates", key="kind")


def _choose_kind(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    if "kind" not in value:
        raise InputError("`kind` is missing")
    return find_kind(value["kind"]).model_validate(value)


if TYPE_CHECKING:
    AnyMicrostate = Microstate
else:
    AnyMicrostate = Annotated[SerializeAsAny[Microstate], BeforeValidator(_choose_kind)]
