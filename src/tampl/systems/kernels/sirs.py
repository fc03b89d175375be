"""The exact SIRS Markov chain on a periodic square lattice, compiled.

Sites are susceptible (S), infected (I) or recovered (R). S becomes I at rate beta n_I / 4 with n_I
infected neighbours of four, I becomes R at rate gamma, R becomes S at rate mu.

Seen from the infected, each of the N_I infected sites attempts one of its four neighbours at rate
beta, and the attempt counts only where that neighbour is susceptible. The total rate
    Lambda = N_I (beta + gamma) + N_R mu
then needs two counts and no neighbourhood sums, and every event costs O(1). A rejected attempt
leaves the state and Lambda as they are, so the time to the next change after k draws is
    tau = -(log u_1 + ... + log u_k) / Lambda = -log(u_1 ... u_k) / Lambda,
one logarithm per change instead of one per attempt. This is thinning, hence exact.

References:
    Gillespie, J. Phys. Chem. 81 (1977) 2340; Lewis and Shedler, Naval Res. Logist. 26 (1979) 403.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .random import draw_integer, draw_uniform

__all__ = ["count_sites", "run_chains"]

_S, _I, _R = np.uint8(0), np.uint8(1), np.uint8(2)

# A uniform is at least 2^-53, about 1e-16, so a product above this cannot underflow in one draw.
_SMALL = 1e-280


@njit(nogil=True, cache=True)
def count_sites(lattices: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Counts the sites in S, I and R of each lattice, (n, N) to (n, 3)."""
    counts = np.zeros((lattices.shape[0], 3), np.int64)
    for n in range(lattices.shape[0]):
        for site in range(lattices.shape[1]):
            counts[n, lattices[n, site]] += 1
    return counts


@njit(nogil=True, cache=True)
def _neighbours(size: int) -> NDArray[np.int32]:
    """The four neighbours of each site, flat: those of site i are at 4 i to 4 i + 3."""
    table = np.empty(4 * size * size, np.int32)
    for row in range(size):
        for column in range(size):
            at = 4 * (row * size + column)
            table[at] = (row + 1) % size * size + column
            table[at + 1] = (row - 1) % size * size + column
            table[at + 2] = row * size + (column + 1) % size
            table[at + 3] = row * size + (column - 1) % size
    return table


@njit(nogil=True, cache=True)
def _list_members(sites: NDArray[np.uint8], members: NDArray[np.int32]) -> tuple[int, int]:
    """Lists the infected in members[0] and the recovered in members[1]; returns how many."""
    n_infected, n_recovered = 0, 0
    for site in range(sites.size):
        if sites[site] == _I:
            members[0, n_infected] = site
            n_infected += 1
        elif sites[site] == _R:
            members[1, n_recovered] = site
            n_recovered += 1
    return n_infected, n_recovered


@njit(nogil=True, cache=True)
def _record(
    frame: int,
    sites: NDArray[np.uint8],
    n_infected: int,
    n_recovered: int,
    counts: NDArray[np.int64],
    frames: NDArray[np.uint8],
) -> None:
    counts[frame, 0] = sites.size - n_infected - n_recovered
    counts[frame, 1] = n_infected
    counts[frame, 2] = n_recovered
    if frames.shape[0] > 0:
        frames[frame, :] = sites


@njit(nogil=True, cache=True)
def _draw_target(
    infected: NDArray[np.int32],
    n_infected: int,
    neighbours: NDArray[np.int32],
    state: NDArray[np.uint64],
) -> int:
    """Draws an infected site and one of its neighbours, with one draw for both."""
    bond = draw_integer(state, 4 * n_infected)
    return neighbours[4 * infected[bond >> 2] + (bond & 3)]


@njit(nogil=True, cache=True)
def _take(members: NDArray[np.int32], n: int, state: NDArray[np.uint64]) -> int:
    """Removes a random one of the first `n` members; the last one takes its place."""
    chosen = draw_integer(state, n)
    site = members[chosen]
    members[chosen] = members[n - 1]
    return site


