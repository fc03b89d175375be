r"""The latent cache and its health.

The cache holds \bar E(x) of every frame, made in one sweep of the frozen encoder. Its spread tells
whether the latent scale collapses: the standard deviation of each latent dimension over the
frames, and the effective rank exp(-sum_i p_i log p_i), p_i the eigenvalues of the covariance over
their sum.

Reference for the rank: Roy and Vetterli, "The effective rank", EUSIPCO 2007.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..data.frames import Frames

__all__ = ["LatentScale", "encode_frames", "latent_scale"]


@torch.no_grad()
def encode_frames(
    encoder: nn.Module, frames: Frames, *, batch_size: int, index: Tensor | None = None
) -> Tensor:
    """Encodes frames (all of them by default) in evaluation mode, (n, d)."""
    encoder.eval()
    if index is None:
        index = torch.arange(len(frames), device=frames.stored.device)
    return torch.cat([encoder(frames.x(chunk)) for chunk in index.split(batch_size)])


@dataclass(frozen=True)
class LatentScale:
    """Mean and smallest standard deviation over latent dimensions, and the effective rank."""

    std_mean: float
    std_min: float
    effective_rank: float


def latent_scale(z: Tensor) -> LatentScale:
    """The scale of latent states (n, d)."""
    centred = (z - z.mean(dim=0)).double()
    covariance = centred.T @ centred / len(z)
    std = covariance.diagonal().sqrt()
    eigenvalues = torch.linalg.eigvalsh(covariance).clamp_min(0)
    p = eigenvalues / eigenvalues.sum().clamp_min(torch.finfo(torch.float64).tiny)
    return LatentScale(
        std_mean=std.mean().item(),
        std_min=std.min().item(),
        effective_rank=torch.special.entr(p).sum().exp().item(),
    )
