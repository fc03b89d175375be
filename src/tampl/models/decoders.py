r"""Decoders: what methods that reconstruct microstates train beside the model, and then drop.

A decoder is a conditional law p(x | z) by its loss; it is never sampled from. The loss is the
batch mean of -log p(x | z) per degree of freedom, so that weights mean the same at every size.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

__all__ = ["CategoricalDecoder", "Decoder"]


class Decoder(nn.Module, ABC):
    """The law of a microstate given its latent state."""

    @abstractmethod
    def loss(self, z: Tensor, x: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """Reconstruction loss of network inputs x (B, ...) from z (B, d) and the draws."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Draws what the loss of `count` microstates needs, on the generator's device."""


class CategoricalDecoder(Decoder):
    """Independent sites with softmax probabilities: the cross-entropy, mean over sites.

    Arguments:
        network: z (B, d) to logits (B, states, H, W).
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, z: Tensor, x: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        # x is one-hot, which cross_entropy takes as probabilities.
        return cross_entropy(self.network(z), x)

    def draw(self, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        return {}
