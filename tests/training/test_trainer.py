"""The loop: same seed same bytes, resume, freezing, divergence, the watch."""

from dataclasses import replace

import pytest
import torch

from tampl.methods import METHODS, LiteralTampl, Tampl, TamplPlus
from tampl.models import DeterministicTransition
from tampl.training import DivergenceError
from tampl.training.latents import FrameEncoder, LatentScale, has_collapsed, latent_scale
from tampl.training.stages import Latents


def run(trainer, epochs):
    return [trainer.run_epoch() for _ in range(epochs)]


def encode(trainer, bench):
    return FrameEncoder(trainer.modules, bench.frames, batch_size=7)()


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
    batches = [trainer._gather(stage, *drawn) for drawn in trainer._batches(stage)]
    seen = torch.cat([batch["z_next"][:, 0] for batch in batches])
    assert torch.equal(seen.sort().values, bench.frames.pairs.double() + 1)


@pytest.mark.parametrize("epochs", [2, 5])
def test_a_refit_goes_over_few_pairs_a_limited_number_of_times(bench, epochs):
    """The steps of a turn together, whatever number of them is asked for."""
    refit = {"steps": 10**4, "passes": 30.0, "batch_size": 16}
    method = TamplPlus(refit=refit, map={"steps": 0})
    trainer = bench.trainer(method, bench.training(epochs=epochs))
    pairs, steps = len(bench.frames.pairs), trainer.steppers["refit"].total_steps
    assert 30 * pairs <= 16 * steps < 30 * pairs + 16 * (30 + epochs)
    few = bench.trainer(TamplPlus(refit=refit | {"steps": 1}), bench.training(epochs=epochs))
    assert few.steppers["refit"].total_steps == epochs


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
    expected = encode(trainer, bench)
    assert torch.equal(trainer._cache, expected)


def scale_of(z, z_next=None, transition=None):
    latents = Latents(z, z if z_next is None else z_next)
    return latent_scale(transition, latents, torch.Generator().manual_seed(0))


def test_latent_scale_of_known_spreads():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(200_000, 3, generator=generator) * torch.tensor([1.0, 1.0, 0.0]) + 5
    scale = scale_of(z)
    assert scale.std_min == 0
    assert scale.std_mean == pytest.approx(2 / 3, rel=0.01)
    assert scale.effective_rank == pytest.approx(2, rel=0.01)


def test_constant_latents_have_rank_one_at_most():
    scale = scale_of(torch.ones(10, 4))
    assert scale.std_mean == 0
    assert scale.effective_rank == 1


def test_the_watch_sees_the_whole_data_evenly(bench):
    """Few pairs: all of them are watched, and the scale is that of their encodings."""
    trainer = bench.trainer(Tampl())
    record = trainer.run_epoch()
    z = encode(trainer, bench)[bench.frames.pairs]
    assert record.latent.std_mean == pytest.approx(z.std(dim=0, correction=0).mean().item())


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_the_ratio_of_a_map_does_not_depend_on_the_scale(scale):
    """z' = z / 2 predicted by T = 0 misses a quarter of the variance, at any latent scale."""
    nothing = DeterministicTransition(torch.nn.Linear(3, 3, bias=False))
    torch.nn.init.zeros_(nothing.network.weight)
    z = scale * torch.randn(1000, 3, generator=torch.Generator().manual_seed(1))
    z -= z.mean(dim=0)
    assert scale_of(z, z / 2, nothing).transition_ratio == pytest.approx(0.25, rel=1e-5)


def test_a_transition_that_nobody_fitted_has_no_ratio(bench):
    """Two-stage: none in the autoencoder's turn, then one; VAMP: from its closing fit on."""
    for method, epochs in (("two-stage-recon", (1, 2)), ("vamp", (0, 1))):
        trainer = bench.trainer(METHODS[method], bench.training(epochs=2))
        ratios = [trainer.run_epoch().latent.transition_ratio for _ in range(4)]
        first_without, first_with = epochs
        assert ratios[first_without] is None and ratios[first_with] is not None


@pytest.mark.parametrize(
    ("stds", "ratios", "collapsed"),
    [
        ([0.4], [0.1], False),
        ([0.4], [1.1], False),
        ([0.4, 0.4], [1.1, 1.1], True),
        ([0.4, 0.4, 0.4], [1.1, 1.1, 0.9], False),
        ([0.6, 0.6], [1.1, 1.1], False),
        ([0.4, 0.4], [None, None], False),
        ([0.5, 1.0, 0.09], [0.1] * 3, True),
        ([0.5, 1.0, 0.11], [0.1] * 3, False),
    ],
)
def test_collapse(stds, ratios, collapsed):
    """A small scale with a loss above its variance, twice in a row; or a tenth of the largest."""
    pairs = zip(stds, ratios, strict=True)
    assert has_collapsed([LatentScale(std, std, 1.0, ratio) for std, ratio in pairs]) is collapsed


class Closing(Tampl):
    """TAMPL in two turns, the first of which closes with a note of what it was given."""

    def turns(self, training):
        (turn,) = super().turns(training)
        first = replace(turn, epochs=2, finish=lambda modules, latents: NOTES.append(latents))
        named = tuple(replace(stage, name=f"late {stage.name}") for stage in turn.stages)
        return first, replace(turn, stages=named, epochs=1)


NOTES = []


def test_a_turn_closes_once_with_all_latents_of_the_averaged_encoder(bench):
    NOTES.clear()
    average = {"average": 0.9}
    training = bench.training(representation=average, transition=average)
    trainer = bench.trainer(Closing(), training)
    trainer.run_epoch()
    assert not NOTES
    trainer.run_epoch()
    (latents,) = NOTES
    averaged = trainer.steppers["representation"].average
    for name, parameter in trainer.steppers["representation"].parameters.items():
        assert torch.equal(parameter, averaged[name])
    z = encode(trainer, bench)
    torch.testing.assert_close(latents.z, z[bench.frames.pairs])
    torch.testing.assert_close(latents.z_next, z[bench.frames.pairs + 1])
    trainer.run_epoch()
    assert len(NOTES) == 1
