r"""A double well in 20 dimensions, as arrays: a vector process that two hidden coordinates drive.

    dq = (4 q (1 - q^2) + p) dt + sqrt(2 T) dW,        dp = -p / tau dt + sqrt(2 s^2 / tau) dW',

with T = 0.12, tau = 4 and s = 0.6: p tilts the well and decides when q crosses. Eighteen fast
coordinates mean nothing, and a random rotation hides all of them. The observable is q alone.
"""

import numpy as np
from numpy.typing import NDArray

from tampl import Dataset, References, Vector
from tampl.description import Description

__all__ = ["make_references", "make_trajectories"]

SIZE, FRAMES, INTERVAL, STEPS = 20, 41, 0.25, 50
TEMPERATURE, TAU, TILT = 0.12, 4.0, 0.6


def make_trajectories(count: int, *, seed: int, scale: float = 1.0) -> Dataset:
    """Trajectories from random initial states; `scale` is the unit of x."""
    generator = np.random.default_rng([seed, 0])
    x, q = _run(_draw_initial(count, generator), generator)
    kind = Vector(size=SIZE)
    return Dataset(scale * x, q, interval=INTERVAL, observables=["q"], microstate=kind)


def make_references(
    description: Description,
    count: int,
    members: int,
    *,
    seed: int,
    scale: float = 1.0,
    start: float = 1.0,
) -> References:
    """Random initial states with an ensemble of trajectories from each.

    Arguments:
        description: What the data are of.
        count: Number of initial states.
        members: Trajectories from each.
        seed: Of states and trajectories.
        scale: The unit of x.
        start: How many times as far from the origin as usual the initial states are.
    """
    generator = np.random.default_rng([seed, 1])
    initial = start * _draw_initial(count, generator)
    x, q = _run(np.repeat(initial, members, axis=0), generator)
    first = x[::members, 0]
    y = q.reshape(count, members, FRAMES, 1)
    return References(scale * first, y, np.full(count, "", dtype=np.str_), description)


def _draw_initial(count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """States (count, 20) before rotation: q in one of the wells, p and the others at rest."""
    state = generator.normal(size=(count, SIZE))
    state[:, 0] = np.sign(state[:, 0]) + 0.2 * generator.normal(size=count)
    state[:, 1] *= TILT
    return state


def _run(
    initial: NDArray[np.float64], generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Microstates (n, F, 20), rotated, and q (n, F, 1), by Euler and Maruyama."""
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(SIZE, SIZE)))[0]
    dt, state, frames = INTERVAL / STEPS, initial.copy(), [initial]
    for _ in range(FRAMES - 1):
        for _ in range(STEPS):
            q, p, fast = state[:, 0], state[:, 1], state[:, 2:]
            noise = generator.normal(size=state.shape) * np.sqrt(dt)
            drift = 4 * q * (1 - q**2) + p
            state = np.column_stack(
                [
                    q + drift * dt + np.sqrt(2 * TEMPERATURE) * noise[:, 0],
                    p - p / TAU * dt + np.sqrt(2 / TAU) * TILT * noise[:, 1],
                    fast - 4 * fast * dt + np.sqrt(8) * noise[:, 2:],
                ]
            )
        frames.append(state)
    path = np.stack(frames, axis=1)
    # What starts together keeps its initial microstate to the bit, whatever the products round.
    return path @ rotation, path[..., :1].copy()
