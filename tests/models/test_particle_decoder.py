"""The decoder of particle sets: which particles it takes, what they cost, what it can learn."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.microstates import Particles
from tampl.models.decoders import SplineDecoderSpec, choose
from tampl.seeding import ambient_seed, torch_generator

KIND = Particles(count=6, types=2, box=8.0)
LATENT = 3


def make_decoder(dtype=torch.float64, **changes):
    settings = {"transforms": 2, "bins": 4, "hidden": (8,), "type_hidden": (8,), "particles": 6}
    with ambient_seed(0, "decoder"):
        spec = SplineDecoderSpec(name="spline", **settings | changes)
        decoder = spec.build(KIND, LATENT).to(dtype)
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.mul_(2)
    return decoder


def normal(*shape, name="z"):
    return torch.randn(shape, generator=torch_generator(0, name), dtype=torch.float64)


def particles(batch=4, count=6, missing=0):
    """Network input of random sets, the first `missing` rows of each without a particle."""
    generator = torch_generator(0, "sets")
    stored = torch.randint(0, 2**16, (batch, count, 3), generator=generator)
    stored[..., 2] = stored[..., 2] % 2 + 1
    stored[:, :missing] = 0
    return KIND.network_input(stored, torch.float64)


def draws(decoder, count=4):
    return decoder.draw(count, torch_generator(0, "draws"))


presence = st.lists(st.booleans(), min_size=1, max_size=20).filter(any)


@settings(max_examples=100, deadline=None)
@given(present=presence, parts=st.integers(1, 25), seed=st.integers(0, 2**31))
def test_only_particles_that_are_there_are_chosen(present, parts, seed):
    place = torch.rand(1, parts, generator=torch_generator(seed, "place"))
    mask = torch.tensor([present])
    chosen = choose(mask.float(), place)
    assert mask.gather(1, chosen).all()


@settings(max_examples=100, deadline=None)
@given(present=presence, place=st.sampled_from([0.0, 0.3, 1 - 2.0**-24]))
def test_each_particle_is_chosen_once_where_there_are_as_many_as_parts(present, place):
    mask = torch.tensor([present])
    chosen = choose(mask.float(), torch.full((1, sum(present)), place))
    assert torch.equal(chosen[0], mask[0].nonzero().flatten())


def test_hundreds_of_particles_are_told_apart_next_to_the_edge_of_a_part():
    chosen = choose(torch.ones(1, 1000), torch.full((1, 1000), 1 - 2.0**-24))
    assert torch.equal(chosen[0], torch.arange(1000))


@pytest.mark.parametrize(("count", "parts"), [(5, 3), (3, 5), (7, 2), (4, 4), (1, 3)])
def test_all_particles_are_equally_likely(count, parts):
    places = 420
    place = ((torch.arange(places) + 0.5) / places).expand(parts, -1).T
    chosen = choose(torch.ones(places, count), place)
    times = torch.bincount(chosen.flatten(), minlength=count).double()
    expected = torch.full((count,), places * parts / count, dtype=torch.float64)
    torch.testing.assert_close(times, expected, rtol=0, atol=1.0)


def test_loss_is_the_mean_cost_of_the_particles_one_by_one():
    decoder, x, z = make_decoder(noise=0.1, particles=4), particles(missing=2), normal(4, LATENT)
    noise = draws(decoder)
    costs = []
    for b in range(4):
        for k in range(4):
            row = x[b, 2 + k]
            r = row[:2] + 0.1 * noise["jitter"][b, k]
            density = decoder.law.log_position(r, z[b])
            logits = decoder.law.kinds(torch.cat([4 * r, z[b]]))
            kind = int(row[3] == 1)
            costs.append(-density - logits[kind] + logits.exp().sum().log())
    torch.testing.assert_close(decoder.loss(z, x, noise), torch.stack(costs).mean())


def test_the_order_of_particles_does_not_matter_where_all_are_taken():
    decoder, x, z = make_decoder(noise=0.0), particles(), normal(4, LATENT)
    noise = draws(decoder)
    moved = decoder.loss(z, x[:, [3, 1, 5, 0, 2, 4]], noise)
    torch.testing.assert_close(moved, decoder.loss(z, x, noise), rtol=0, atol=1e-12)


def test_rows_of_zeros_cost_nothing():
    decoder, x, z = make_decoder(particles=4), particles(missing=2), normal(4, LATENT)
    noise = draws(decoder)
    assert torch.equal(decoder.loss(z, x, noise), decoder.loss(z, x[:, 2:], noise))


def test_gradients_reach_the_latent_state_and_every_layer():
    decoder, z = make_decoder(), normal(4, LATENT).requires_grad_()
    decoder.loss(z, particles(), draws(decoder)).backward()
    assert (z.grad != 0).all()
    assert all(parameter.grad.abs().sum() > 0 for parameter in decoder.parameters())


def test_randomness_is_data(dtype):
    decoder = make_decoder(dtype, particles=5)
    first, again = draws(decoder), draws(decoder)
    assert {name: value.shape for name, value in first.items()} == {
        "place": (4, 5),
        "jitter": (4, 5, 2),
    }
    assert all(value.dtype == dtype for value in first.values())
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_nothing_waits_for_values():
    """Tensors without values have a loss, so a step can be recorded on a GPU."""
    decoder = make_decoder().to("meta")
    empty = lambda *shape: torch.empty(shape, dtype=torch.float64, device="meta")
    noise = {"place": empty(4, 6), "jitter": empty(4, 6, 2)}
    decoder.loss(empty(4, LATENT), empty(4, 6, 4), noise).backward()
    assert all(parameter.grad is not None for parameter in decoder.parameters())


def test_training_comes_close_to_the_entropy():
    """Positions are normal around a place, types tossed with a coin; z tells which of either."""
    spread, bias, noise, sets = 0.2, 0.9, 0.05, 64
    generator = torch_generator(0, "toy")
    z = 2.0 * torch.randint(0, 2, (sets, LATENT), generator=generator) - 1
    r = 0.3 * z[:, None, :2] + spread * torch.randn(sets, 64, 2, generator=generator)
    chance = torch.where(z[:, 2] > 0, bias, 1 - bias)
    first = torch.rand(sets, 64, generator=generator) < chance[:, None]
    x = torch.cat([r, torch.stack([first, ~first], dim=-1)], dim=-1)

    decoder = make_decoder(torch.float32, bins=6, particles=16, noise=noise)
    optimiser = torch.optim.Adam(decoder.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 100)
    loss = lambda: decoder.loss(z, x, decoder.draw(sets, generator))
    for _ in range(100):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
        schedule.step()

    with torch.no_grad():
        reached = torch.stack([loss() for _ in range(20)]).mean().item()
    positions = math.log(2 * math.pi * math.e * (spread**2 + noise**2))
    types = -bias * math.log(bias) - (1 - bias) * math.log(1 - bias)
    assert reached == pytest.approx(positions + types, abs=0.05)
