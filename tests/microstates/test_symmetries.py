"""Symmetries: what they keep, and that every motion of the group turns up."""

import numpy as np
import pytest
import torch

from tampl.microstates import Chain, Image, Lattice, Particles, Vector
from tampl.seeding import kernel_words, torch_generator
from tampl.systems.kernels.coils import sample_coils

PLANE = np.arange(9, dtype=np.uint8).reshape(3, 3)
TURNS = [np.rot90(plane, turns) for plane in (PLANE, PLANE.T) for turns in range(4)]
GROUP = {
    ("flip",): [PLANE[::i, ::j] for i in (1, -1) for j in (1, -1)],
    ("shift",): [np.roll(PLANE, (i, j), (0, 1)) for i in range(3) for j in range(3)],
    ("transpose",): [PLANE, PLANE.T],
    ("flip", "transpose"): TURNS,
    ("shift", "flip", "transpose"): [
        np.roll(turned, (i, j), (0, 1)) for turned in TURNS for i in range(3) for j in range(3)
    ],
}


def moved(kind, stored, symmetries, seed=0):
    return kind.transformed(torch.tensor(stored), symmetries, torch_generator(seed)).numpy()


@pytest.mark.parametrize("symmetries", GROUP)
def test_lattices_go_through_exactly_the_group(symmetries):
    kind = Lattice(height=3, width=3, states=9)
    stored = np.broadcast_to(PLANE, (1000, 2, 3, 3))
    found = moved(kind, stored, symmetries)
    assert found.dtype == np.uint8
    assert np.array_equal(found[:, 0], found[:, 1])  # one motion for all frames
    expected = {plane.tobytes() for plane in map(np.ascontiguousarray, GROUP[symmetries])}
    assert {plane.tobytes() for plane in found[:, 0]} == expected


def test_lattices_that_are_not_square_do_not_change_their_axes():
    kind = Lattice(height=2, width=3, states=6)
    assert kind.symmetries == {"shift", "flip"}
    stored = np.arange(6, dtype=np.uint8).reshape(1, 1, 2, 3).repeat(200, axis=0)
    found = moved(kind, stored, ["shift", "flip"])
    assert found.shape == stored.shape and len(np.unique(found, axis=0)) > 6
    assert (np.sort(found.reshape(200, 6)) == np.arange(6)).all()


def test_pictures_flip():
    kind = Image(height=2, width=3)
    stored = np.arange(6, dtype=np.uint8).reshape(1, 1, 2, 3).repeat(50, axis=0)
    found = moved(kind, stored, ["flip"])
    expected = {stored[0, 0, ::i, ::j].tobytes() for i in (1, -1) for j in (1, -1)}
    assert {plane.tobytes() for plane in found[:, 0]} == expected


def test_particles_keep_distances_types_and_the_box():
    kind, rng = Particles(count=5, types=2, box=8.0), np.random.default_rng(0)
    types = np.array([1, 2, 2, 1, 0])
    stored = kind.encode(rng.uniform(0, 8, (1, 3, 5, 2)), types).repeat(100, axis=0)
    stored[..., -1, :] = 0
    found = moved(kind, stored, ["flip", "transpose"])
    assert found.dtype == np.uint16
    assert len(np.unique(found[:, 0].reshape(100, -1), axis=0)) == 8
    assert np.array_equal(found[..., 2], stored[..., 2]) and not found[..., -1, :].any()
    before, after = (kind.decode(x[..., :-1, :])[0] for x in (stored, found))
    for x in (before, after):
        assert (x > 0).all() and (x < 8).all()

    def distances(x):
        return np.linalg.norm(x[..., :, None, :] - x[..., None, :, :], axis=-1)

    assert np.allclose(distances(before), distances(after), rtol=0, atol=1e-12)
    # A wall stays a wall: the distance to the nearest one is kept too.
    walls = [np.minimum(x, 8 - x).min(axis=-1) for x in (before, after)]
    assert np.allclose(*walls, rtol=0, atol=1e-12)


def test_chains_keep_rods_and_extension():
    kind = Chain(beads=12, height=20, width=40)
    rods = sample_coils(kernel_words(0, "symmetries")[None], kind.beads)
    beads = np.cumsum(np.pad(rods, ((0, 0), (1, 0), (0, 0))), axis=1)
    stored = (beads - beads.mean(axis=1, keepdims=True)).astype(np.float32)[None].repeat(100, 0)
    found = moved(kind, stored, ["flip"])
    assert found.dtype == np.float32 and len(np.unique(found.reshape(100, -1), axis=0)) == 8
    assert np.array_equal(np.abs(found), np.abs(stored))
    assert np.array_equal(np.ptp(found, axis=-2), np.ptp(stored, axis=-2))


def test_motions_follow_the_generator():
    kind, stored = Lattice(height=3, width=3, states=9), np.broadcast_to(PLANE, (40, 1, 3, 3))
    first, again, other = (moved(kind, stored, ["shift"], seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize(
    "kind",
    [
        Lattice(height=3, width=3, states=9),
        Image(height=3, width=3),
        Particles(count=3, types=2, box=1.0),
        Chain(beads=3, height=4, width=4),
        Vector(size=3),
    ],
    ids=lambda kind: kind.kind,
)
def test_without_symmetries_nothing_moves(kind):
    stored = np.random.default_rng(0).integers(0, 3, (5, 2, *kind.shape)).astype(kind.dtype)
    assert np.array_equal(moved(kind, stored, []), stored)


def test_vectors_have_none():
    assert not Vector(size=3).symmetries
