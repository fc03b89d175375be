"""Clusters of particles in the plane: connected components of the graph of near pairs, compiled.

Particles of one type are connected where their distance is at most a given reach, and a cluster is
a connected component; one particle alone is a cluster too. Particles come in stored form
(`microstates.Particles`), whose positions are whole numbers, so that distances are compared
exactly and every order of the particles gives the same clusters.

Particles are put one by one into cells no narrower than the reach. Each is joined to those near it
that are there already, which it finds in its own and the eight cells around, by union of the
smaller set with the larger (Galler and Fischer, Commun. ACM 7 (1964) 301). With bounded density
the cost is proportional to the number of particles.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["find_clusters"]

_LEVELS = 65536
_MOST_CELLS = 256


@njit(nogil=True, cache=True)
def _root(parents: NDArray[np.int32], particle: int) -> int:
    while parents[particle] != particle:
        parents[particle] = parents[parents[particle]]
        particle = parents[particle]
    return particle


@njit(nogil=True, cache=True)
def _join(parents: NDArray[np.int32], sizes: NDArray[np.int32], a: int, b: int) -> int:
    """Joins two sets, given by their roots, and returns the root of both."""
    if sizes[a] < sizes[b]:
        a, b = b, a
    parents[b] = a
    sizes[a] += sizes[b]
    return a


@njit(nogil=True, cache=True)
def _find(
    particles: NDArray[np.uint16],
    reach: float,
    heads: NDArray[np.int32],
    links: NDArray[np.int32],
    sets: NDArray[np.int32],
    found: NDArray[np.int64],
) -> None:
    """Finds the clusters of one microstate; `heads`, `links` and `sets` are room to work in."""
    cells = heads.shape[1]
    parents, sizes = sets
    heads[:] = -1
    found[:] = 0
    for i in range(particles.shape[0]):
        kind = np.int64(particles[i, 2]) - 1
        if kind < 0:
            continue
        parents[i], sizes[i], root = i, 1, i
        found[kind, 1] += 1
        x, y = np.int64(particles[i, 0]), np.int64(particles[i, 1])
        column, row = x * cells // _LEVELS, y * cells // _LEVELS
        for c in range(max(column - 1, 0), min(column + 2, cells)):
            for r in range(max(row - 1, 0), min(row + 2, cells)):
                j = heads[kind, c, r]
                while j >= 0:
                    dx, dy = x - np.int64(particles[j, 0]), y - np.int64(particles[j, 1])
                    if dx * dx + dy * dy <= reach * reach:
                        other = _root(parents, j)
                        if other != root:
                            root = _join(parents, sizes, root, other)
                            found[kind, 1] -= 1
                    j = links[j]
        found[kind, 0] = max(found[kind, 0], sizes[root])
        links[i] = heads[kind, column, row]
        heads[kind, column, row] = i


@njit(nogil=True, cache=True)
def find_clusters(
    microstates: NDArray[np.uint16], types: int, reach: float, found: NDArray[np.int64]
) -> None:
    """Finds the largest cluster and the number of clusters of each type.

    Arguments:
        microstates: Particles in stored form, (n, N, 3); type 0 is no particle.
        types: Number of types.
        reach: Largest distance of connected particles, in levels of the stored form.
        found: Receives the size of the largest cluster and the number of clusters, (n, types, 2).
    """
    cells = max(1, min(_MOST_CELLS, int(_LEVELS / reach)))
    heads = np.empty((types, cells, cells), np.int32)
    links = np.empty(microstates.shape[1], np.int32)
    sets = np.empty((2, microstates.shape[1]), np.int32)
    for n in range(microstates.shape[0]):
        _find(microstates[n], reach, heads, links, sets, found[n])
