r"""The latent cache and its health.

The cache holds \bar E(x) of every frame, made in one sweep of the frozen encoder. Its spread tells
whether the latent scale collapses: the standard deviation of each latent dimension over the
frames, the effective rank exp(-sum_i p_i log p_i) with p_i the eigenvalues of the covariance over
their sum, and the transition loss over the latent variance. A small loss of the transition alone
says nothing, because a small latent state makes it small; over the variance it does.

Reference for the rank: Roy and Vetterli, "The effective rank", EUSIPCO 2007.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ..models import Modules, Transition
from .frames import Frames
from .replay import Replay
from .stages import Latents
from .streaming import Outside, read_ahead

__all__ = ["FrameEncoder", "LatentScale", "has_collapsed", "latent_scale"]

COLLAPSED = 0.1
"""A latent scale below this fraction of the largest it had has collapsed."""


SMALL = 0.5
"""A standard deviation below this is small beside the standardised macrostates and base noise."""


_TINY = torch.finfo(torch.float64).tiny


class FrameEncoder:
    """Encodes frames with the encoder as it is, in evaluation mode.

    Arguments:
        modules: The modules; an encoder's weights may change between calls.
        frames: The frames.
        batch_size: How many are encoded at once.
        records: Whether a GPU may record the encoding of a batch and replay it.
    """

    def __init__(
        self, modules: Modules, frames: Frames, *, batch_size: int, records: bool = True
    ) -> None:
        self.modules = modules
        self.frames = frames
        self.batch_size = batch_size
        self._replay = Replay(self._encode, frames.device, records=records)

    @torch.no_grad()
    def __call__(self, index: Tensor | None = None) -> Tensor:
        """Latent states (n, d) of the frames at `index`, of all by default."""
        if index is None:
            index = torch.arange(len(self.frames), device=self.frames.device)
        self.modules.encoder.eval()
        chunks, stored = index.split(self.batch_size), self.frames.stored
        if isinstance(stored, Outside) and self._source == "x":
            on_host = index.cpu().numpy()
            cuts = range(0, len(on_host), self.batch_size)
            parts = (on_host[first : first + self.batch_size] for first in cuts)
            ahead = stored.count_ahead(self.batch_size)
            inputs = (
                (stored.put(frames),) for _, frames in read_ahead(parts, stored.read, ahead=ahead)
            )
        else:
            inputs = ((chunk,) for chunk in chunks)
        return torch.cat([self._replay(*given)[0].clone() for given in inputs])

    @property
    def _source(self) -> str:
        return self.modules.spec.encoder.reads

    def _encode(self, given: Tensor) -> tuple[Tensor]:
        """Encodes frames by their index, or in stored form where they are not on the device."""
        streamed = isinstance(self.frames.stored, Outside) and self._source == "x"
        read = self.frames.input if streamed else partial(self.frames.field, self._source)
        return (self.modules.encoder(read(given)),)


@dataclass(frozen=True)
class LatentScale:
    """How large the latent states are.

    Attributes:
        std_mean: Standard deviation over the frames, mean over latent dimensions.
        std_min: The smallest over latent dimensions.
        effective_rank: How many dimensions the states spread over.
        transition_ratio: Transition loss over the variance of the latent states; None as long as
            no transition was fitted.
    """

    std_mean: float
    std_min: float
    effective_rank: float
    transition_ratio: float | None


@torch.no_grad()
def latent_scale(
    transition: Transition | None, latents: Latents, generator: torch.Generator
) -> LatentScale:
    """The scale of the latent states of pairs.

    Arguments:
        transition: The transition, where one was fitted.
        latents: Latent states of pairs.
        generator: For the draws of the transition's loss.
    """
    centred = (latents.z - latents.z.mean(dim=0)).double()
    covariance = centred.T @ centred / len(centred)
    std = covariance.diagonal().sqrt()
    eigenvalues = torch.linalg.eigvalsh(covariance).clamp_min(0)
    p = eigenvalues / eigenvalues.sum().clamp_min(_TINY)
    ratio = None if transition is None else _transition_ratio(transition, latents, generator)
    return LatentScale(
        std_mean=std.mean().item(),
        std_min=std.min().item(),
        effective_rank=torch.special.entr(p).sum().exp().item(),
        transition_ratio=ratio,
    )


def _transition_ratio(
    transition: Transition, latents: Latents, generator: torch.Generator
) -> float:
    noise = transition.draw(len(latents.z), generator)
    loss = transition.loss(latents.z, latents.z_next, noise).double()
    return (loss / transition.spread(latents.z.double()).clamp_min(_TINY)).item()


def has_collapsed(scales: Sequence[LatentScale]) -> bool:
    """Whether the latent scale has collapsed by the last of some epochs.

    Either the scale is small and the transition's loss exceeds the latent variance, in two epochs
    in a row. The lowest loss of a flow falls as the scale and the variance as its square, because
    the base noise keeps its size: the latent state is then small beside that noise. Or the scale
    is a small fraction of what it once was.
    """
    shrunken = scales[-1].std_mean < COLLAPSED * max(scale.std_mean for scale in scales)
    lost = [
        scale.std_mean < SMALL and (scale.transition_ratio or 0.0) > 1 for scale in scales[-2:]
    ]
    return shrunken or (len(lost) == 2 and all(lost))
