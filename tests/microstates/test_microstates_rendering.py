"""Pictures of chains against the formula pixel by pixel, and what must not change them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.microstates.chain import render
from tampl.seeding import kernel_words
from tampl.systems.kernels.coils import sample_coils


def slow(beads, height, width):
    """The published formula in double precision, one bead and one pixel after the other."""
    picture = np.zeros((height, width))
    middle = beads[:, 2].mean()
    for x, y, z in beads:
        sigma = max(abs(z - middle) / 5, 1.0)
        for row in range(height):
            for column in range(width):
                squared = (column - width // 2 - x) ** 2 + (row - height // 2 - y) ** 2
                picture[row, column] += np.exp(-squared / (2 * sigma**2)) / (2 * np.pi * sigma**2)
    return np.round(255 * picture / picture.max())


def levels(picture):
    k = 255 * picture.double().cpu().numpy()
    np.testing.assert_allclose(k, np.round(k), atol=1e-4)
    return np.round(k)


@settings(max_examples=15, deadline=None)
@given(
    beads=st.integers(1, 12),
    size=st.tuples(st.integers(1, 9), st.integers(1, 12)),
    spread=st.sampled_from([0.1, 2.0, 15.0]),
    seed=st.integers(0, 2**32),
)
def test_every_pixel_is_that_of_the_formula(device, beads, size, spread, seed):
    # A picture is of a chain that is in view: its first bead is.
    x = spread * np.random.default_rng(seed).normal(size=(beads, 3))
    x[0] = 0.3
    expected = slow(x.astype(np.float32).astype(float), *size)
    for dtype in (torch.float32, torch.float64):
        placed = torch.tensor(x, dtype=dtype, device=device)
        found = levels(render(placed, height=size[0], width=size[1]))
        assert np.abs(found - expected).max() <= 1


def test_a_chain_of_the_papers_size(device):
    words = np.stack([kernel_words(3, i) for i in range(2)])
    beads = np.cumsum(sample_coils(words, 300), axis=1)
    beads -= beads.mean(axis=1, keepdims=True)
    # Stretched along the flow as in the stationary state.
    beads *= np.array([[[1, 1, 1]], [[6, 0.2, 0.2]]])
    found = levels(render(torch.from_numpy(beads).float().to(device), height=100, width=500))
    x, y, z = np.moveaxis(beads, -1, 0)[..., None, None]
    sigma = np.maximum(np.abs(z - z.mean(axis=1, keepdims=True)) / 5, 1)
    light = np.zeros((2, 100, 500))
    for i in range(beads.shape[1]):
        squared = (np.arange(-250, 250) - x[:, i]) ** 2 + (
            np.arange(-50, 50)[:, None] - y[:, i]
        ) ** 2
        light += np.exp(-squared / (2 * sigma[:, i] ** 2)) / (2 * np.pi * sigma[:, i] ** 2)
    expected = np.round(255 * light / light.max(axis=(1, 2), keepdims=True))
    assert np.abs(found - expected).max() <= 1
    assert (found != expected).mean() < 1e-4
    assert (found.max(axis=(1, 2)) == 255).all()


def test_order_of_beads_and_common_depth_do_not_matter(device):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 3)) * 4).to(device)
    picture = render(x, height=16, width=24)
    assert torch.equal(render(x.flip(0), height=16, width=24), picture)
    deeper = x + torch.tensor([0.0, 0.0, 30.0], device=device)
    assert torch.equal(render(deeper, height=16, width=24), picture)


def test_a_move_by_a_pixel_moves_the_picture(device):
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(20, 3))).to(device)
    picture = render(x, height=30, width=40)
    moved = render(x + torch.tensor([3.0, -2.0, 0.0], device=device), height=30, width=40)
    torch.testing.assert_close(moved, picture.roll((-2, 3), dims=(0, 1)))


def test_beads_out_of_focus_are_wider_and_dimmer(device):
    beads = [[0.0, 0.0, 0.0], [10.0, 0.0, 10.0], [-10.0, 0.0, -10.0]]
    near = torch.tensor(beads, device=device)
    picture = render(near, height=11, width=41)[5]
    assert picture[20] == 1 and picture[30] == picture[10]
    # Twice as wide is a quarter as bright.
    assert picture[30].item() == pytest.approx(0.25, abs=2 / 255)
    assert picture[33] > picture[23]


def test_a_chain_out_of_view_is_black(device):
    assert not render(torch.full((4, 3), 1e6, device=device), height=5, width=5).any()


def test_stacks_are_rendered_one_by_one(device):
    x = torch.randn(2, 3, 7, 3, generator=torch.Generator().manual_seed(0)).to(device)
    pictures = render(x, height=6, width=8)
    assert pictures.shape == (2, 3, 6, 8)
    alone = render(x[1, 2], height=6, width=8)
    assert (pictures[1, 2] - alone).abs().max() <= 1.01 / 255
