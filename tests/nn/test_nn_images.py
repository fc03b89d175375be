"""From a latent state to a picture: exact sizes, darkness at first, gradients."""

import pytest
import torch

from tampl.nn import ImageDecoder, ResNet


@pytest.mark.parametrize("size", [(100, 500), (32, 64), (7, 13), (1, 1)])
def test_the_size_is_met_exactly(size):
    decoder = ImageDecoder(3, size=size, widths=[4, 4, 2], hidden=[5])
    assert decoder(torch.zeros(2, 3)).shape == (2, 1, *size)


def test_pictures_start_dark_and_every_weight_learns():
    decoder = ImageDecoder(3, size=(12, 20), widths=[8, 4], hidden=[16])
    logits = decoder(torch.randn(4, 3))
    assert logits.sigmoid().mean() < 0.05
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in decoder.parameters())


def test_the_papers_decoder_is_smaller_than_its_encoder():
    def count(network):
        return sum(p.numel() for p in network.parameters())

    decoder = ImageDecoder(4, size=(100, 500), widths=[256, 128, 64, 32, 16], hidden=[512])
    assert count(decoder) < count(ResNet(4))
