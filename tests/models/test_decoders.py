"""The categorical decoder: its loss is the cross-entropy per site."""

import math

import pytest
import torch
from torch import nn

from tampl.errors import InputError
from tampl.microstates import Lattice, Vector
from tampl.models.decoders import CategoricalDecoder, LatticeDecoderSpec

KIND = Lattice(height=4, width=6, states=3)


class Fixed(nn.Module):
    """Logits that do not depend on z."""

    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, z):
        return self.logits.expand(len(z), *self.logits.shape)


def sites(generator):
    stored = torch.randint(0, 3, (5, 4, 6), generator=generator, dtype=torch.uint8)
    return stored, KIND.network_input(stored, torch.float64)


def test_uniform_logits_cost_the_logarithm_of_the_states():
    _, x = sites(torch.Generator().manual_seed(0))
    decoder = CategoricalDecoder(Fixed(torch.zeros(3, 4, 6, dtype=torch.float64)))
    assert decoder.loss(torch.zeros(5, 2), x, {}).item() == pytest.approx(math.log(3))


def test_loss_is_the_mean_over_sites_of_minus_log_p():
    stored, x = sites(torch.Generator().manual_seed(0))
    logits = torch.randn(3, 4, 6, dtype=torch.float64)
    expected = 0.0
    for lattice in stored:
        for i in range(4):
            for j in range(6):
                column = logits[:, i, j]
                expected -= (column[int(lattice[i, j])] - column.logsumexp(0)).item()
    loss = CategoricalDecoder(Fixed(logits)).loss(torch.zeros(5, 2), x, {})
    assert loss.item() == pytest.approx(expected / stored.numel())


def test_certainty_costs_nothing():
    _, x = sites(torch.Generator().manual_seed(0))
    decoder = CategoricalDecoder(Fixed(200 * x[0]))
    assert decoder.loss(torch.zeros(1, 2), x[:1], {}).item() < 1e-12


def test_vectors_have_no_lattice_decoder():
    with pytest.raises(InputError, match="decoder `lattice` takes lattice microstates"):
        LatticeDecoderSpec(name="lattice").build(Vector(size=3), 2)
