"""The lattice encoder: translations, relabelled states, sizes of any parity."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.microstates import Lattice
from tampl.nn import CircularConv2d, LatticeDecoder, LatticeEncoder
from tampl.seeding import ambient_seed, torch_generator

STATES, STRIDE = 3, 4


def make_encoder(dtype=torch.float64, device="cpu"):
    """Two convolutions, so that the lattice is read with a stride of 4."""
    with ambient_seed(0, "encoder"):
        return LatticeEncoder(STATES, 5, widths=[4, 6], hidden=[8]).to(device, dtype)


def one_hot(seed, height, width, dtype=torch.float64, device="cpu"):
    generator = torch_generator(seed, "sites")
    shape = (2, height, width)
    sites = torch.randint(0, STATES, shape, generator=generator).to(torch.uint8)
    kind = Lattice(height=height, width=width, states=STATES)
    return kind.network_input(sites, dtype).to(device)


def test_shifts_by_the_total_stride_leave_the_encoding_unchanged(dtype, device, tolerance):
    encoder, x = make_encoder(dtype, device), one_hot(0, 8, 12, dtype, device)
    for shift in [(4, 0), (0, 4), (4, 8), (-4, 4)]:
        moved = torch.roll(x, shift, (-2, -1))
        torch.testing.assert_close(encoder(moved), encoder(x), **tolerance)
    # Shifts in between do change it: the encoder sees more than the number of sites in a state.
    assert (encoder(torch.roll(x, 1, -1)) - encoder(x)).abs().max() > 1e-3


def test_initial_weights_keep_the_size_of_what_differs_between_sites():
    """Through six layers what is seen of a site neither dies nor grows out of hand."""
    with ambient_seed(0, "deep"):
        encoder = LatticeEncoder(STATES, 5, widths=[32, 64, 128, 128, 128, 128], hidden=[8])
    field, sizes = one_hot(0, 100, 100, torch.float32), []
    with torch.no_grad():
        for layer in encoder.convolutions:
            field = layer(field)
            sizes.append(field.std(dim=(0, 2, 3)).mean())
    after = sizes[1::2]
    assert all(0.1 < size < 1 for size in after), after


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    cells=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    shift=st.tuples(st.integers(-4, 4), st.integers(-4, 4)),
)
def test_convolutions_commute_with_translations(seed, cells, shift):
    convolutions = make_encoder().convolutions
    x = one_hot(seed, cells[0] * STRIDE, cells[1] * STRIDE)
    moved = torch.roll(x, [STRIDE * step for step in shift], (-2, -1))
    expected = torch.roll(convolutions(x), shift, (-2, -1))
    torch.testing.assert_close(convolutions(moved), expected, rtol=0, atol=1e-12)
    assert convolutions(x).shape[-2:] == cells


def test_relabelled_states_are_relabelled_channels(dtype, device, tolerance):
    encoder, x = make_encoder(dtype, device), one_hot(0, 8, 8, dtype, device)
    expected = encoder(x)
    order = [2, 0, 1]
    with torch.no_grad():
        weight = encoder.convolutions[0].weight
        weight.copy_(weight[:, order].clone())
    torch.testing.assert_close(encoder(x[:, order]), expected, **tolerance)


@pytest.mark.parametrize("size", [(8, 8), (7, 7), (5, 8), (3, 3), (1, 1), (2, 9)])
def test_a_uniform_lattice_looks_the_same_at_any_size(size, dtype, device):
    encoder = make_encoder(dtype, device)
    uniform = one_hot(0, 1, 1, dtype, device)
    torch.testing.assert_close(encoder(uniform.expand(2, STATES, *size)), encoder(uniform))


@pytest.mark.parametrize("size", [3, 5, 7, 9, 13, 25])
def test_odd_sizes_work_and_every_site_counts(size):
    encoder, x = make_encoder(), one_hot(0, size, size).requires_grad_()
    encoder(x).square().sum().backward()
    assert (x.grad.abs().sum(dim=1) > 0).all()


def test_each_state_of_the_batch_is_encoded_by_itself(dtype, device, tolerance):
    encoder, x = make_encoder(dtype, device), one_hot(0, 8, 8, dtype, device)
    alone = torch.cat([encoder(x[:1]), encoder(x[1:])])
    torch.testing.assert_close(encoder(x), alone, **tolerance)
    assert encoder(x).shape == (2, 5)


def test_gradients_reach_every_parameter(dtype, device):
    encoder = make_encoder(dtype, device)
    encoder(one_hot(0, 8, 8, dtype, device)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in encoder.parameters())


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(8, 8), (7, 9), (1, 4), (2, 2), (1, 1)])
def test_convolution_and_its_gradients_are_torch_s(size, stride, dtype, device, tolerance):
    """The same as torch's own circular padding, forward and backward."""
    with ambient_seed(0, "convolution"):
        ours = CircularConv2d(3, 4, stride=stride).to(device, dtype)
        theirs = torch.nn.Conv2d(3, 4, 3, stride=stride, padding=1, padding_mode="circular").to(
            device, dtype
        )
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(0), dtype=dtype)
    results = []
    for convolution in (ours, theirs):
        leaf = x.to(device, copy=True).requires_grad_()
        y = convolution(leaf)
        y.sin().sum().backward()
        results.append((y.detach(), leaf.grad, convolution.weight.grad, convolution.bias.grad))
    torch.testing.assert_close(*results, **tolerance)


def test_gradients_of_the_padding_are_finite_differences():
    x = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    convolution = CircularConv2d(1, 2).double()
    assert torch.autograd.gradcheck(convolution, (x,))


def make_decoder(size, dtype=torch.float64, device="cpu"):
    with ambient_seed(0, "decoder"):
        decoder = LatticeDecoder(5, STATES, size=size, widths=[6, 4], hidden=[8])
    return decoder.to(device, dtype)


@pytest.mark.parametrize("size", [(8, 8), (7, 7), (100, 100), (25, 13), (3, 5), (1, 1)])
def test_decoder_returns_exactly_the_lattice_s_size(size, dtype, device):
    z = torch.zeros(2, 5, dtype=dtype, device=device)
    assert make_decoder(size, dtype, device)(z).shape == (2, STATES, *size)


def test_decoder_uses_every_latent_dimension_and_weight():
    decoder = make_decoder((7, 8))
    z = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    decoder(z).square().sum().backward()
    assert (z.grad.abs().sum(dim=0) > 0).all()
    assert all(parameter.grad.abs().sum() > 0 for parameter in decoder.parameters())


def test_decoder_can_tell_sites_apart():
    """A convolution alone could not: the coarse lattice has weights for every place."""
    field = make_decoder((8, 8))(torch.ones(1, 5, dtype=torch.float64))
    assert (field - field.roll(4, -1)).abs().max() > 1e-3
