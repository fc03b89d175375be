"""Frames moved by symmetries of the system, every trajectory anew in each part of a training.

Moving whole trajectories, not single frames, keeps pairs and windows what they are; and moving
them where the latent cache is made anew keeps the cache that of the frames a stage sees.
"""

from dataclasses import replace

from ...data.frames import Frames
from ...errors import InputError
from ...microstates import Microstate
from ...seeding import torch_generator
from ..base import TrainingSpec

__all__ = ["Views", "refuse_other_symmetries"]

_AT_ONCE = 256
"""Trajectories that are moved in one go, which bounds the memory; the motions depend on it."""


class Views:
    """The frames of a training, with its symmetries.

    Arguments:
        frames: The frames as they were simulated; they are left as they are.
        training: Seed and symmetries.

    Attributes:
        frames: The frames as they are seen at present. Recorded steps read them where they are.
    """

    def __init__(self, frames: Frames, training: TrainingSpec) -> None:
        refuse_other_symmetries(frames.microstate, training)
        self._training = training
        self._simulated = frames
        self._shown: int | None = None
        self.frames = frames
        if training.symmetries:
            self.frames = replace(frames, stored=frames.stored.clone())

    def show(self, part: int) -> None:
        """Moves every trajectory as in this part of the training."""
        if not self._training.symmetries or part == self._shown:
            return
        generator = torch_generator(self._training.seed, "symmetries", part)
        whole = (-1, self._simulated.length)
        simulated, seen = (f.stored.unflatten(0, whole) for f in (self._simulated, self.frames))
        for there, here in zip(simulated.split(_AT_ONCE), seen.split(_AT_ONCE), strict=True):
            kind = self.frames.microstate
            here.copy_(kind.transformed(there, self._training.symmetries, generator))
        self._shown = part


def refuse_other_symmetries(kind: Microstate, training: TrainingSpec) -> None:
    """Refuses symmetries that microstates of a kind do not have."""
    known = kind.symmetries
    for name in training.symmetries:
        if name not in known:
            raise InputError(
                f"`training.symmetries` has {name!r}; microstates of this kind and shape have "
                f"{', '.join(sorted(known)) or 'none'}"
            )
