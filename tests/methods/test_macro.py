"""Methods supervised by macrostates: what they see, and the freedom that one step leaves."""

import numpy as np
import pytest
import torch

from tampl.methods import MacroOnly, NextMacro
from tampl.training.stages import Batch


def test_macro_only_is_the_flow_loss_on_macrostates(bench):
    trainer = bench.trainer(MacroOnly())
    (stage,) = trainer.schedule[0]
    batch = trainer.first_batch(stage)
    assert set(batch.fields) == {"y", "y_next"}
    with torch.no_grad():
        expected = trainer.modules.transition.loss(batch["y"], batch["y_next"], batch.noise)
        torch.testing.assert_close(stage.loss(trainer.modules, batch).total, expected)


def test_macro_only_cannot_tell_microstates_of_one_macrostate_apart(bench):
    model = bench.model(bench.modules(MacroOnly()))
    microstates = bench.store.references().x
    y = np.repeat(bench.statistics.y.mean[None], len(microstates), axis=0)
    settings = {"horizon": 2, "members": 3, "progress": False}
    first = model.forecast(microstates[:1], y0=y[:1], **settings).samples
    other = model.forecast(microstates[-1:], y0=y[:1], **settings).samples
    np.testing.assert_array_equal(first, other)
    np.testing.assert_allclose(first[0, :, 0], y[:1].repeat(3, axis=0), rtol=1e-12)


def losses(bench, method, modules):
    index = bench.frames.pairs[:9]
    fields = {"x": bench.frames.x(index), "y": bench.frames.y(index)}
    fields["y_next"] = bench.frames.y(index + 1)
    (stage,) = method.turns(bench.training())[0].stages
    return fields, stage.loss(modules, Batch(fields, {}))


def test_next_macro_weighs_both_macrostates(bench):
    method = NextMacro(lambda_cur=2.0, lambda_next=0.5)
    modules = bench.modules(method)
    fields, found = losses(bench, method, modules)
    z = modules.encoder(fields["x"])
    ahead = modules.readout(modules.transition(z, z[:, :0]))
    following = (ahead - fields["y_next"]).square().sum(dim=-1).mean()
    torch.testing.assert_close(found.parts["next"], following)
    torch.testing.assert_close(found.total, 2 * found.parts["cur"] + 0.5 * following)


class Swap(torch.nn.Module):
    """T(z) = (z_2, c, c): what it puts into z_2 is not read out until the second step."""

    def __init__(self, filler):
        super().__init__()
        self.filler = filler

    def forward(self, z, noise=None):
        return torch.cat([z[:, 1:2], torch.full_like(z[:, :2], self.filler)], dim=1)


class First(torch.nn.Module):
    """R(z) = z_1, for each of the three observables."""

    def forward(self, z):
        return z[:, :1].expand(-1, 3)


def test_one_step_leaves_the_second_free(bench):
    """The paper's proposition: two transitions with the same losses and other second steps."""
    modules = bench.modules(NextMacro())
    modules.readout = First()
    totals, second_steps = [], []
    for filler in (0.0, 7.0):
        modules.transition = Swap(filler)
        fields, found = losses(bench, NextMacro(), modules)
        z = modules.encoder(fields["x"])
        totals.append(found.total)
        second_steps.append(modules.readout(modules.transition(modules.transition(z))))
    torch.testing.assert_close(*totals)
    assert not torch.allclose(*second_steps)


def test_next_macro_has_the_recipe_s_widths_without_noise(bench, spec):
    modules = bench.modules(NextMacro())
    assert modules.transition.noise_dim == 0
    assert modules.spec.transition.hidden == spec.transition.hidden
    assert not bench.model(modules).stochastic


def test_forecast_refuses_a_start_without_macrostates(bench):
    model = bench.model(bench.modules(MacroOnly()))
    microstates = bench.store.references().x
    with pytest.raises(ValueError, match="`y0` is missing"):
        model.forecast(microstates, horizon=1, progress=False)
