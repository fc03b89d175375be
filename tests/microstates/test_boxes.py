"""Boxes of particles that are not square, that are periodic, and that change."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from pydantic import TypeAdapter

from tampl.errors import InputError
from tampl.microstates import AnyMicrostate, Particles
from tampl.models.encoders import DeepSetEncoderSpec
from tampl.seeding import ambient_seed, torch_generator

EDGES = (4.0, 8.0, 2.0)
SLAB = Particles(count=5, dim=3, types=2, box=EDGES, periodic=(True, True, False))
PRESS = Particles(count=5, dim=2, types=2, box=(4.0, 6.0), box_max=(5.0, 6.0), periodic=True)
TYPES = np.array([1, 2, 2, 1, 0])


def encoder(kind):
    spec = DeepSetEncoderSpec(name="deepset", widths=(16, 12), hidden=(8,))
    with ambient_seed(0, "boxes"):
        return spec.build(kind, 3).double()


@torch.no_grad()
def encode(kind, stored):
    return encoder(kind)(kind.network_input(torch.from_numpy(stored), torch.float64))


def scatter(kind, frames=4, seed=0):
    edges = np.broadcast_to(kind.box, kind.dim)
    return np.random.default_rng(seed).uniform(0, edges, (frames, kind.count, kind.dim))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 1000), dim=st.integers(1, 3), data=st.data())
def test_positions_and_boxes_survive_by_half_a_level(seed, dim, data):
    low = np.array(data.draw(st.lists(st.floats(0.1, 100), min_size=dim, max_size=dim)))
    high = low * np.array(data.draw(st.lists(st.floats(1, 3), min_size=dim, max_size=dim)))
    kind = Particles(count=4, dim=dim, types=2, box=tuple(low), box_max=tuple(high))
    rng = np.random.default_rng(seed)
    box = rng.uniform(low, high, (6, dim))
    positions = rng.uniform(0, 1, (6, 4, dim)) * box[:, None]
    stored = kind.check(kind.encode(positions, np.array([1, 2, 0, 1]), box), "`x`")
    assert stored.shape == (6, *kind.shape) and kind.shape == (5, dim + 1)
    assert (np.abs(kind.edges(stored) - box) <= (0.5 + 1e-6) * (high - low) / 65536).all()
    found, types = kind.decode(stored)
    assert (types == [1, 2, 0, 1]).all()
    # Relative to the box, positions keep their level.
    apart = found / kind.edges(stored)[:, None] - positions / box[:, None]
    assert np.abs(apart).max() <= (0.5 + 1e-6) / 65536


def test_a_box_with_edges_of_its_own_for_each_axis():
    corner = SLAB.encode(np.array([[[1.0, 2.0, 2.0]]]), np.array([1]))
    np.testing.assert_array_equal(corner[0, 0], [16384, 16384, 65535, 1])
    np.testing.assert_allclose(SLAB.decode(corner)[0][0, 0], [1, 2, 2], atol=1e-4)
    assert SLAB.edges(corner).tolist() == [list(EDGES)]
    # An edge is broadcast, and one number is the same box as that number for each axis.
    cube, same = (Particles(count=1, dim=3, types=1, box=box) for box in (2.0, (2.0,) * 3))
    place = np.array([[0.3, 1.1, 2.0]])
    assert np.array_equal(cube.encode(place, np.array([1])), same.encode(place, np.array([1])))


@pytest.mark.parametrize("kind", [SLAB, PRESS])
@pytest.mark.parametrize("images", [-3, 1, 2])
def test_all_images_of_a_particle_are_one(kind, images):
    positions, box = scatter(kind), kind.box if kind.changes else None
    wraps = np.broadcast_to(kind.periodic, kind.dim)
    # Away from the borders of levels, over which rounding may move a position.
    moved = positions + images * np.asarray(kind.box) * wraps
    first, second = (kind.encode(p, TYPES, box).astype(int) for p in (positions, moved))
    assert np.abs((first - second + 32768) % 65536 - 32768).max() <= 1
    torch.testing.assert_close(
        encode(kind, first.astype(np.uint16)),
        encode(kind, second.astype(np.uint16)),
        atol=2e-3,
        rtol=0,
    )


@pytest.mark.parametrize(("axis", "near"), [(0, True), (1, True), (2, False)])
def test_both_sides_of_a_periodic_boundary_are_neighbours(axis, near):
    there = np.full((2, 1, 3), 1.0)
    there[:, 0, axis] = 1e-4, EDGES[axis] - 1e-4
    z = encode(SLAB, SLAB.encode(there, np.array([1])))
    assert (torch.dist(z[0], z[1]).item() < 1e-2) is near


def test_the_network_sees_angles_of_periodic_axes_and_the_box():
    box = np.array([[4.0, 6.0], [4.5, 6.0]])
    stored = PRESS.encode(scatter(PRESS, 2), TYPES, box)
    x = PRESS.network_input(torch.from_numpy(stored), torch.float64).numpy()
    positions, _ = PRESS.decode(stored)
    angle = 2 * np.pi * positions / PRESS.edges(stored)[:, None]
    assert PRESS.features == 6 and x.shape == (2, 5, 6 + 2)
    expected = np.stack([f(angle[..., a]) for a in (0, 1) for f in (np.cos, np.sin)], axis=-1)
    np.testing.assert_allclose(x[:, :4, :4], expected[:, :4], atol=1e-6)
    np.testing.assert_allclose(x[:, :4, 4], [[-1] * 4, [0] * 4], atol=1e-4)
    assert not x[:, 4].any()  # an absent particle has no box either


@pytest.mark.parametrize("kind", [SLAB, PRESS])
def test_neither_order_nor_absent_particles_matter(kind):
    box = (4.2, 6.0) if kind.changes else None
    stored = kind.encode(scatter(kind), TYPES, box)
    head, particles = np.split(stored, [int(kind.changes)], axis=1)
    order = np.random.default_rng(1).permutation(5)
    empty = np.zeros_like(particles[:, :2])
    for other in (particles[:, order], np.concatenate([particles, empty], axis=1)):
        again = kind.check(np.concatenate([head, other], axis=1), "`x`")
        torch.testing.assert_close(encode(kind, again), encode(kind, stored))


def test_the_encoder_tells_boxes_apart():
    stored = PRESS.encode(scatter(PRESS, 1).repeat(2, axis=0), TYPES, [[4.0, 6.0], [5.0, 6.0]])
    stored[1, 1:] = stored[0, 1:]
    z = encode(PRESS, stored)
    assert torch.dist(z[0], z[1]) > 1e-2


@pytest.mark.parametrize("kind", [SLAB, PRESS])
def test_places_are_found_again_in_what_the_network_sees(kind):
    box = kind.box if kind.changes else None
    stored = kind.encode(scatter(kind), np.ones(5, int), box)
    x = kind.network_input(torch.from_numpy(stored), torch.float64)
    positions, _ = kind.decode(stored)
    expected = 2 * positions / kind.edges(stored)[:, None] - 1
    np.testing.assert_allclose(kind.locate(x[..., : kind.features]), expected, atol=1e-12)


def test_a_shift_moves_all_particles_of_a_trajectory_alike_along_periodic_axes():
    assert SLAB.symmetries == {"flip", "shift"}
    stored = SLAB.encode(scatter(SLAB), TYPES)[None].repeat(50, axis=0)
    moved = SLAB.transformed(torch.from_numpy(stored), ["shift"], torch_generator(0)).numpy()
    by = (moved.astype(int) - stored)[..., :4, :3] % 65536
    assert (by == by[:, :1, :1]).all() and not by[..., 2].any()
    assert len(np.unique(by[:, 0, 0], axis=0)) == 50
    assert np.array_equal(moved[..., 3], stored[..., 3])
    assert np.array_equal(moved[..., 4, :], stored[..., 4, :])


def test_axes_change_places_only_where_they_are_alike():
    flat = {"count": 1, "types": 1}
    assert "transpose" in Particles(**flat, box=(2.0, 2.0), periodic=True).symmetries
    assert "transpose" in Particles(**flat, box=2.0, box_max=3.0).symmetries
    for other in (
        {"box": (2.0, 3.0)},
        {"box": 2.0, "periodic": (True, False)},
        {"box": 2.0, "box_max": (3.0, 4.0)},
        {"box": 2.0, "dim": 3},
    ):
        assert "transpose" not in Particles(**flat, **other).symmetries


def test_other_boxes_look_unlike_those_that_are_known():
    stored = PRESS.encode(scatter(PRESS, 2), TYPES, [[4.0, 6.0], [4.5, 6.0]])
    found = PRESS.summarise(stored)
    np.testing.assert_allclose(found, [[2, 2, 4, 6], [2, 2, 4.5, 6]], atol=1e-4)
    assert SLAB.summarise(SLAB.encode(scatter(SLAB), TYPES)).shape == (4, 2)


def test_a_box_changes_its_axes_with_its_particles():
    kind = Particles(count=5, types=2, box=2.0, box_max=(4.0, 4.0))
    rng = np.random.default_rng(0)
    box = rng.uniform(2, 4, (1, 3, 2)).repeat(40, axis=0)
    stored = kind.encode(rng.uniform(0, 2, (40, 3, 5, 2)), TYPES, box)
    moved = kind.transformed(torch.from_numpy(stored), ["transpose"], torch_generator(0)).numpy()
    swapped = (moved != stored).any(axis=(1, 2, 3))
    assert 0 < swapped.sum() < 40
    np.testing.assert_array_equal(kind.edges(moved)[swapped], kind.edges(stored)[swapped, :, ::-1])
    expected = kind.decode(stored)[0][swapped][..., ::-1]
    np.testing.assert_allclose(kind.decode(moved)[0][swapped][..., :4, :], expected[..., :4, :])


def test_what_was_written_before_stays_as_it_is():
    plain = {"kind": "particles", "count": 3, "dim": 2, "types": 2, "box": 8.0}
    assert Particles(count=3, types=2, box=8.0).model_dump(mode="json") == plain


@pytest.mark.parametrize("kind", [SLAB, PRESS])
def test_boxes_survive_json(kind):
    adapter = TypeAdapter(AnyMicrostate)
    assert adapter.validate_json(adapter.dump_json(kind)) == kind


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"box": (1.0, 2.0, 3.0)}, r"`box` is \(1.0, 2.0, 3.0\); give one value, or 2"),
        ({"box": (1.0, -2.0)}, "`box` is .*edges must be positive"),
        ({"periodic": (True,)}, r"`periodic` is \(True,\)"),
        ({"box_max": 0.5}, "`box_max` is 0.5 and `box` is 1.0; the largest"),
        ({"box_max": (2.0, 0.5)}, "must not be below"),
    ],
)
def test_impossible_boxes_are_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        Particles(**{"count": 1, "types": 1, "box": 1.0, **wrong})


@pytest.mark.parametrize(
    ("kind", "box", "words"),
    [
        (PRESS, None, "`box` is missing"),
        (SLAB, EDGES, "`box` is given"),
        (PRESS, (3.0, 6.0), r"`box` holds \[3.0, 6.0\]; edges must be from"),
        (PRESS, (4.0, np.nan), "edges must be from"),
    ],
)
def test_other_boxes_are_not_stored(kind, box, words):
    with pytest.raises(InputError, match=words):
        kind.encode(scatter(kind), TYPES, box)


def test_a_microstate_without_its_box_is_refused():
    with pytest.raises(InputError, match="first row, which is the box"):
        PRESS.check(np.ones((6, 3), np.uint16), "`x`")


def test_a_closed_axis_has_walls():
    there = np.array([[[9.0, -1.0, 2.1]]])
    with pytest.raises(InputError, match=r"particle 0 at .*from 0 to 2, the edge"):
        SLAB.encode(there, np.array([1]))


@pytest.mark.parametrize("kind", [SLAB, PRESS, Particles(count=5, dim=1, types=2, box=3.0)])
def test_pictures_have_the_shape_of_the_box(kind):
    stored = kind.encode(scatter(kind, 1), TYPES, kind.box if kind.changes else None)[0]
    figure = Figure()
    plain, whole = figure.subplots(1, 2)
    kind.draw(plain, stored)
    kind.show(whole, stored)
    for axis in (plain, whole):
        circles = axis.collections[-1].get_offsets()
        (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
        assert len(circles) == 4 and axis.get_aspect() == 1
        assert ((circles >= (left, bottom)) & (circles <= (right, top))).all()
    if kind.dim == 2:
        assert whole.get_ylim()[1] / whole.get_xlim()[1] == pytest.approx(6 / 4, abs=1e-4)
    if kind.dim == 3:
        assert len(whole.collections[0].get_segments()) == 12
    figure.savefig(io.BytesIO())
