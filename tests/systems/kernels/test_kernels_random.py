"""xoshiro256++ against its published first outputs and a twin in Python integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from tampl.systems.kernels.random import draw_integer, draw_normals, draw_uniform, draw_word

MASK = 2**64 - 1
WORDS = st.lists(st.integers(0, MASK), min_size=4, max_size=4)


def step(s):
    """The algorithm as published, on Python integers."""

    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & MASK

    result = (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
    t = (s[1] << 17) & MASK
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = rotate(s[3], 45)
    return result


def test_first_outputs_are_the_published_ones():
    state = np.array([1, 2, 3, 4], np.uint64)
    published = [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ]
    assert [int(draw_word(state)) for _ in published] == published


@settings(max_examples=50, deadline=None)
@given(WORDS)
def test_words_and_state_equal_the_python_twin(words):
    state, twin = np.array(words, np.uint64), list(words)
    for _ in range(5):
        assert int(draw_word(state)) == step(twin)
    assert state.tolist() == twin


@pytest.mark.parametrize(
    ("words", "uniform", "integer"),
    [([0, 0, 0, 0], 2.0**-53, 0), ([0, 1, 0, MASK], 1.0, 9)],
    ids=["smallest", "largest"],
)
def test_ends_of_the_ranges(words, uniform, integer):
    assert draw_uniform(np.array(words, np.uint64)) == uniform
    assert draw_integer(np.array(words, np.uint64), 10) == integer


def test_moments_of_uniforms():
    state, n = np.array([5, 6, 7, 8], np.uint64), 40_000
    u = np.array([draw_uniform(state) for _ in range(n)])
    assert abs(u.mean() - 1 / 2) < 4 * np.sqrt(1 / 12 / n)
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 4 / np.sqrt(n)
    # -log(u) is exponential: mean and variance one, fourth central moment nine.
    waits = -np.log(u)
    assert abs(waits.mean() - 1) < 4 / np.sqrt(n)
    assert abs(waits.var() - 1) < 4 * np.sqrt(8 / n)


@pytest.mark.parametrize("bound", [1, 2, 7])
def test_integers_are_even(bound):
    state, n = np.array([9, 10, 11, 12], np.uint64), 20_000
    counts = np.bincount([draw_integer(state, bound) for _ in range(n)], minlength=bound)
    assert counts.size == bound
    p = 1 / bound
    assert np.all(np.abs(counts - n * p) <= 4 * np.sqrt(n * p * (1 - p)))


def test_normals_are_standard_and_independent():
    state, n = np.array([13, 14, 15, 16], np.uint64), 20_000
    first, second = np.array([draw_normals(state) for _ in range(n)]).T
    assert kstest(np.concatenate([first, second]), "norm").pvalue > 0.01
    # Numbers without correlation may still depend on each other, which their squares would show.
    for a, b in [(first, second), (first**2, second**2), (first[1:], second[:-1])]:
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(n)


def test_normals_stay_finite_at_the_ends_of_the_uniforms():
    # The first word of this state is 2^64 - 1, hence the uniform is 1 and its logarithm zero.
    state = np.array([0, 1, 2, MASK >> 23 | (MASK & ((1 << 23) - 1)) << 41], np.uint64)
    assert draw_uniform(state.copy()) == 1.0
    assert draw_normals(state) == (0.0, 0.0)
