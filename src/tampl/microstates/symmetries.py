"""Symmetries that a system may have, as random motions of whole trajectories.

A trajectory moved by a symmetry of the dynamics is as good a trajectory as the one simulated, and
its macrostates are the same. Which of these hold for a system is physics: a recipe says so.

    shift       by whole sites along each axis of a periodic lattice
    flip        mirror images along each axis
    transpose   the two axes of a plane change places

Together they generate rotations by quarter turns.
"""

from collections.abc import Collection
from typing import Literal

import torch
from torch import Tensor

__all__ = ["Symmetry", "coins", "move_sites"]

Symmetry = Literal["shift", "flip", "transpose"]


def coins(count: int, generator: torch.Generator) -> Tensor:
    """Heads or tails, (count, 1)."""
    return torch.randint(2, (count, 1), generator=generator).bool()


def move_sites(
    stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
) -> Tensor:
    """Moves the sites of trajectories, all frames of one alike.

    Arguments:
        stored: Planes of sites, (n, F, H, W).
        symmetries: What the motions are made of; `transpose` needs H = W.
        generator: Of the random motions, on the CPU.
    """
    runs, frames, height, width = stored.shape
    source = [_moved(runs, size, symmetries, generator) for size in (height, width)]
    site = source[0][:, :, None] * width + source[1][:, None, :]
    if "transpose" in symmetries:
        site = torch.where(coins(runs, generator)[..., None], site.transpose(1, 2), site)
    site = site.flatten(1).to(stored.device)
    # Frames share the indices of their trajectory, which `expand` does not copy.
    index = site[:, None].expand(runs, frames, height * width)
    return stored.flatten(2).gather(2, index).view_as(stored)


def _moved(
    runs: int, size: int, symmetries: Collection[Symmetry], generator: torch.Generator
) -> Tensor:
    """From where each of the sites along an axis is taken, (n, size)."""
    source = torch.arange(size).expand(runs, size)
    if "flip" in symmetries:
        source = torch.where(coins(runs, generator), size - 1 - source, source)
    if "shift" in symmetries:
        source = (source + torch.randint(size, (runs, 1), generator=generator)) % size
    return source
