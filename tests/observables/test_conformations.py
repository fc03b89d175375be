"""Sizes and orders of chains and molecules: by hand, and what rotations leave as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tampl import Chain, InputError, Vector
from tampl.observables import find_observable
from tampl.systems.extension import extension

STRAIGHT = np.array([[-1.5, 0, 0], [-0.5, 0, 0], [0.5, 0, 0], [1.5, 0, 0]])


def vectors(text, points):
    flat = points.reshape(len(points), -1)
    return find_observable(text).observe(flat, Vector(size=flat.shape[1]))[:, 0]


def points(dim):
    return st.tuples(st.integers(2, 9), st.integers(0, 2**32 - 1)).map(
        lambda t: np.random.default_rng(t[1]).normal(size=(3, t[0], dim))
    )


def test_a_straight_chain_by_hand():
    kind = Chain(beads=4, height=5, width=9)
    found = {
        name: find_observable(name).observe(STRAIGHT[None], kind).item()
        for name in ("radius-of-gyration", "end-to-end-distance", "extension", "nematic-order")
    }
    # Mean square of 1.5, 0.5, 0.5 and 1.5.
    assert found["radius-of-gyration"] == pytest.approx(np.sqrt(1.25))
    assert found["end-to-end-distance"] == found["extension"] == 3
    assert found["nematic-order"] == pytest.approx(1)
    assert find_observable("extension:axis=y").observe(STRAIGHT[None], kind) == [[0]]


@given(points(3))
def test_sizes_are_sums_over_pairs_and_know_no_place_nor_direction(r):
    turned = r @ Rotation.from_rotvec([0.3, -1.2, 0.7]).as_matrix().T + [3, -2, 5]
    apart = np.linalg.norm(r[:, :, None] - r[:, None], axis=-1)
    # The radius of gyration by distances between pairs alone (Lagrange).
    radius = np.sqrt((apart**2).mean(axis=(1, 2)) / 2)
    for moved in (r, turned):
        np.testing.assert_allclose(vectors("radius-of-gyration", moved), radius)
        np.testing.assert_allclose(vectors("end-to-end-distance", moved), apart[:, 0, -1])
        np.testing.assert_allclose(
            vectors("end-to-end-distance:first=1,last=0", moved), apart[:, 1, 0]
        )
    np.testing.assert_allclose(vectors("extension:axis=z", r), np.ptp(r[:, :, 2], axis=1))
    np.testing.assert_allclose(vectors("extension", r), extension(r))


@pytest.mark.parametrize("dim", [2, 3])
def test_nematic_order_is_one_along_an_axis_and_near_none_without(dim):
    generator = np.random.default_rng(0)
    axis = generator.normal(size=dim)
    along = axis * generator.choice([-2.0, 1.0], size=(1, 7, 1))
    assert vectors(f"nematic-order:dim={dim}", along) == pytest.approx(1)
    # As many directions along each axis: the tensor is zero.
    even = np.eye(dim)[None]
    assert vectors(f"nematic-order:dim={dim}", even) == pytest.approx(0)


@given(points(2))
def test_nematic_order_in_the_plane_is_the_twofold_phase_order(u):
    angles = np.arctan2(u[..., 1], u[..., 0])
    np.testing.assert_allclose(
        vectors("nematic-order:dim=2", u), vectors("phase-order:fold=2", angles), atol=1e-12
    )


def test_phases_that_agree_and_that_do_not():
    angles = np.array([[0.3, 0.3, 0.3, 0.3], [0, np.pi / 2, np.pi, -np.pi / 2]])
    np.testing.assert_allclose(vectors("phase-order", angles), [1, 0], atol=1e-15)
    np.testing.assert_allclose(vectors("phase-order:fold=4", angles), [1, 1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("radius-of-gyration:dim=5", "`dim` is 5, and vectors of 12 numbers are no sequence"),
        ("end-to-end-distance:last=9", "`last` is 9; there are 4 points, 0 to 3"),
        ("extension:axis=z,dim=2", "`axis` is 'z'; points have 2 coordinates"),
        ("extension:axis=w", "`axis` is 'w'"),
        ("nematic-order:dim=4", "`dim` is '4'"),
    ],
)
def test_points_that_are_not_there_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        vectors(text, STRAIGHT[None])


def test_directions_without_length_are_refused():
    with pytest.raises(InputError, match="a direction has length zero"):
        vectors("nematic-order", np.zeros((1, 2, 3)))
