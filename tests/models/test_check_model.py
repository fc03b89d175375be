"""Every architecture meets the contract, and the contract sees what breaks it."""

import pytest
import torch
from torch import nn

from tampl.data import Statistics
from tampl.models import MacroModel, Modules, check_model


@pytest.mark.parametrize("name", ["flow", "mlp", "linear"])
def test_every_transition_meets_it(make_model, lattices, name):
    check_model(make_model(name), lattices)


def broken(model, **changes):
    parts = {"encoder": model.encoder, "transition": model.transition, "readout": model.readout}
    modules = Modules(model.spec, **(parts | changes))
    description, statistics = model.description, model.normalization
    return MacroModel(description, statistics=Statistics(statistics), modules=modules)


class BatchMean(nn.Module):
    """An encoder that looks at its neighbours in the batch."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x):
        z = self.encoder(x)
        return z - z.mean(dim=0)


def test_an_encoder_that_looks_at_the_batch_is_seen(make_model, lattices):
    model = make_model("flow")
    with pytest.raises(AssertionError, match="what else is in the batch"):
        check_model(broken(model, encoder=BatchMean(model.encoder)), lattices)


def test_a_step_that_draws_by_itself_is_seen(make_model, lattices):
    model = make_model("flow")
    forward = model.transition.forward
    model.transition.forward = lambda z, noise: forward(z, noise) + torch.rand_like(z)
    with pytest.raises(AssertionError, match="a step draws nothing itself"):
        check_model(model, lattices)


def test_an_unreachable_weight_is_seen(make_model, lattices):
    model = make_model("flow")
    model.encoder.idle = nn.Linear(1, 1)
    with pytest.raises(AssertionError, match="reach every weight"):
        check_model(model, lattices)