@njit(nogil=True, cache=True)
def _run(
    sites: NDArray[np.uint8],
    state: NDArray[np.uint64],
    members: NDArray[np.int32],
    neighbours: NDArray[np.int32],
    rates: NDArray[np.float64],
    interval: float,
    counts: NDArray[np.int64],
    frames: NDArray[np.uint8],
) -> int:
    """Runs one trajectory and returns its number of changes of state.

    Arguments:
        sites: The lattice at t = 0, (N,); changed.
        state: State of the random generator, (4,); changed.
        members: Room for the lists of infected and of recovered sites, (2, N).
        neighbours: The table of `_neighbours`, (4 N,).
        rates: beta, gamma and mu, (3,).
        interval: Time between two frames.
        counts: Receives the numbers of S, I and R, (F, 3).
        frames: Receives the lattices, (F, N), or has shape (0, N).
    """
    beta, gamma, mu = rates
    infected, recovered = members
    n_infected, n_recovered = _list_members(sites, members)
    events, frame, time, product = 0, 1, 0.0, 1.0
    _record(0, sites, n_infected, n_recovered, counts, frames)
    while frame < counts.shape[0]:
        rate = n_infected * (beta + gamma) + n_recovered * mu
        attempt, accepted, pick, target = False, True, 0.0, 0
        if rate > 0.0:
            product *= draw_uniform(state)
            pick = rate * draw_uniform(state)
            attempt = pick <= n_infected * beta
            if attempt:
                target = _draw_target(infected, n_infected, neighbours, state)
                accepted = sites[target] == _S
                # Taking the time of a small product also ends runs where nothing can change.
                if not accepted and product > _SMALL:
                    continue
            time -= np.log(product) / rate
            product = 1.0
        else:
            time = np.inf
        while frame < counts.shape[0] and frame * interval < time:
            _record(frame, sites, n_infected, n_recovered, counts, frames)
            frame += 1
        if not accepted or frame == counts.shape[0]:
            continue
        events += 1
        if attempt:
            sites[target] = _I
            infected[n_infected] = target
            n_infected += 1
        elif pick <= n_infected * (beta + gamma):
            site = _take(infected, n_infected, state)
            n_infected -= 1
            sites[site] = _R
            recovered[n_recovered] = site
            n_recovered += 1
        else:
            sites[_take(recovered, n_recovered, state)] = _S
            n_recovered -= 1
    return events


@njit(nogil=True, cache=True)
def run_chains(
    lattices: NDArray[np.uint8],
    words: NDArray[np.uint64],
    rates: NDArray[np.float64],
    interval: float,
    counts: NDArray[np.int64],
    frames: NDArray[np.uint8],
) -> int:
    """Runs M trajectories from each of n lattices and records them at the times k `interval`.

    A frame holds the state before the first event after its time. The work is done on the calling
    thread without the interpreter lock; callers run batches side by side on threads.

    Arguments:
        lattices: Square lattices at t = 0, row by row, (n, N) with codes 0, 1, 2 for S, I, R.
        words: What starts each trajectory's generator, (n, M, 4), no four of them all zero.
        rates: beta, gamma and mu, (3,).
        interval: Time between two frames.
        counts: Receives the numbers of S, I and R, (n, M, F, 3).
        frames: Receives the lattices, (n, M, F, N); with shape (n, M, 0, N) none is kept.

    Returns:
        The number of changes of state, over all trajectories.
    """
    n_sites = lattices.shape[1]
    neighbours = _neighbours(round(np.sqrt(n_sites)))
    members = np.empty((2, n_sites), np.int32)
    sites, state = np.empty(n_sites, np.uint8), np.empty(4, np.uint64)
    events = 0
    for n in range(words.shape[0]):
        for m in range(words.shape[1]):
            sites[:] = lattices[n]
            state[:] = words[n, m]
            events += _run(
                sites, state, members, neighbours, rates, interval, counts[n, m], frames[n, m]
            )
    return events
