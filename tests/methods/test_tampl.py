"""TAMPL: the cached algorithm is the literal one, and gradients go where the paper says."""

import numpy as np
import pytest
import torch
from torch import nn

from tampl.errors import InputError
from tampl.methods import LiteralTampl, Tampl, TamplPlus
from tampl.methods.tampl import MapFit, Refit, representation_loss
from tampl.models.transitions import MLPTransitionSpec
from tampl.training.stages import Batch

PLUS = TamplPlus(
    refit=Refit(steps=14, batch_size=16, hidden=(16, 16)),
    map=MapFit(steps=14, batch_size=16, hidden=(16, 16)),
)


def parameters(modules):
    return {k: v for k, v in modules.state_dict().items() if not k.startswith("target.")}


@pytest.mark.parametrize("ahead", [None, 0.5])
@pytest.mark.parametrize("lags", [None, (1, 3)])
def test_cached_equals_literal(bench, lags, ahead):
    """Same losses and same parameters after several epochs, up to float64 rounding."""
    training = bench.training(epochs=4, transition={"average": 0.9})
    tampl = Tampl(lags=lags, lambda_ahead=ahead)
    cached, literal = (
        bench.trainer(method, training) for method in (tampl, LiteralTampl(weights=tampl))
    )
    for _ in range(training.epochs):
        ours, printed = cached.run_epoch(), literal.run_epoch()
        for stage, parts in printed.losses.items():
            assert ours.losses[stage] == pytest.approx(parts, rel=1e-10)
    torch.testing.assert_close(
        parameters(cached.modules), parameters(literal.modules), rtol=1e-9, atol=1e-11
    )
    torch.testing.assert_close(
        parameters(cached.averaged()), parameters(literal.averaged()), rtol=1e-9, atol=1e-11
    )


def test_a_target_that_follows_the_encoder_gives_other_numbers(bench):
    """So the comparison above can fail: it is the freezing of the target that it sees."""
    training = bench.training(epochs=1)
    frozen, following = (bench.trainer(LiteralTampl(), training) for _ in range(2))
    following.modules.target = following.modules.encoder
    frozen.run_epoch()
    following.run_epoch()
    weights = [trainer.modules.encoder.head[-1].weight for trainer in (frozen, following)]
    assert not torch.allclose(*weights, rtol=1e-6)


