"""Chains of beads as microstates: stored form, network input, what is refused."""

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from tampl.errors import InputError
from tampl.microstates import AnyMicrostate, Chain
from tampl.microstates.chain import render

CHAIN = Chain(beads=5, height=6, width=9)


def chains(*shape, seed=0):
    rods = np.random.default_rng(seed).normal(size=(*shape, 5, 3))
    x = np.cumsum(rods / np.linalg.norm(rods, axis=-1, keepdims=True), axis=-2)
    return (x - x.mean(axis=-2, keepdims=True)).astype(np.float32)


def test_a_chain_survives_json():
    assert TypeAdapter(AnyMicrostate).validate_json(CHAIN.model_dump_json()) == CHAIN


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
        (1.06 * chains(2), r"rod whose length is off by 0\.06.*one diameter apart within 0\.05"),
        (chains(2, 2)[..., [0, 3, 2, 1, 4], :], "between beads . and .*bead after bead along"),
        (np.full((5, 3), np.nan), "must be finite"),
        (np.full((5, 3), "x"), "must hold coordinates"),
        (np.ones((5, 3), bool), "must hold coordinates"),
    ],
)
def test_what_is_no_chain_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        CHAIN.check(wrong, "`x`")


def test_a_rod_is_named_by_its_beads():
    x = chains()
    x[3:] += 0.2 * (x[3] - x[2])
    with pytest.raises(InputError, match=r"off by 0\.2, between beads 2 and 3; consecutive"):
        CHAIN.check(x - x.mean(axis=0), "`x`")
    CHAIN.check(1.04 * chains(2, 3), "`x`")


@pytest.mark.parametrize("sizes", [{"beads": 1}, {"height": 0}, {"width": -1}, {"depth": 3}])
def test_impossible_chains(sizes):
    with pytest.raises(InputError):
        Chain(**{"beads": 5, "height": 6, "width": 9, **sizes})
