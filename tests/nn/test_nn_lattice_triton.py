"""The GPU's kernels against the plain convolutions: values and gradients. Needs a GPU."""

import pytest
import torch

from tampl.nn import LatticeDecoder, LatticeEncoder
from tampl.seeding import ambient_seed

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SIZES = [(8, 8), (100, 100), (25, 13), (7, 9), (2, 2), (1, 1)]


def make(widths, states=3):
    with ambient_seed(0, "encoder"):
        encoder = LatticeEncoder(states, 5, widths=widths, hidden=[8]).cuda()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.mul_(2)
    return encoder


def one_hot(size, states=3):
    sites = torch.randint(0, states, (4, *size), generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.one_hot(sites, states).movedim(-1, 1).float().cuda()


def result(encoder, x, dtype):
    from tampl.nn.lattice_triton import convolve

    encoder.zero_grad()
    field = (
        encoder.convolutions(x) if dtype is None else convolve(x, encoder.convolutions[::2], dtype)
    )
    field.sin().sum().backward()
    gradients = {k: p.grad.clone() for k, p in encoder.convolutions.named_parameters()}
    return {"field": field.detach(), **gradients}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("widths", [(4,), (4, 6), (32, 64, 128, 128), (5, 9, 17)], ids=str)
def test_values_and_gradients_are_those_of_plain_convolutions(size, widths):
    encoder, x = make(widths), one_hot(size)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        expected, found = result(encoder, x, None), result(encoder, x, torch.float32)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("states", [1, 2, 4, 5])
def test_other_numbers_of_states(states):
    encoder, x = make((4, 6), states), one_hot((9, 8), states)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        expected, found = result(encoder, x, None), result(encoder, x, torch.float32)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_half_precision_is_close(size=(100, 100)):
    encoder, x = make((32, 64, 128, 128)), one_hot(size)
    expected, found = result(encoder, x, None), result(encoder, x, torch.bfloat16)
    for key, value in expected.items():
        error = (found[key] - value).norm() / value.norm()
        assert error < 0.02, (key, error)


def test_the_encoder_takes_them_where_it_is_told_to():
    x = one_hot((16, 16))
    encoder = make((4, 6))
    plain = encoder(x)
    encoder.dtype = torch.bfloat16
    assert not torch.equal(encoder(x), plain)
    torch.testing.assert_close(encoder(x), plain, rtol=0.05, atol=0.02)


def make_decoder(size, widths, states=3):
    with ambient_seed(0, "decoder"):
        decoder = LatticeDecoder(5, states, size=size, widths=widths, hidden=[8]).cuda()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.mul_(2)
    return decoder


def decoded(decoder, dtype):
    decoder.zero_grad()
    decoder.dtype = dtype
    z = torch.linspace(-1, 1, 20, device="cuda").view(4, 5)
    logits = decoder(z)
    logits.sin().sum().backward()
    gradients = {k: p.grad.clone() for k, p in decoder.named_parameters()}
    return {"logits": logits.detach(), **gradients}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("widths", [(4,), (4, 6), (5, 9, 17)], ids=str)
def test_enlarging_convolutions_are_those_of_plain_ones(size, widths, monkeypatch):
    from tampl.nn import lattice_triton

    decoder = make_decoder(size, widths)
    # The decoder asks for bfloat16; in single precision the comparison is a sharp one.
    exact = lambda field, layers, sizes, dtype: fused(field, layers, sizes, torch.float32)
    fused = lattice_triton.deconvolve
    monkeypatch.setattr(lattice_triton, "deconvolve", exact)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        plain, found = decoded(decoder, torch.float32), decoded(decoder, torch.bfloat16)
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-4)


def test_a_decoder_in_half_precision_is_close():
    decoder = make_decoder((100, 100), (128, 64, 32, 16))
    plain, found = decoded(decoder, torch.float32), decoded(decoder, torch.bfloat16)
    for key, value in plain.items():
        error = (found[key] - value).norm() / value.norm()
        assert error < 0.05, (key, error)
