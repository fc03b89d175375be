r"""Rollouts in bounded memory: z_{t+1} ~ T(. | z_t), held inside an envelope where there is one.

Base noise is drawn on the CPU from one stream per initial microstate, so that a forecast has the
same noise whatever the device and however many microstates are forecast at once. A block of steps
is drawn and read at a time: memory does not grow with the horizon.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..seeding import torch_generator
from .envelope import Envelope

if TYPE_CHECKING:
    from .model import MacroModel

__all__ = ["Block", "Sizes", "draw_noise", "roll_out", "rows_at_once"]

STEPS = 16
"""Steps in a block."""

ROWS = 2048
"""Members carried through the networks of a CPU at once: their activations stay in its cache. With
8,192 the same products take 2.6 times as long on two cores."""

ROWS_GPU = 65536


@dataclass(frozen=True)
class Sizes:
    """Horizon H and number N of members of an ensemble."""

    horizon: int
    members: int


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


def rows_at_once(device: torch.device) -> int:
    """Members that are carried through the networks at once."""
    return ROWS if device.type == "cpu" else ROWS_GPU


def draw_noise(sizes: Sizes, noise_dim: int, *, seed: int, states: range) -> Iterator[Tensor]:
    """Base noise of all members of some initial microstates, (K, G N, noise_dim) per block.

    Arguments:
        sizes: Horizon and members.
        noise_dim: Size of the noise of one step.
        seed: Seed of the forecast.
        states: Numbers of the initial microstates in the forecast.
    """
    streams = [torch_generator(seed, "forecast", number) for number in states]
    for first in range(0, sizes.horizon, STEPS):
        shape = (min(STEPS, sizes.horizon - first), sizes.members, noise_dim)
        drawn = [torch.randn(shape, generator=stream) for stream in streams]
        yield torch.stack(drawn, dim=1).flatten(1, 2)


@torch.inference_mode()
def roll_out(
    model: "MacroModel", state: Tensor, noise: Iterator[Tensor], envelope: Envelope | None
) -> Iterator[Block]:
    """Macrostates at t = 0, then block by block.

    Arguments:
        model: The model.
        state: Initial states of all members, (B, D).
        noise: Base noise, (K, B, noise_dim) per block.
        envelope: What to hold the rollout in, or None. An initial state outside is said to be and
            not moved: the user has chosen it.
    """
    inside = None if envelope is None else envelope.distance(state)[:, None] <= 1
    yield Block(model.read(state)[:, None], inside)
    near = None
    for block in noise:
        macrostates, free = [], []
        for step in block.to(state.device, state.dtype):
            state = model.transition(state, step)
            if envelope is not None:
                held = envelope.hold(state, near)
                state, near = held.states, held.near
                free.append(held.inside)
            macrostates.append(model.read(state))
        yield Block(torch.stack(macrostates, dim=1), torch.stack(free, dim=1) if free else None)
