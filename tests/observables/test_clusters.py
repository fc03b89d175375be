"""Clusters against a flood fill and against the simulator's own kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl import InputError, Lattice, Particles
from tampl.observables import find_observable
from tampl.systems import Mixing


def flood(neighbours, members):
    """Sizes of connected components, found by walking from member to member."""
    left, sizes = set(members), []
    while left:
        front = [left.pop()]
        size = 1
        while front:
            near = left & set(neighbours(front.pop()))
            left -= near
            size += len(near)
            front += near
        sizes.append(size)
    return sizes


def of_sites(frame, periodic):
    height, width = frame.shape

    def neighbours(site):
        for step in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            a, b = site[0] + step[0], site[1] + step[1]
            if periodic:
                yield a % height, b % width
            else:
                yield a, b

    return flood(neighbours, map(tuple, np.argwhere(frame == 1)))


@settings(max_examples=60)
@given(
    st.integers(1, 7), st.integers(1, 7), st.floats(0, 1), st.booleans(), st.integers(0, 2**32 - 1)
)
def test_clusters_of_sites_are_those_of_a_flood_fill(height, width, fraction, periodic, seed):
    frames = (np.random.default_rng(seed).random((3, height, width)) < fraction).astype(int)
    kind = Lattice(height=height, width=width, states=2)
    said = f"periodic={'yes' if periodic else 'no'}"
    largest = find_observable(f"largest-cluster:{said}").observe(frames, kind)[:, 0]
    count = find_observable(f"cluster-count:{said}").observe(frames, kind)[:, 0]
    truth = [of_sites(frame, periodic) for frame in frames]
    assert count.tolist() == [len(sizes) for sizes in truth]
    np.testing.assert_allclose(largest, [max(s, default=0) / height / width for s in truth])


def test_a_stripe_across_the_seam_is_one_cluster_of_a_torus():
    frame = np.zeros((1, 4, 6), int)
    frame[0, :, [0, 5]] = 1
    kind = Lattice(height=4, width=6, states=2)
    for text, count in (("cluster-count", 1), ("cluster-count:periodic=no", 2)):
        assert find_observable(text).observe(frame, kind) == [[count]]


@settings(max_examples=40)
@given(st.integers(1, 30), st.floats(0.2, 4), st.integers(0, 2**32 - 1))
def test_clusters_of_particles_are_those_of_all_pairs(count, reach, seed):
    generator = np.random.default_rng(seed)
    kind = Particles(count=count, types=2, box=9.0, dim=int(generator.integers(1, 4)))
    types = generator.integers(3, size=(2, count))
    types[:, 0] = 1  # a microstate has a particle at least
    frames = kind.encode(generator.uniform(0, 9, (2, count, kind.dim)), types)
    for chosen, said in ((None, ""), (2, ",type=2")):
        found = {
            name: find_observable(f"{name}:reach={reach}{said}").observe(frames, kind)[:, 0]
            for name in ("largest-cluster", "cluster-count")
        }
        for number, frame in enumerate(frames):
            r, type_ = kind.decode(frame)
            members = np.flatnonzero(type_ > 0 if chosen is None else type_ == chosen)
            near = np.linalg.norm(r[:, None] - r, axis=-1) <= reach
            sizes = flood(lambda i, near=near: np.flatnonzero(near[i]).tolist(), members.tolist())
            assert found["cluster-count"][number] == len(sizes)
            whole = max(sizes, default=0) / (type_ > 0).sum()
            assert found["largest-cluster"][number] == pytest.approx(whole)


def test_the_mixing_systems_observables_are_those_of_its_types_together():
    system = Mixing(particles=24, box=12.0, frames=2)
    kind = system.description.microstate
    r = np.random.default_rng(1).uniform(0, 12, (1, 48, 2))
    state = kind.encode(r, np.repeat([1, 2], 24))
    parts = {
        name: sum(
            find_observable(f"{name}:reach=2.5,type={a}").observe(state, kind).item()
            for a in (1, 2)
        )
        for name in ("largest-cluster", "cluster-count")
    }
    s, k = system.observe(state)[0]
    assert parts["largest-cluster"] == pytest.approx(s)
    assert parts["cluster-count"] / 48 == pytest.approx(k)


def test_clusters_reach_through_periodic_faces_alone():
    r = np.array([[[0.5, 0.5], [9.5, 0.5], [0.5, 4.5]]])
    for periodic, count in (((False, False), 3), ((True, False), 2), ((True, True), 1)):
        kind = Particles(count=3, types=1, box=(10.0, 5.0), periodic=periodic)
        frames = kind.encode(r, np.ones(3, int))
        assert find_observable("cluster-count:reach=1.2").observe(frames, kind) == [[count]]
    with pytest.raises(InputError, match="at most half of the shortest edge"):
        find_observable("cluster-count:reach=3").observe(frames, kind)


def test_particles_need_a_reach_and_a_type_that_is_there():
    kind = Particles(count=2, types=2, box=4.0)
    frames = kind.encode(np.ones((1, 2, 2)), np.array([1, 2]))
    for text, words in (
        ("cluster-count", "`reach` is missing"),
        ("cluster-count:reach=1,type=3", "`type` is 3; types of the particles are 1 to 2"),
    ):
        with pytest.raises(InputError, match=words):
            find_observable(text).observe(frames, kind)
