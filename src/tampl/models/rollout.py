r"""Rollouts in bounded memory: z_{t+1} ~ T(. | z_t), held inside an envelope where there is one.

Base noise is drawn on the CPU from one stream per initial microstate, so that a forecast has the
same noise whatever the device and however many microstates are forecast at once. Whole blocks of
steps are drawn and read one after another: memory does not grow with the horizon, and a longer
forecast begins with the shorter one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..forecast import Forecast, Moments
from ..seeding import torch_generator
from .envelope import Envelope

__all__ = [
    "Block",
    "Part",
    "Sizes",
    "collect_moments",
    "collect_samples",
    "draw_noise",
    "roll_out",
]

STEPS = 16
"""Steps in a block."""


@dataclass(frozen=True)
class Sizes:
    """How large an ensemble is.

    Attributes:
        states: Number G of initial microstates.
        members: Number N of members of each.
        horizon: Number H of steps.
        observables: Number m of observables.
    """

    states: int
    members: int
    horizon: int
    observables: int


@dataclass(frozen=True)
class Block:
    """Some consecutive times of a rollout.

    Attributes:
        y: Macrostates in physical units, (B, K, m).
        inside: Which members were inside the envelope before they were held, (B, K); None
            without an envelope.
    """

    y: Tensor
    inside: Tensor | None


@dataclass(frozen=True)
class Part:
    """All members of some initial microstates at some times of a forecast.

    Attributes:
        states: Places of the microstates among G.
        times: Places of the times among H + 1.
        y: Macrostates in physical units, (g, N, K, m).
        inside: Which members were inside the envelope, (g, N, K); None without an envelope.
    """

    states: slice
    times: slice
    y: NDArray[np.float64]
    inside: NDArray[np.bool_] | None


def draw_noise(sizes: Sizes, noise_dim: int, *, seed: int, states: slice) -> Iterator[Tensor]:
    """Base noise of all members of some initial microstates, (K, g N, noise_dim) per block.

    Arguments:
        sizes: Members and horizon.
        noise_dim: Size of the noise of one step.
        seed: Seed of the forecast.
        states: Places of the initial microstates in the forecast.
    """
    numbers = range(*states.indices(sizes.states))
    streams = [torch_generator(seed, "forecast", number) for number in numbers]
    for first in range(0, sizes.horizon, STEPS):
        # Whole blocks, whatever is left of the horizon: torch's draws depend on their number.
        drawn = [torch.randn(STEPS, sizes.members, noise_dim, generator=s) for s in streams]
        yield torch.stack(drawn, dim=1).flatten(1, 2)[: sizes.horizon - first]


@torch.inference_mode()
def roll_out(
    transition: Callable[[Tensor, Tensor], Tensor],
    read: Callable[[Tensor], Tensor],
    state: Tensor,
    noise: Iterable[Tensor],
    envelope: Envelope | None,
) -> Iterator[Block]:
    """Macrostates at t = 0, then block by block.

    Arguments:
        transition: T, from states (B, D) and noise (B, noise_dim) to the next states.
        read: Macrostates (B, m) in physical units of states.
        state: Initial states of all members, (B, D).
        noise: Base noise, (K, B, noise_dim) per block.
        envelope: What to hold the rollout in, or None. An initial state outside is said to be and
            not moved: the user has chosen it.
    """
    inside = None if envelope is None else envelope.distance(state)[:, None] <= 1
    yield Block(read(state)[:, None], inside)
    near = None
    for block in noise:
        macrostates, free = [], []
        for step in block.to(state.device, state.dtype):
            state = transition(state, step)
            if envelope is not None:
                held = envelope.hold(state, near)
                state, near = held.states, held.near
                free.append(held.inside)
            macrostates.append(read(state))
        yield Block(torch.stack(macrostates, dim=1), torch.stack(free, dim=1) if free else None)


def collect_samples(parts: Iterable[Part], sizes: Sizes, labels: Mapping[str, Any]) -> Forecast:
    """The forecast with all members.

    Arguments:
        parts: Its parts.
        sizes: Its sizes.
        labels: Its other fields.
    """
    shape = (sizes.states, sizes.members, sizes.horizon + 1)
    samples, inside = np.empty((*shape, sizes.observables)), np.empty(shape, dtype=np.bool_)
    known = False
    for part in parts:
        samples[part.states, :, part.times] = part.y
        if part.inside is not None:
            inside[part.states, :, part.times], known = part.inside, True
    return Forecast(samples=samples, inside=inside if known else None, **labels)


def collect_moments(parts: Iterable[Part], sizes: Sizes, labels: Mapping[str, Any]) -> Moments:
    """Mean and standard deviation alone, with the arguments of `collect_samples`."""
    shape = (sizes.states, sizes.horizon + 1)
    mean, std = np.empty((*shape, sizes.observables)), np.zeros((*shape, sizes.observables))
    free, known = np.empty(shape), False
    for part in parts:
        place = (part.states, part.times)
        mean[place] = part.y.mean(axis=1)
        if sizes.members > 1:
            std[place] = part.y.std(axis=1, ddof=1)
        if part.inside is not None:
            free[place], known = part.inside.mean(axis=1), True
    return Moments(
        mean=mean, std=std, members=sizes.members, free=free if known else None, **labels
    )
