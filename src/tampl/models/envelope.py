r"""How far a latent state lies from those of the training set, and rollouts that stay near them.

The training set is covered by K landmarks: latent states of its frames, chosen one after another
as the state that is farthest from all landmarks before it, so that rare states count as much as
common ones. Distances are taken in the principal axes of the training states, each in units of its
standard deviation (of a tenth of the largest at least, since the smallest axes are noise). With
rho the largest distance of a training state to the nearest landmark of *another* trajectory, a
state is *inside* the envelope if its nearest landmark is within

    r = 2 rho.

Distances between trajectories, and not to a state's own neighbours in time, say how far a new
trajectory of the same system may lie from those that are known.

Latent states of a system fill a thin curved set, which a box or an ellipsoid around all of them
would not follow; balls around landmarks do. A rollout that runs away leaves the envelope after a
few steps. A state outside is held on the sphere of radius r around its nearest landmark; a state
inside stays as it is to the bit.

A state moves little in one step, so the landmark that was near before is tried first, and only
states that have left its ball are compared with all landmarks.

An encoder keeps what matters for the observables, and may send a microstate unlike any that it has
seen to a familiar latent state. Initial microstates are therefore compared by summaries of
themselves too (`Microstate.summarise`), standardised and with an envelope of their own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["SAMPLED", "Envelope", "Held", "Likeness"]

LANDMARKS = 512
SAMPLED = 8192
"""Training states, evenly over the data, that landmarks are chosen from."""

_SMALLEST = 0.1
_SLACK = 2.0

_CONSTANT = 1e-9
"""The unit of what never varies, relative to its size: every other value is far off."""


@dataclass(frozen=True)
class Held:
    """States after they were brought inside an envelope.

    Attributes:
        states: The states, (B, D).
        inside: Which of them were inside before, (B,).
        near: The number of a landmark near each, (B,).
    """

    states: Tensor
    inside: Tensor
    near: Tensor


class Envelope(nn.Module):
    """The region near the training states.

    Attributes:
        centre: Mean of the training states, (D,).
        axes: Takes centred states to principal axes in units of their spread, (D, D).
        landmarks: Landmarks in these units, (K, D).
        radius: Radius r of the balls around them.
    """

    centre: Tensor
    axes: Tensor
    landmarks: Tensor
    radius: Tensor

    def __init__(self, centre: Tensor, axes: Tensor, landmarks: Tensor, radius: Tensor) -> None:
        super().__init__()
        for name, value in (
            *(("centre", centre), ("axes", axes)),
            *(("landmarks", landmarks), ("radius", radius)),
        ):
            self.register_buffer(name, value.contiguous())

    @classmethod
    @torch.no_grad()
    def fit(cls, states: Tensor, trajectory: Tensor, *, slack: float = _SLACK) -> "Envelope":
        """Covers training states.

        Arguments:
            states: Training states, (n, D).
            trajectory: The number of the trajectory that each belongs to, (n,).
            slack: The radius over the largest distance between trajectories.
        """
        states = states.double()
        centre = states.mean(dim=0)
        centred = states - centre
        variance, vectors = torch.linalg.eigh(centred.T @ centred / len(centred))
        spread = variance.clamp_min(0).sqrt()
        axes = vectors / spread.clamp_min(_SMALLEST * spread.max()).clamp_min(1e-12)
        places = centred @ axes
        chosen = [int(places.square().sum(dim=1).argmin())]
        nearest = (places - places[chosen[0]]).norm(dim=1)
        while len(chosen) < min(LANDMARKS, len(places)) and nearest.max() > 0:
            chosen.append(int(nearest.argmax()))
            nearest = torch.minimum(nearest, (places - places[chosen[-1]]).norm(dim=1))
        apart = torch.cdist(places, places[chosen])
        own = trajectory[:, None] == trajectory[chosen]
        others = apart.masked_fill(own, torch.inf).amin(dim=1)
        others = others[others.isfinite()]  # of a single trajectory there are none
        farthest = others.max() if len(others) else nearest.max() + 1
        radius = (slack * farthest).clamp_min(1e-6)
        return cls(*(value.float() for value in (centre, axes, places[chosen], radius)))

    def distance(self, states: Tensor) -> Tensor:
        """Distance to the nearest landmark over the radius, (B,): at most one inside."""
        return self._find_nearest(self._place(states))[0]

    def hold(self, states: Tensor, near: Tensor | None = None) -> Held:
        """Brings states (B, D) inside the envelope.

        Arguments:
            states: The states.
            near: The landmarks that were near before, (B,), to be tried first.
        """
        place = self._place(states)
        if near is None:
            near = torch.zeros(len(states), dtype=torch.int64, device=states.device)
        apart = (place - self.landmarks.to(states.dtype)[near]).norm(dim=1)
        inside = apart <= self.radius  # what is not finite is not
        left = (~inside).nonzero().squeeze(1)
        if not len(left):
            return Held(states, inside, near)
        distance, nearest = self._find_nearest(place[left])
        near, inside = near.index_copy(0, left, nearest), inside.index_copy(0, left, distance <= 1)
        out = left[distance > 1]
        if not len(out):
            return Held(states, inside, near)
        landmark = self.landmarks.to(states.dtype)[near[out]]
        # What is not finite has no direction: it is held at the landmark itself.
        step = (place[out] - landmark) / distance[distance > 1].unsqueeze(-1)
        moved = landmark + torch.nan_to_num(step, 0, 0, 0)
        held = torch.linalg.solve(self.axes.T.to(states.dtype), moved.T).T
        return Held(states.index_copy(0, out, held + self.centre.to(states.dtype)), inside, near)

    def _place(self, states: Tensor) -> Tensor:
        """States in the envelope's units."""
        return (states - self.centre.to(states.dtype)) @ self.axes.to(states.dtype)

    def _find_nearest(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Relative distance to the nearest landmark, and its number."""
        distance, nearest = torch.cdist(place, self.landmarks.to(place.dtype)).min(dim=1)
        distance = torch.nan_to_num(distance / self.radius, float("inf"), float("inf"))
        return distance, nearest


class Likeness(nn.Module):
    """Whether microstates look like those of the training set, by summaries of themselves.

    Attributes:
        mean: Mean of the training set's summaries, (q,).
        scale: Their standard deviations, (q,); next to nothing for a constant.
        envelope: The region near the training set's summaries in these units.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, scale: Tensor, envelope: Envelope) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)
        self.envelope = envelope

    @classmethod
    def fit(cls, summaries: Tensor, trajectory: Tensor) -> "Likeness":
        """Covers the summaries of training microstates.

        Arguments:
            summaries: Summaries in float64, (n, q).
            trajectory: The number of the trajectory that each belongs to, (n,).
        """
        lowest, highest = summaries.amin(dim=0), summaries.amax(dim=0)
        # Compared by range: rounding gives a constant a spread that is not exactly zero.
        constant = lowest == highest
        mean = torch.where(constant, lowest, summaries.mean(dim=0))
        least = _CONSTANT * highest.abs().clamp_min(1)
        scale = torch.where(constant, least, summaries.std(dim=0, correction=0))
        # Without slack: what lies outside is said to be and not moved.
        return cls(mean, scale, Envelope.fit((summaries - mean) / scale, trajectory, slack=1.0))

    def know(self, summaries: Tensor) -> Tensor:
        """Which microstates look familiar, (n,), by their summaries (n, q)."""
        return self.envelope.distance(((summaries - self.mean) / self.scale).float()) <= 1
