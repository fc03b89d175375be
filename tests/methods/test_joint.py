"""JLD: one loss through both ends, which TAMPL is not."""

import pytest
import torch

from tampl.methods import METHODS, Jld, JldVic, Vic
from tampl.training.stages import Batch


def gradients(bench, method, *, detach):
    """Encoder gradients of the joint loss, the next encoding detached or not."""
    modules = bench.modules(method)
    index = bench.frames.pairs[:9]
    both = torch.stack([index, index + 1], dim=1).flatten()
    fields = {"x_window": bench.frames.x(both), "y": bench.frames.y(index)}
    stage = method.turns(bench.training())[0].stages[0]
    device = bench.frames.stored.device
    noise = stage.draw(modules, 9, torch.Generator(device).manual_seed(0))
    if detach:
        loss = modules.transition.loss
        modules.transition.loss = lambda z, z_next, noise: loss(z, z_next.detach(), noise)
    losses = stage.loss(modules, Batch(fields, noise))
    losses.total.backward()
    return losses, {name: p.grad for name, p in modules.named_parameters()}


def test_gradient_passes_through_both_ends_and_reaches_everything(bench):
    _, free = gradients(bench, Jld(), detach=False)
    _, cut = gradients(bench, Jld(), detach=True)
    assert all(gradient is not None for gradient in free.values())
    assert not torch.allclose(free["encoder.head.2.weight"], cut["encoder.head.2.weight"])


def test_total_is_the_weighted_sum(bench):
    method = JldVic(lambda_cur=2.0, lambda_tr=0.5, penalty=Vic(variance=3.0))
    losses, _ = gradients(bench, method, detach=False)
    parts = losses.parts
    expected = 2.0 * parts["cur"] + 0.5 * parts["tr"] + parts["penalty"]
    torch.testing.assert_close(losses.total, expected)


def test_the_paper_weights_the_transition_fully():
    assert METHODS["jld"] == Jld(lambda_cur=1.0, lambda_tr=1.0)


def test_joint_training_shrinks_the_latent_scale_and_a_penalty_keeps_it(bench):
    """The paper's collapse in miniature: the same start, with and without the variance hinge."""
    fast = {"learning_rate": 1e-2, "clip": 0.0}
    training = bench.training(epochs=60, representation=fast)
    scales = {}
    for name in ("jld", "jld-vic"):
        trainer = bench.trainer(METHODS[name], training)
        records = [trainer.run_epoch() for _ in range(training.epochs)]
        scales[name] = records[-1].latent.std_mean
    assert scales["jld-vic"] == pytest.approx(1, abs=0.3)
    assert scales["jld"] < 0.5


@pytest.mark.parametrize("name", [name for name in METHODS if name != "macro-only"])
def test_one_seed_gives_every_method_the_same_encoder(bench, name):
    """What a comparison pairs by seed: a decoder or another transition comes after."""
    expected = bench.modules(METHODS["tampl"]).encoder.state_dict()
    for key, value in bench.modules(METHODS[name]).encoder.state_dict().items():
        assert torch.equal(value, expected[key])
