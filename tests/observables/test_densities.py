"""Densities and structure factors: crystals, stripes and direct sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl import Image, InputError, Lattice, Particles
from tampl.observables import find_observable

SQUARE = np.stack(np.meshgrid(*2 * [np.arange(6) + 0.5], indexing="ij"), axis=-1).reshape(-1, 2)


def value(text, frames, kind):
    return find_observable(text).observe(frames, kind)[:, 0]


def test_densities_of_regions_add_up_to_that_of_the_whole():
    kind = Particles(count=36, types=2, box=6.0)
    frames = kind.encode(SQUARE[None], np.repeat([1, 2], 18))
    assert value("density", frames, kind) == [1.0]
    assert value("density:type=2", frames, kind) == [0.5]
    assert value("density:x=0..0.5,type=1", frames, kind) == [1.0]
    assert value("density:x=0.5..1,type=1", frames, kind) == [0.0]
    assert value("density:x=0..0.5,y=0..0.5", frames, kind) == [1.0]
    assert value("particle-number", frames, kind) == [36]
    assert value("particle-number:type=2", frames, kind) == [18]


def test_absent_particles_have_no_density():
    kind = Particles(count=3, types=1, box=2.0, dim=3)
    frames = kind.encode(np.ones((2, 3, 3)), np.array([[1, 1, 1], [1, 0, 0]]))
    assert value("density", frames, kind).tolist() == [3 / 8, 1 / 8]


def test_densities_of_grids_are_means_over_sites():
    sites = np.arange(24).reshape(1, 4, 6) % 3 % 2
    kind = Lattice(height=4, width=6, states=2)
    assert value("density", sites, kind) == pytest.approx(sites.mean())
    # x counts columns and y rows.
    assert value("density:x=0..0.5", sites, kind) == pytest.approx(sites[0, :, :3].mean())
    assert value("density:y=0.75..1", sites, kind) == pytest.approx(sites[0, 3].mean())
    picture = (np.arange(24).reshape(1, 4, 6) * 10).astype(np.uint8)
    gray = value("density:x=0..0.5", picture, Image(height=4, width=6))
    assert gray == pytest.approx(picture[0, :, :3].mean() / 255)


def test_a_crystal_has_its_peak_at_the_reciprocal_lattice():
    kind = Particles(count=36, types=1, box=6.0)
    frames = kind.encode(SQUARE[None], np.ones(36, int))
    # The shell around 2 pi / a holds some vectors beside the four of the square lattice, each of
    # which has S = N. Between them there is nothing.
    lengths = np.hypot(*np.meshgrid(np.arange(-8, 9), np.arange(-8, 9)))
    in_shell = (np.rint(lengths) == 6).sum()
    peak = value("structure-factor-peak:shells=8", frames, kind)
    assert peak == pytest.approx(36 * 4 / in_shell, rel=1e-3)


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_shells_of_particles_are_those_of_a_direct_sum(count, dim, seed):
    generator = np.random.default_rng(seed)
    kind = Particles(count=count, types=1, dim=dim, box=5.0)
    frames = kind.encode(generator.uniform(0, 5, (1, count, dim)), np.ones(count, int))
    r, _ = kind.decode(frames[0])
    n = np.stack(np.meshgrid(*dim * [np.arange(-4, 5)], indexing="ij"), -1).reshape(-1, dim)
    power = np.abs(np.exp(2j * np.pi / 5.0 * (n @ r.T)).sum(axis=1)) ** 2 / count
    shell = np.rint(np.linalg.norm(n, axis=1))
    means = np.array([power[shell == s].mean() for s in (1, 2, 3, 4)])
    assert value("structure-factor-peak:shells=4", frames, kind) == pytest.approx(means.max())
    k = 2 * np.pi / 5.0 * np.arange(1, 5)
    mean = (k * means).sum() / means.sum()
    assert value("mean-wavenumber:shells=4", frames, kind) == pytest.approx(mean)


@pytest.mark.parametrize("periods", [2, 4])
def test_stripes_have_their_wavenumber(periods):
    # A cosine has one pair of wave vectors; as gray levels its rounding adds little.
    wave = 127.5 + 127.5 * np.cos(2 * np.pi * periods * np.arange(32) / 32)
    picture = np.rint(np.broadcast_to(wave, (1, 32, 32))).astype(np.uint8)
    kind = Image(height=32, width=32)
    k = 2 * np.pi * periods / 32
    assert value("mean-wavenumber", picture, kind) == pytest.approx(k, rel=1e-3)
    lengths = np.hypot(*np.meshgrid(*2 * [32 * np.fft.fftfreq(32)]))
    in_shell = (np.rint(lengths) == periods).sum()
    # Amplitude 1/2 in units of the brightest, half of it in each of two vectors.
    height = 2 * (0.25 * 1024) ** 2 / 1024 / in_shell
    peak = value("structure-factor-peak", picture, kind)
    assert peak == pytest.approx(height, rel=1e-2)


def test_a_uniform_frame_has_no_structure():
    kind = Lattice(height=4, width=6, states=2)
    frames = np.ones((1, 4, 6), int)
    assert value("structure-factor-peak", frames, kind) == pytest.approx(0)
    assert value("mean-wavenumber", frames, kind) == [0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("density:x=0.5..0.5", "`x` is 0.5..0.5; give a range within 0..1"),
        ("density:y=0..2", "`y` is 0..2"),
        ("density:x=0.5", "two numbers with dots between"),
        ("density:x=0..0.1", "holds the centre of none of 4 sites"),
    ],
)
def test_regions_without_sites_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        value(text, np.ones((1, 4, 4), int), Lattice(height=4, width=4, states=2))
