"""Displacements of walks that are known, and hexatic order of crystals."""

import numpy as np
import pytest

from tampl import Chain, InputError, Particles, Vector
from tampl.observables import find_observable

MSD = "mean-squared-displacement"


def test_points_in_uniform_motion_are_displaced_by_the_square_of_time():
    velocity = np.random.default_rng(0).normal(size=(4, 3))
    t = np.arange(5.0)
    x = (1.0 + velocity * t[:, None, None]).reshape(5, 12)
    found = find_observable(MSD).observe(x, Vector(size=12))[:, 0]
    np.testing.assert_allclose(found, np.square(velocity).sum(axis=1).mean() * t**2, atol=1e-12)
    # Numbers without space: each is a point of one coordinate.
    alone = find_observable(f"{MSD}:dim=1").observe(x, Vector(size=12))[:, 0]
    np.testing.assert_allclose(alone, found / 3, atol=1e-12)


def test_blocks_of_a_trajectory_give_what_the_whole_gives():
    generator = np.random.default_rng(1)
    kind = Particles(count=5, types=2, box=8.0)
    types = np.array([1, 2, 2, 1, 1])
    frames = kind.encode(generator.uniform(0, 8, (9, 5, 2)), types)
    for text in (MSD, f"{MSD}:type=2"):
        whole = find_observable(text).observe(frames, kind)
        blocks = find_observable(text).observe((frames[:1], frames[1:4], frames[4:]), kind)
        np.testing.assert_allclose(whole, blocks)
        r, _ = kind.decode(frames)
        chosen = types == 2 if "type" in text else types > 0
        direct = np.square(r - r[0]).sum(axis=2)[:, chosen].mean(axis=1)
        np.testing.assert_allclose(whole[:, 0], direct, atol=1e-9)


def test_particles_that_leave_no_longer_count():
    kind = Particles(count=2, types=1, box=8.0)
    r = np.array([[[1.0, 1.0], [1.0, 5.0]], [[3.0, 1.0], [1.0, 5.0]], [[3.0, 1.0], [1.0, 5.0]]])
    frames = kind.encode(r, np.array([[1, 1], [1, 1], [1, 0]]))
    found = find_observable(MSD).observe(frames, kind)[:, 0]
    np.testing.assert_allclose(found, [0, 2, 4], rtol=1e-3)
    with pytest.raises(InputError, match="no particle is there from the first frame to the last"):
        swapped = kind.encode(r[:2], np.array([[1, 0], [0, 1]]))
        find_observable(MSD).observe(swapped, kind)


def test_a_chain_has_its_unit():
    kind = Chain(beads=3, height=3, width=5)
    (observable,) = find_observable(MSD).describe(kind)
    assert observable.unit == "rods²" and observable.lower == 0


@pytest.mark.parametrize("dim", [2, 3])
def test_walks_through_periodic_faces_are_followed(dim):
    generator = np.random.default_rng(2)
    edges = np.array([5.0, 4.0, 6.0])[:dim]
    kind = Particles(count=20, types=1, dim=dim, box=tuple(edges), periodic=True)
    r = generator.uniform(0, edges, (20, dim)) + generator.uniform(
        -1.9, 1.9, (30, 20, dim)
    ).cumsum(axis=0)  # fmt: skip
    frames = kind.encode(r, np.ones(20, int))
    found = find_observable(MSD).observe((frames[:7], frames[7:]), kind)[:, 0]
    truth = np.square(r - r[0]).sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(found, truth, rtol=1e-3, atol=1e-2)
    assert truth.max() > np.square(edges).sum()


def test_a_particle_carried_by_a_growing_box_moves_with_it():
    kind = Particles(count=1, types=1, box=(4.0, 4.0), box_max=(8.0, 8.0), periodic=True)
    box = np.array([[4.0, 4.0], [5.0, 4.0], [8.0, 8.0]])
    frames = kind.encode(np.full((3, 1, 2), 1.0) * [1, 2], np.ones(1, int), box=box)
    assert find_observable(MSD).observe(frames, kind)[:, 0] == pytest.approx([0, 0, 0], abs=1e-6)
    density = find_observable("density:x=0..0.5").observe(frames, kind)[:, 0]
    np.testing.assert_allclose(density, 1 / (box.prod(axis=1) / 2), rtol=1e-3)
    number = find_observable("particle-number").observe(frames, kind)
    assert number.tolist() == [[1], [1], [1]]


def crystal(rows):
    """A triangular crystal that fits a periodic box, and the box."""
    edges = np.array([rows, rows * np.sqrt(3) / 2])
    i, j = np.meshgrid(np.arange(rows), np.arange(rows), indexing="ij")
    return np.stack([i + j / 2, j * np.sqrt(3) / 2], axis=-1).reshape(-1, 2), edges


def test_a_triangular_crystal_has_hexatic_order_and_a_square_one_fourfold():
    r, edges = crystal(6)
    kind = Particles(count=36, types=1, box=tuple(edges), periodic=True)
    frames = kind.encode(r[None] + 0.1, np.ones(36, int))
    assert find_observable("hexatic-order").observe(frames, kind).item() == pytest.approx(
        1, abs=1e-3
    )
    square = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(1, 36, 2)
    kind = Particles(count=36, types=1, box=6.0, periodic=True)
    frames = kind.encode(square + 0.5, np.ones(36, int))
    fourfold = find_observable("hexatic-order:fold=4,neighbours=4").observe(frames, kind)
    assert fourfold.item() == pytest.approx(1, abs=1e-3)


def test_hexatic_order_is_a_mean_over_particles_and_their_nearest():
    generator = np.random.default_rng(3)
    kind = Particles(count=30, types=1, box=(7.0, 9.0), periodic=(True, False))
    frames = kind.encode(generator.uniform(0, (7, 9), (2, 30, 2)), np.ones(30, int))
    found = find_observable("hexatic-order").observe(frames, kind)[:, 0]
    for value, r in zip(found, kind.decode(frames)[0], strict=True):
        apart = r - r[:, None]
        apart[..., 0] -= 7 * np.round(apart[..., 0] / 7)
        psi = []
        for own in apart:
            near = own[np.argsort(np.linalg.norm(own, axis=1))[1:7]]
            psi.append(np.exp(6j * np.arctan2(near[:, 1], near[:, 0])).mean())
        assert value == pytest.approx(abs(np.mean(psi)))


def test_hexatic_order_is_one_of_enough_particles_in_the_plane():
    flat, deep = (Particles(count=4, types=1, dim=dim, box=3.0) for dim in (2, 3))
    for kind, words in ((flat, "`neighbours` is 6, and a frame has 4"), (deep, "in the plane")):
        frames = kind.encode(np.ones((1, 4, kind.dim)), np.ones(4, int))
        with pytest.raises(InputError, match=words):
            find_observable("hexatic-order").observe(frames, kind)
