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
