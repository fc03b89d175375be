"""Symmetries that a system may have, as random motions of whole trajectories.

A trajectory moved by a symmetry of the dynamics is as good a trajectory as the one simulated, and
where the observables do not change under it, its macrostates are the same. Which of these hold for
a system is physics: a recipe says so.

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


def coins(count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Heads or tails, (count, 1), drawn by a generator on the CPU."""
    return torch.randint(2, (count, 1), generator=generator).bool().to(device)


def move_sites(
    stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
) -> Tensor:
    """Moves the sites of trajectories, all frames of one alike.

    Arguments:
        stored: Planes of sites, (n, F, H, W).
        symmetries: What the motions are made of; `transpose` needs H = W.
        generator: Of the random motions, on the CPU.
    """
    (runs, frames, height, width), device = stored.shape, stored.device
    row, column = (_moved(runs, size, symmetries, generator, device) for size in (height, width))
    site = row[:, :, None] * width + column[:, None, :]
    if "transpose" in symmetries:
        site = torch.where(coins(runs, generator, device)[..., None], site.transpose(1, 2), site)
    # Frames share the indices of their trajectory, which `expand` does not copy.
    index = site.flatten(1)[:, None].expand(runs, frames, height * width)
    return stored.flatten(2).gather(2, index).view_as(stored)


def _moved(
    runs: int,
    size: int,
    symmetries: Collection[Symmetry],
    generator: torch.Generator,
    device: torch.device,
) -> Tensor:
    """From where each of the sites along an axis is taken, (n, size)."""
    source = torch.arange(size, device=device).expand(runs, size)
    if "flip" in symmetries:
        source = torch.where(coins(runs, generator, device), size - 1 - source, source)
    if "shift" in symmetries:
        by = torch.randint(size, (runs, 1), generator=generator)
        source = (source + by.to(device)) % size
    return source
