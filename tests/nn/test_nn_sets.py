"""Networks for sets: no order, no size, nothing where no particle is, and densities."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.nn import DeepSet, Harmonics, ParticleLaw
from tampl.nn.sets import CONTRAST, SCALE
from tampl.seeding import ambient_seed, torch_generator

DIM, TYPES = 2, 3


def make_encoder(dtype=torch.float64, device="cpu", **changes):
    arguments = {"outputs": 5, "widths": [16, 12], "hidden": [8]} | changes
    with ambient_seed(0, "encoder"):
        return DeepSet(DIM, TYPES, **arguments).to(device, dtype)


def particles(seed, batch, count, dtype=torch.float64, device="cpu"):
    generator = torch_generator(seed, "particles")
    position = 2 * torch.rand(batch, count, DIM, generator=generator, dtype=torch.float64) - 1
    kind = torch.randint(TYPES, (batch, count), generator=generator)
    one_hot = torch.nn.functional.one_hot(kind, TYPES).double()
    return torch.cat([position, one_hot], dim=-1).to(device, dtype)


def test_it_is_the_formula_particle_by_particle():
    encoder, x = make_encoder(), particles(0, 3, 7)
    with torch.no_grad():
        for encoded, members in zip(encoder(x), x, strict=True):
            total = torch.zeros(12, dtype=torch.float64)
            for h in members:
                for layer in encoder.layers:
                    h = layer.weight @ h
                    h = h / (1 + torch.exp(-h))
                total += h
            expected = encoder.head(CONTRAST * (total / 7 - encoder.mixed))
            torch.testing.assert_close(encoded, expected, rtol=0, atol=1e-11)


def test_a_mixture_without_structure_is_the_origin_of_what_the_head_sees():
    encoder = make_encoder()
    axis = (torch.arange(16, dtype=torch.float64) + 0.5) / 8 - 1
    places = torch.cartesian_prod(axis, axis)
    kinds = torch.eye(TYPES, dtype=torch.float64)
    mixture = torch.cat([torch.cat([places, kind.expand(256, -1)], dim=-1) for kind in kinds])
    origin = encoder.head(torch.zeros(1, 12, dtype=torch.float64))
    torch.testing.assert_close(encoder(mixture[None]), origin, rtol=0, atol=1e-5)


@pytest.mark.parametrize("types", [2, 3])
def test_sets_with_structure_are_apart_at_the_start_and_no_wider_than_noise(types):
    """Each type has a slab of the box to itself, in one of many directions."""
    generator = torch_generator(0, "slabs")
    angle = 2 * torch.pi * torch.rand(64, 1, generator=generator)
    place = 2 * torch.rand(64, 512, 2, generator=generator) - 1
    depth = place[..., 0] * angle.cos() + place[..., 1] * angle.sin()
    kind = depth.argsort(dim=1).argsort(dim=1) * types // 512
    x = torch.cat([place, torch.nn.functional.one_hot(kind, types).float()], dim=-1)
    for seed in range(4):
        with ambient_seed(seed, "encoder"):
            encoder = DeepSet(2, types, outputs=8, widths=[64, 64], hidden=[64])
        z = encoder(x)
        assert 0.1 < z.std(dim=0).mean() < 1
        assert z.mean(dim=0).abs().max() < 1.5


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), order=st.permutations(range(9)))
def test_the_order_of_particles_does_not_matter(seed, order):
    encoder, x = make_encoder(), particles(seed, 2, 9)
    torch.testing.assert_close(encoder(x[:, order]), encoder(x), rtol=0, atol=1e-11)


def test_in_single_precision_order_matters_as_a_sum_does():
    encoder = make_encoder(torch.float32, widths=[128, 128])
    x = particles(0, 4, 512, torch.float32)
    moved = x[:, torch.randperm(512, generator=torch_generator(0, "order"))]
    scale = encoder(x).abs().max().item()
    torch.testing.assert_close(encoder(moved), encoder(x), rtol=0, atol=2e-6 * scale)


@settings(max_examples=25, deadline=None)
@given(present=st.lists(st.booleans(), min_size=1, max_size=12).filter(any))
def test_rows_of_zeros_are_no_particles_wherever_they_are(present):
    encoder, kept = make_encoder(), torch.tensor(present)
    x = particles(0, 2, len(present))
    full, short = x * kept[:, None], x[:, kept]
    assert not encoder.features(full, x.dtype)[:, ~kept].any()
    torch.testing.assert_close(encoder(full), encoder(short), rtol=0, atol=1e-11)


@pytest.mark.parametrize("copies", [2, 5])
def test_a_set_and_its_copies_look_the_same(copies, dtype, device, tolerance):
    encoder, x = make_encoder(dtype, device), particles(0, 2, 6, dtype, device)
    torch.testing.assert_close(encoder(x.repeat(1, copies, 1)), encoder(x), **tolerance)


def test_positions_and_types_both_count():
    encoder, x = make_encoder(), particles(0, 1, 6)
    exchanged = torch.cat([x[..., :DIM], x[..., DIM:].roll(1, -2)], dim=-1)
    assert (encoder(exchanged) - encoder(x)).abs().max() > 1e-3
    x.requires_grad_()
    encoder(x).square().sum().backward()
    assert (x.grad[..., :DIM] != 0).all()


@pytest.mark.parametrize("wraps", [(False, False), (True, False), (True, True, True)])
def test_harmonics_are_orthogonal_waves_of_the_box(wraps):
    """Over a grid of midpoints the waves have no mean and no product with one another."""
    axis = (torch.arange(16, dtype=torch.float64) + 0.5) / 8 - 1
    places = torch.cartesian_prod(*[axis] * len(wraps))
    angle = torch.pi * (places + 1)
    columns = [
        torch.stack([angle[:, k].cos(), angle[:, k].sin()], dim=-1)
        if wrap
        else places[:, k : k + 1]
        for k, wrap in enumerate(wraps)
    ]
    waves = Harmonics(wraps, 3).double()(torch.cat(columns, dim=-1))
    gram = waves.T @ waves / len(waves)
    assert len(gram) == len(set(map(tuple, waves.T.round(decimals=9).tolist())))
    torch.testing.assert_close(waves.mean(dim=0), torch.zeros(len(gram)).double())
    torch.testing.assert_close(gram, gram.diagonal().diag())
    assert (gram.diagonal() > 0.1).all()


def test_harmonics_along_walls_are_cosines():
    place = torch.tensor([[-1.0, 0.3]], dtype=torch.float64)
    x, y = torch.pi * (place[0] + 1) / 2
    waves = Harmonics((False, False), 2).double()(place)[0]
    expected = [y.cos(), (2 * y).cos(), x.cos(), x.cos() * y.cos(), (2 * x).cos()]
    torch.testing.assert_close(waves, torch.stack(expected))


def test_further_columns_pass_through_the_harmonics():
    seen = torch.tensor([[0.2, 0.7, -0.4]])
    assert Harmonics((False,), 3)(seen)[0, 3:].tolist() == seen[0, 1:].tolist()


def test_rows_of_zeros_stay_no_particles_behind_harmonics():
    encoder, x = make_encoder(lift=Harmonics((False, False), 3)), particles(0, 2, 7)
    present = torch.tensor([1, 0, 1, 1, 0, 1, 1]).bool()
    assert not encoder.features(x * present[:, None], x.dtype)[:, ~present].any()
    torch.testing.assert_close(encoder(x * present[:, None]), encoder(x[:, present]))


def test_gradients_reach_every_parameter(dtype, device):
    encoder = make_encoder(dtype, device)
    encoder(particles(0, 2, 6, dtype, device)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in encoder.parameters())


def test_each_set_of_the_batch_is_encoded_by_itself(dtype, device, tolerance):
    encoder, x = make_encoder(dtype, device), particles(0, 2, 6, dtype, device)
    alone = torch.cat([encoder(x[:1]), encoder(x[1:])])
    torch.testing.assert_close(encoder(x), alone, **tolerance)


def test_low_precision_is_close():
    encoder, x = make_encoder(torch.float32), particles(0, 4, 64, torch.float32)
    exact, low = encoder.features(x, torch.float32), encoder.features(x, torch.bfloat16)
    assert low.dtype == torch.bfloat16
    assert (low - exact).abs().max() < 0.02 * exact.abs().max()
    weights = list(encoder.layers.parameters())
    gradients = (torch.autograd.grad(h.float().square().mean(), weights) for h in (low, exact))
    for ours, theirs in zip(*gradients, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() < 0.02 * theirs.norm()


def test_low_precision_still_sees_sixteen_bits_of_a_position():
    """256 r - 230 near r = 0.9: eight bits of r would be off by up to one half."""
    encoder = make_encoder(torch.float32, widths=[1])
    with torch.no_grad():
        encoder.layers[0].weight.copy_(torch.tensor([[256.0, 0.0, -230.0, 0.0, 0.0]]))
    x = torch.zeros(1, 50, DIM + TYPES)
    x[..., 0], x[..., DIM] = 0.9 + torch.arange(50) * 2.0**-15, 1.0
    y = 256 * x[..., :1] - 230
    expected = y * y.sigmoid()
    assert (encoder.features(x, torch.bfloat16) - expected).abs().max() < 0.01


def test_nothing_waits_for_values():
    """Tensors without values can be encoded, so a step can be recorded on a GPU."""
    encoder = make_encoder(device="meta")
    x = torch.empty(3, 7, DIM + TYPES, dtype=torch.float64, device="meta")
    encoder(x).sum().backward()
    assert encoder(x).shape == (3, 5)


def make_law(seed=0, **changes):
    arguments = {"transforms": 2, "bins": 4, "hidden": [16], "type_hidden": [16]} | changes
    with ambient_seed(seed, "law"):
        law = ParticleLaw(4, DIM, TYPES, **arguments).double()
    with torch.no_grad():
        for parameter in law.parameters():
            parameter.mul_(2)
    return law


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch_generator(seed, "normal"), dtype=torch.float64)


@pytest.mark.parametrize("seed", range(2))
def test_the_density_of_positions_integrates_to_one(seed):
    law, z = make_law(seed), normal(4, seed=seed)
    points, edge = 301, 1.3
    line = torch.linspace(-edge, edge, points, dtype=torch.float64)
    r, cell = torch.cartesian_prod(line, line), (2 * edge / (points - 1)) ** 2
    with torch.no_grad():
        density = law.log_position(r, z.expand(len(r), -1)).exp()
    assert density.sum().item() * cell == pytest.approx(1, abs=2e-3)
    # Not the bare normal: the splines do something, and z has a say in it.
    base = torch.exp(-(SCALE * r).square().sum(dim=-1) / 2) * SCALE**2 / (2 * torch.pi)
    with torch.no_grad():
        other = law.log_position(r, -z.expand(len(r), -1)).exp()
    assert (density - base).abs().max() > 0.1 and (density - other).abs().max() > 0.05


def test_far_positions_have_the_base_s_density():
    law, r = make_law(), torch.tensor([[1.4, -1.5], [-2.0, 1.3]], dtype=torch.float64)
    base = torch.distributions.Normal(0.0, 1 / SCALE).log_prob(r).sum(dim=-1)
    torch.testing.assert_close(law.log_position(r, torch.ones(2, 4).double()), base)


def test_probabilities_of_types_sum_to_one_and_depend_on_position_and_latent():
    law, r, z = make_law(), normal(6, DIM), normal(6, 4, seed=1)
    probability = law.log_type(r, z).exp()
    torch.testing.assert_close(probability.sum(dim=-1), torch.ones(6).double())
    assert (law.log_type(-r, z).exp() - probability).abs().max() > 1e-3
    assert (law.log_type(r, -z).exp() - probability).abs().max() > 1e-3


def test_log_position_is_the_flow_s_change_of_variables():
    """By the Jacobian of the map to the base, point by point."""
    law, z = make_law(transforms=3), normal(4)
    transform = law.positions.transform(z)
    to_base = lambda r: transform(SCALE * r)
    for r in 0.5 * normal(5, DIM, seed=1):
        jacobian = torch.autograd.functional.jacobian(to_base, r)
        base = torch.distributions.Normal(0.0, 1.0).log_prob(to_base(r)).sum()
        expected = base + jacobian.det().abs().log()
        torch.testing.assert_close(law.log_position(r, z), expected)


def test_a_set_can_be_counted_where_sizes_vary():
    """Particles twice over have the same mean; only a network that counts tells them apart."""
    x = particles(0, 2, 6)
    twice = torch.cat([x, x], dim=1)
    blind, counting = make_encoder(), make_encoder(counted=6)
    with torch.no_grad():
        torch.testing.assert_close(blind(x), blind(twice))
        assert (counting(x) - counting(twice)).abs().max() > 1e-3
        padded = torch.cat([x, torch.zeros_like(x)], dim=1)
        torch.testing.assert_close(counting(x), counting(padded))
