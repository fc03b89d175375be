"""Clusters: connected components of sites in one state, or of particles near each other.

Sites are connected along the axes, particles where their distance is at most `reach`; a site or
particle alone is a cluster too. Periodic axes close on themselves.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from scipy import ndimage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from ..description import Observable
from ..errors import InputError
from ..microstates import Lattice, Microstate, Particles
from .base import ObservableMap, Observer
from .lattices import refuse_unknown_state
from .points import read_boxed, refuse_unknown_type

__all__ = ["ClusterCount", "LargestCluster"]

Sizes = Callable[[NDArray[Any]], list[NDArray[np.int64]]]
"""Takes frames (B, *shape) and gives the sizes of the clusters of each."""


class LargestCluster(ObservableMap):
    """Size of the largest cluster as a fraction of all sites, or of all particles.

    Attributes:
        state: The state of connected sites; for lattices.
        periodic: Whether a lattice closes on itself; a box says so itself.
        type: The type of connected particles; by default any.
        reach: Largest distance of connected particles.
    """

    name: Literal["largest-cluster"] = "largest-cluster"
    state: NonNegativeInt = 1
    periodic: bool = True
    type: PositiveInt | None = None
    reach: PositiveFloat | None = None
    kinds: ClassVar = (Lattice, Particles)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or "S"
        return (Observable(name="largest cluster", symbol=symbol, lower=0, upper=1),)

    def begin(self, kind: Microstate) -> Observer:
        find = _choose(self, kind)

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            largest = [sizes.max(initial=0) for sizes in find(stored)]
            return np.array(largest) / _count_all(kind, stored)

        return observe


class ClusterCount(ObservableMap):
    """Number of clusters.

    Attributes:
        state: The state of connected sites; for lattices.
        periodic: Whether a lattice closes on itself; a box says so itself.
        type: The type of connected particles; by default any.
        reach: Largest distance of connected particles.
    """

    name: Literal["cluster-count"] = "cluster-count"
    state: NonNegativeInt = 1
    periodic: bool = True
    type: PositiveInt | None = None
    reach: PositiveFloat | None = None
    kinds: ClassVar = (Lattice, Particles)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        return (Observable(name="number of clusters", symbol=self.symbol or "K", lower=0),)

    def begin(self, kind: Microstate) -> Observer:
        find = _choose(self, kind)
        return lambda stored: np.array([float(len(sizes)) for sizes in find(stored)])


def _choose(chosen: LargestCluster | ClusterCount, kind: Microstate) -> Sizes:
    """How clusters are found in microstates of a kind."""
    if isinstance(kind, Lattice):
        refuse_unknown_state(chosen.state, kind)
        return lambda stored: [
            _find_site_clusters(frame == chosen.state, chosen.periodic) for frame in stored
        ]
    assert isinstance(kind, Particles)
    if chosen.reach is None:
        raise InputError(
            f"`reach` is missing; clusters of particles need the largest distance of connected "
            f"ones, as in {chosen.name}:reach=1.5"
        )
    refuse_unknown_type(chosen.type, kind)
    reach: float = chosen.reach

    def find(stored: NDArray[Any]) -> list[NDArray[np.int64]]:
        boxed = read_boxed(kind, stored)
        _refuse_wide_reach(reach, boxed.box[:, boxed.periodic])
        parts = zip(boxed.positions, boxed.chosen(chosen.type), boxed.box, strict=True)
        return [
            _find_particle_clusters(r[there], reach, np.where(boxed.periodic, edges, 0.0))
            for r, there, edges in parts
        ]

    return find


def _find_site_clusters(inside: NDArray[np.bool_], periodic: bool) -> NDArray[np.int64]:
    labels, count = ndimage.label(inside)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    if not periodic or not count:
        return sizes
    # Clusters that meet across the two seams are parts of one.
    across = np.concatenate(
        [np.stack([labels[0], labels[-1]]), np.stack([labels[:, 0], labels[:, -1]])], axis=1
    )
    first, second = across[:, (across > 0).all(axis=0)] - 1
    _, whole = _connect(first, second, count)
    return np.bincount(whole, weights=sizes).astype(np.int64)


def _find_particle_clusters(
    positions: NDArray[np.float64], reach: float, box: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Sizes of clusters of points (N, dim); axes with an edge of 0 are not periodic."""
    pairs = KDTree(positions, boxsize=box).query_pairs(reach, output_type="ndarray")
    _, labels = _connect(pairs[:, 0], pairs[:, 1], len(positions))
    return np.bincount(labels)


def _connect(
    first: NDArray[Any], second: NDArray[Any], count: int
) -> tuple[int, NDArray[np.int32]]:
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(count, count))
    return connected_components(graph, directed=False)


def _count_all(kind: Microstate, stored: NDArray[Any]) -> NDArray[np.int64]:
    if isinstance(kind, Lattice):
        return np.full(len(stored), kind.height * kind.width)
    assert isinstance(kind, Particles)
    return read_boxed(kind, stored).chosen(None).sum(axis=1)


def _refuse_wide_reach(reach: float, periodic: NDArray[np.float64]) -> None:
    if periodic.size and reach > periodic.min() / 2:
        raise InputError(
            f"`reach` is {reach:g}; in a periodic box it can be at most half of the shortest "
            f"edge, {periodic.min() / 2:g}"
        )