class Counter(nn.Module):
    """Counts the frames an encoder sees, with and without gradient."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.with_gradient = 0
        self.without_gradient = 0

    def forward(self, x):
        z = self.encoder(x)
        if z.requires_grad:
            self.with_gradient += len(x)
        else:
            self.without_gradient += len(x)
        return z

    def take(self):
        counts = (self.with_gradient, self.without_gradient)
        self.with_gradient = self.without_gradient = 0
        return counts


def count_encodings(trainer):
    trainer.modules.encoder = counter = Counter(trainer.modules.encoder)
    counts = []
    for _ in range(3):
        trainer.run_epoch()
        counts.append(counter.take())
    return counts


def test_each_pair_once_with_gradient_and_each_frame_once_without(bench):
    pairs, frames = len(bench.frames.pairs), len(bench.frames)
    counts = count_encodings(bench.trainer(Tampl()))
    # The first epoch encodes everything once more, for its first targets.
    assert counts == [(pairs, 2 * frames), (pairs, frames), (pairs, frames)]


def stage_one_gradients(bench, *, detach):
    """Gradients of L_enc by name, the condition z_t of the flow detached or not."""
    modules = bench.modules(LiteralTampl())
    index = bench.frames.pairs[:9]
    noise = modules.transition.draw(len(index), torch.Generator().manual_seed(0))

    batch = Batch({"x": bench.frames.x(index), "y": bench.frames.y(index)}, noise)
    target = modules.get_submodule("target")
    target.requires_grad_(False)
    modules.transition.requires_grad_(False)
    if detach:
        loss = modules.transition.loss
        modules.transition.loss = lambda z, z_next, noise: loss(z.detach(), z_next, noise)
    z_next = target(bench.frames.x(index + 1))
    representation_loss(Tampl(), modules, batch, z_next=z_next).total.backward()
    return {name: p.grad for name, p in modules.named_parameters()}


def test_gradient_passes_through_the_condition_only(bench):
    free = stage_one_gradients(bench, detach=False)
    cut = stage_one_gradients(bench, detach=True)
    for name, gradient in free.items():
        if name.startswith(("target.", "transition.")):
            assert gradient is None, name
        elif name.startswith("encoder."):
            assert not torch.allclose(gradient, cut[name]), name
        else:
            torch.testing.assert_close(gradient, cut[name])


def test_encoder_gradient_is_the_chain_rule(bench):
    """grad_E l_tr = J_E(x_t)^T grad_z l_tr: finite differences of E alone, the target fixed."""
    modules = bench.modules(Tampl())
    index = bench.frames.pairs[:5]
    noise = modules.transition.draw(len(index), torch.Generator().manual_seed(0))
    with torch.no_grad():
        z_next = modules.encoder(bench.frames.x(index + 1))
    weight = modules.encoder.head[-1].bias

    def loss():
        return modules.transition.loss(modules.encoder(bench.frames.x(index)), z_next, noise)

    (gradient,) = torch.autograd.grad(loss(), weight)
    step = 1e-6
    for k in range(len(weight)):
        with torch.no_grad():
            weight[k] += step
            above = loss()
            weight[k] -= 2 * step
            below = loss()
            weight[k] += step
        assert gradient[k].item() == pytest.approx((above - below).item() / (2 * step), abs=1e-7)


def test_stages_move_what_they_say(bench):
    trainer = bench.trainer(Tampl())
    representation, transition = trainer.schedule[0]
    before = {k: v.clone() for k, v in trainer.modules.state_dict().items()}
    trainer.run_stage(representation)
    between = {k: v.clone() for k, v in trainer.modules.state_dict().items()}
    trainer.run_stage(transition)
    after = trainer.modules.state_dict()
    for name in before:
        first = not torch.equal(before[name], between[name])
        second = not torch.equal(between[name], after[name])
        assert first != name.startswith("transition."), name
        assert second == name.startswith("transition."), name


def test_weights_enter_the_loss(bench):
    """L_enc is lambda_cur L_cur + lambda_tr L_tr; stage II is unweighted."""
    trainer = bench.trainer(Tampl(lambda_cur=2.0, lambda_tr=0.3))
    losses = trainer.run_epoch().losses
    first, second = losses["representation"], losses["transition"]
    assert first["total"] == pytest.approx(2.0 * first["cur"] + 0.3 * first["tr"])
    assert second["total"] == second["tr"]


def test_defaults_are_the_papers():
    assert Tampl() == Tampl(lambda_cur=1.0, lambda_tr=0.1)


def test_tampl_plus_is_tampl_first_and_then_moves_the_transition_alone(bench):
    training = bench.training(epochs=3)
    plain, plus = bench.trainer(Tampl(), training), bench.trainer(PLUS, training)
    untouched = {k: v.clone() for k, v in plus.modules.transition.flow.state_dict().items()}
    for _ in range(training.epochs):
        assert plus.run_epoch().losses == plain.run_epoch().losses
    frozen = {k: v.clone() for k, v in plus.modules.encoder.state_dict().items()}
    torch.testing.assert_close(dict(plus.modules.transition.flow.state_dict()), untouched)
    transition = plus.modules.transition
    for stage in (plus.schedule[3][0], plus.schedule[6][0]):  # the flow, then its map
        batch = plus.first_batch(stage)
        before = stage.loss(plus.modules, batch).total.item()
        for _ in range(training.epochs):
            plus.run_epoch()
        assert stage.loss(plus.modules, batch).total.item() < before
    torch.testing.assert_close(dict(plus.modules.encoder.state_dict()), frozen, rtol=0, atol=0)
    # Calibrated on latent states and macrostates together.
    assert transition.increment.axes.shape == (3 + 3, 3 + 3)
    assert not torch.equal(transition.increment.axes, torch.eye(3 + 3))
    assert plus.steppers["refit"].steps == 3 * 14


def test_a_state_that_carries_the_macrostate_starts_at_what_was_observed(bench):
    model = PLUS.fit(bench.data, bench.data, epochs=2, progress=False, device="cpu")
    x, y = bench.data.x[:2, 0], bench.data.y[:2, 0]
    known = model.forecast(x, y0=y, horizon=2, members=3, progress=False)
    np.testing.assert_array_equal(known.samples[:, :, 0], np.repeat(y[:, None], 3, axis=1))
    assert known.observed
    # Without it, or for the paper's plain numbers, the readout of z_0 stands in.
    guess = model.forecast(x, horizon=2, members=3, limits=False, progress=False)
    plain = model.forecast(x, y0=y, horizon=2, members=3, limits=False, progress=False)
    np.testing.assert_array_equal(guess.samples, plain.samples)
    with torch.no_grad():
        z = model.encode(torch.from_numpy(x))
        read = model.readout(z).double() * model.y_std + model.y_mean
    np.testing.assert_allclose(guess.samples[:, 0, 0], read.numpy(), atol=1e-6)
    assert not guess.observed


def test_tampl_plus_refuses_a_transition_without_flow(bench, spec):
    other = spec.model_copy(update={"transition": MLPTransitionSpec(name="mlp")})
    with pytest.raises(InputError, match="refits a flow"):
        TamplPlus().modules(other, bench.store.description)
