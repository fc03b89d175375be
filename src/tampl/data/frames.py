"""The training view of a store: every frame on the training device, in stored form.

Frames of all trajectories lie one after another; a *pair* is the index t of a frame whose
successor t + 1 belongs to the same trajectory. A batch of indices becomes network input on the
device, so the stored form (a byte per site) is all that is ever resident; a training with
symmetries keeps it twice.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..microstates import Microstate
from .normalization import Normalization
from .store import Trajectories

__all__ = ["Frames"]


@dataclass(frozen=True)
class Frames:
    """All frames of a split.

    Attributes:
        stored: Microstates in stored form, (n_frames, *shape).
        macrostates: Standardised macrostates, (n_frames, m).
        pairs: Index of the first frame of every pair, (n_pairs,).
        length: Frames of a trajectory.
        microstate: The kind of microstate, which makes the network input.
    """

    stored: Tensor
    macrostates: Tensor
    pairs: Tensor
    length: int
    microstate: Microstate

    @classmethod
    def load(
        cls,
        trajectories: Trajectories,
        microstate: Microstate,
        normalization: Normalization,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> "Frames":
        """Puts trajectories on a device.

        Arguments:
            trajectories: Microstates (n, F, *shape) and macrostates (n, F, m).
            microstate: The kind of microstate.
            normalization: Statistics that standardise the macrostates.
            device: Where to keep and to train.
            dtype: Precision of the networks.
        """
        runs, frames = trajectories.macrostates.shape[:2]
        y = torch.from_numpy(normalization.standardize(trajectories.macrostates))
        index = torch.arange(runs * frames, device=device).view(runs, frames)
        return cls(
            stored=torch.from_numpy(trajectories.microstates).flatten(0, 1).to(device),
            macrostates=y.flatten(0, 1).to(device, dtype),
            pairs=index[:, :-1].flatten(),
            length=frames,
            microstate=microstate,
        )

    def __len__(self) -> int:
        return len(self.stored)

    def x(self, index: Tensor) -> Tensor:
        """Network input of the frames at `index`."""
        kind = self.stored.dtype
        # On a GPU torch may not index 16-bit words without a sign; the same bits with one it can.
        words = self.stored.view(torch.int16) if kind == torch.uint16 else self.stored
        return self.microstate.network_input(words[index].view(kind), self.macrostates.dtype)

    def y(self, index: Tensor) -> Tensor:
        """Standardised macrostates of the frames at `index`."""
        return self.macrostates[index]

    def windows(self, size: int, offset: int) -> Tensor:
        """Starts of windows of `size` frames that follow each other, sharing their end frames.

        Arguments:
            size: Frames in a window, at least two and at most those of a trajectory.
            offset: First frame of the first window of each trajectory.
        """
        device = self.pairs.device
        within = torch.arange(offset, self.length - size + 1, size - 1, device=device)
        first = torch.arange(0, len(self), self.length, device=device)
        return (first[:, None] + within).flatten()

    def field(self, name: str, index: Tensor) -> Tensor:
        """`x` or `y` of the frames at `index`, by name."""
        return {"x": self.x, "y": self.y}[name](index)
