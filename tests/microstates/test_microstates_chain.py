"""Chains of beads and pictures as microstates: stored form, network input, what is refused."""

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from tampl.errors import InputError
from tampl.microstates import AnyMicrostate, Chain, Image
from tampl.microstates.rendering import render

CHAIN = Chain(beads=5, height=6, width=9)
IMAGE = Image(height=4, width=3)


def chains(*shape, seed=0):
    x = np.random.default_rng(seed).normal(size=(*shape, 5, 3))
    return (x - x.mean(axis=-2, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("kind", [CHAIN, IMAGE])
def test_a_kind_survives_json(kind):
    assert TypeAdapter(AnyMicrostate).validate_json(kind.model_dump_json()) == kind


def test_a_chain_is_stored_by_coordinates_and_seen_as_a_picture():
    assert CHAIN.shape == (5, 3) and CHAIN.dtype == np.float32
    x = chains(2)
    picture = CHAIN.network_input(torch.from_numpy(x), torch.float64)
    assert picture.shape == (2, 1, 6, 9) and picture.dtype == torch.float64
    expected = render(torch.from_numpy(x), height=6, width=9)
    assert torch.equal(picture[:, 0], expected.double())


def test_other_precisions_become_single():
    x = chains(2, 3).astype(np.float64)
    checked = CHAIN.check(x, "`x`")
    assert checked.dtype == np.float32
    np.testing.assert_array_equal(checked, x.astype(np.float32))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (chains(2)[:, :-1], r"`x` has shape \(2, 4, 3\); a microstate .* has shape \(5, 3\)"),
        (chains(2) + 0.1, "centre of mass is off the origin by 0.1: subtract the mean"),
        (np.full((5, 3), np.nan), "must be finite"),
        (np.full((5, 3), "x"), "must hold coordinates"),
        (np.ones((5, 3), bool), "must hold coordinates"),
    ],
)
def test_what_is_no_chain_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        CHAIN.check(wrong, "`x`")


def test_a_picture_has_a_byte_a_pixel():
    assert IMAGE.shape == (4, 3) and IMAGE.dtype == np.uint8
    stored = np.arange(24).reshape(2, 4, 3) * 10
    checked = IMAGE.check(stored, "`x`")
    assert checked.dtype == np.uint8
    x = IMAGE.network_input(torch.from_numpy(checked), torch.float32)
    assert x.shape == (2, 1, 4, 3)
    np.testing.assert_allclose(x[:, 0], stored / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((3, 4), np.uint8), r"`x` has shape \(3, 4\)"),
        (np.full((4, 3), 0.5), r"`x` holds float64.*give round\(255 I\) as uint8"),
        (np.ones((4, 3), bool), "holds bool; a picture has a byte per pixel"),
        (np.full((4, 3), 256), "has a pixel of 256; pixels are 0 to 255"),
        (np.full((4, 3), -1), "has a pixel of -1"),
    ],
)
def test_what_is_no_picture_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        IMAGE.check(wrong, "`x`")


@pytest.mark.parametrize("sizes", [{"beads": 1}, {"height": 0}, {"width": -1}, {"depth": 3}])
def test_impossible_chains(sizes):
    with pytest.raises(ValidationError):
        Chain(**{"beads": 5, "height": 6, "width": 9, **sizes})
