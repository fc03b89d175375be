"""Every registered method meets the contract, and the contract sees what breaks it."""

from dataclasses import replace

import pytest
import torch

from tampl.methods import METHODS, LiteralTampl, Tampl, check_method
from tampl.training import Losses


@pytest.mark.parametrize("method", [*METHODS.values(), LiteralTampl()])
def test_every_method_meets_it(method, bench, spec):
    check_method(method, spec, bench.data)


class Drawing(Tampl):
    """A method whose loss draws its own noise."""

    def turns(self, training):
        (turn,) = super().turns(training)
        first, second = turn.stages

        def loss(modules, batch):
            honest = first.loss(modules, batch)
            return Losses(honest.total * (1 + torch.rand(())), honest.parts)

        return (replace(turn, stages=(replace(first, loss=loss), second)),)


class Reaching(Tampl):
    """A method whose representation stage moves the transition behind the trainer's back."""

    def turns(self, training):
        (turn,) = super().turns(training)
        first, second = turn.stages

        def loss(modules, batch):
            with torch.no_grad():
                next(modules.transition.parameters()).add_(1e-3)
            return first.loss(modules, batch)

        return (replace(turn, stages=(replace(first, loss=loss), second)),)


def test_a_loss_that_draws_is_seen(bench, spec):
    with pytest.raises(AssertionError, match="draws nothing itself"):
        check_method(Drawing(), spec, bench.data)


def test_a_stage_that_moves_another_module_is_seen(bench, spec):
    with pytest.raises(AssertionError, match="stage `representation` does not move `transition"):
        check_method(Reaching(), spec, bench.data)
