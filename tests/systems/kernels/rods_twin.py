"""What the tests of bead-rod chains share: samples, and a slow twin of one step.

The twin is plain NumPy with SciPy's root finder and looks at all pairs of beads.
"""

import numpy as np
from scipy.optimize import root


def centred(words):
    """Three numbers of mean zero in (-1/2, 1/2) from each 64-bit word, (...) to (..., 3)."""
    words = np.asarray(words, np.uint64)[..., None]
    bits = (words >> np.array([0, 21, 42], np.uint64)) % np.uint64(2**21)
    return (bits + 0.5) / 2**21 - 0.5


def string(rods):
    """Beads relative to their centre of mass, (R, 3) to (R + 1, 3)."""
    beads = np.concatenate([np.zeros((1, 3)), np.cumsum(rods, axis=0)])
    return beads - beads.mean(axis=0)


def pushes(beads):
    """Half of each overlap, along the line between the two beads, (B, 3)."""
    moves = np.zeros_like(beads)
    for i in range(len(beads)):
        for j in range(i + 2, len(beads)):
            apart = beads[j] - beads[i]
            r = np.linalg.norm(apart)
            if r < 1:
                moves[j] += (1 - r) / 2 * apart / r
                moves[i] -= (1 - r) / 2 * apart / r
    return moves


def pull(rods, strength):
    """What forces of strength (R,) along the rods (R, 3) change in them."""
    pulls = np.concatenate([np.zeros((1, 3)), strength[:, None] * rods, np.zeros((1, 3))])
    return np.diff(np.diff(pulls, axis=0), axis=0)


def constrain(rods, trial):
    """The rods of length one that forces along the old rods make of the trial."""

    def moved(strength):
        return trial + pull(rods, strength)

    solution = root(lambda s: (moved(s) ** 2).sum(axis=1) - 1, np.zeros(len(rods)), tol=1e-13)
    assert np.abs(solution.fun).max() < 1e-10
    return moved(solution.x)


def move(rods, noise, motion):
    """The rods after one step without constraints, with noise of unit width, (B, 3)."""
    beads = string(rods)
    moves = motion.dt * motion.flow * beads * [1, -1, 0]
    moves = moves + np.sqrt(24 * motion.temperature * motion.dt) * noise
    if motion.excluded:
        moves = moves + pushes(beads)
    return np.diff(beads + moves, axis=0)


def step(rods, noise, motion):
    """The rods after one step."""
    return constrain(rods, move(rods, noise, motion))


def leads_to(after, rods, noises, motion):
    """Whether steps with these noises, one after the other, turn the rods into those after.

    The last step may have any root, since those of long steps are several: what remains has to be
    the work of forces along the rods.
    """
    for noise in noises[:-1]:
        rods = step(rods, noise, motion)
    pulls = np.stack([pull(rods, unit).ravel() for unit in np.eye(len(rods))], axis=1)
    change = (after - move(rods, noises[-1], motion)).ravel()
    return np.abs(pulls @ np.linalg.lstsq(pulls, change)[0] - change).max() < 1e-4


def make_words(n, seed=0):
    return np.random.default_rng(seed).integers(1, 2**63, (n, 4)).astype(np.uint64)


def random_rods(n, rods, seed=0):
    """Rods of random walks, (n, R, 3)."""
    u = np.random.default_rng(seed).normal(size=(n, rods, 3))
    return u / np.linalg.norm(u, axis=-1, keepdims=True)


def gram(rods):
    """G of rods (n, R, 3): products of the constraints' gradients, (n, R, R)."""
    cosines = (rods[:, 1:] * rods[:, :-1]).sum(axis=-1)
    k = np.arange(rods.shape[1])
    G = np.zeros((len(rods), k.size, k.size))
    G[:, k, k] = 2
    G[:, k[1:], k[:-1]] = G[:, k[:-1], k[1:]] = -cosines
    return G


def rigid_rods(n, rods, seed=0):
    """Rods from the rigid measure: random walks, kept in proportion to sqrt(det G) <= 2^(R/2)."""
    walks = random_rods(2 * n, rods, seed)
    weight = np.sqrt(np.linalg.det(gram(walks)) / 2.0**rods)
    return walks[np.random.default_rng(seed + 1).random(2 * n) < weight][:n]


def assert_mean(samples, expected, slack=0.0):
    """The mean over the first axis is what is expected, within four standard errors."""
    error = np.std(samples, axis=0) / np.sqrt(len(samples))
    assert np.all(np.abs(np.mean(samples, axis=0) - expected) <= 4 * error + slack)
