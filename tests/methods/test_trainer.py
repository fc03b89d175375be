"""The loop: same seed same bytes, resume, freezing, divergence, the watch."""

import pytest
import torch

from tampl.methods import DivergenceError, LiteralTampl, Tampl
from tampl.methods.latents import encode_frames, latent_scale


def run(trainer, epochs):
    return [trainer.run_epoch() for _ in range(epochs)]


def assert_same_bytes(ours, others):
    assert ours.keys() == others.keys()
    for name, value in ours.items():
        assert torch.equal(value, others[name]), name


def test_same_seed_same_bytes(bench):
    first, second = bench.trainer(Tampl()), bench.trainer(Tampl())
    run(first, 2)
    run(second, 2)
    assert_same_bytes(first.tensors(), second.tensors())


def test_another_seed_differs(bench):
    first = bench.trainer(Tampl())
    second = bench.trainer(Tampl(), bench.training(seed=6))
    assert run(first, 1)[0].losses != run(second, 1)[0].losses


@pytest.mark.parametrize("method", [Tampl(), LiteralTampl()])
def test_resume_repeats_the_uninterrupted_run(bench, method):
    training = bench.training(epochs=4, transition={"average": 0.9})
    whole, half, rest = (bench.trainer(method, training) for _ in range(3))
    run(whole, 4)
    run(half, 2)
    rest.load(2, {k: v.clone() for k, v in half.tensors().items()})
    run(rest, 2)
    assert_same_bytes(whole.tensors(), rest.tensors())


def test_every_pair_is_seen_once_per_pass(bench):
    trainer = bench.trainer(Tampl())
    stage = trainer.schedule[0][0]
    trainer._cache = torch.arange(float(len(bench.frames)), dtype=torch.float64)[:, None]
    seen = torch.cat([batch["z_next"][:, 0] for batch, _ in trainer._batches(stage)])
    assert torch.equal(seen.sort().values, bench.frames.pairs.double() + 1)


def test_last_learning_rate_is_the_final_fraction(bench):
    training = bench.training(representation={"learning_rate": 0.01, "final_fraction": 0.1})
    trainer = bench.trainer(Tampl(), training)
    stepper = trainer.steppers["representation"]
    assert stepper.learning_rate == pytest.approx(0.01)
    run(trainer, training.epochs)
    assert stepper.steps == stepper.total_steps
    assert stepper.learning_rate == pytest.approx(0.001)


def test_average_is_the_recursion(bench):
    """Two steps by hand: the average starts at the first weights and follows by its decay."""
    training = bench.training(batch_size=1000, transition={"average": 0.5, "clip": 0.0})
    trainer = bench.trainer(Tampl(), training)
    stepper = trainer.steppers["transition"]
    expected = {name: p.detach().clone() for name, p in stepper.parameters.items()}
    for step in (1, 2):
        trainer.run_epoch()
        decay = min(0.5, (1 + step) / (10 + step))
        for name, parameter in stepper.parameters.items():
            expected[name] = decay * expected[name] + (1 - decay) * parameter.detach()
    torch.testing.assert_close(stepper.average, expected)
    averaged = dict(trainer.averaged().named_parameters())
    torch.testing.assert_close({k: averaged[k].detach() for k in expected}, expected)


def test_clipping_bounds_the_gradient(bench):
    trainer = bench.trainer(Tampl(), bench.training(representation={"clip": 1e-3}))
    trainer.run_epoch()
    stepper = trainer.steppers["representation"]
    norm = torch.stack([p.grad.norm() for p in stepper.parameters.values()]).norm()
    assert norm <= 1e-3 * (1 + 1e-6)


def test_divergence_says_where(bench):
    trainer = bench.trainer(Tampl())
    with torch.no_grad():
        trainer.modules.encoder.head[-1].bias.fill_(float("nan"))
    with pytest.raises(DivergenceError, match="representation stage of epoch 1"):
        trainer.run_epoch()


def test_cache_is_the_encoding_of_the_final_encoder(bench):
    trainer = bench.trainer(Tampl())
    trainer.run_epoch()
    expected = encode_frames(trainer.modules.encoder, bench.frames, batch_size=7)
    assert torch.equal(trainer._cache, expected)


def test_latent_scale_of_known_spreads():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(200_000, 3, generator=generator) * torch.tensor([1.0, 1.0, 0.0]) + 5
    scale = latent_scale(z)
    assert scale.std_min == 0
    assert scale.std_mean == pytest.approx(2 / 3, rel=0.01)
    assert scale.effective_rank == pytest.approx(2, rel=0.01)


def test_constant_latents_have_rank_one_at_most():
    scale = latent_scale(torch.ones(10, 4))
    assert scale.std_mean == 0
    assert scale.effective_rank == 1
