"""Streams are addressed by names, and no two addresses share one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.errors import InputError
from tampl.seeding import ambient_seed, kernel_words, numpy_generator, stream, torch_generator

seeds = st.integers(0, 2**70)
addresses = st.lists(st.one_of(st.text(max_size=5), st.integers(-5, 2**40)), max_size=4)


def state(seed, names):
    return stream(seed, *names).generate_state(8).tolist()


@settings(max_examples=60, deadline=None)
@given(one=st.tuples(seeds, addresses), other=st.tuples(seeds, addresses))
def test_streams_are_equal_only_for_equal_addresses(one, other):
    assert (state(*one) == state(*other)) == (one == other)
    assert state(*one) == state(*one)


@pytest.mark.parametrize(
    ("one", "other"),
    [(("ab",), ("a", "b")), (("a",), ("a", "")), ((1,), ("1",)), ((1, 2), (2, 1)), ((), (0,))],
)
def test_names_do_not_run_into_one_another(one, other):
    assert state(0, one) != state(0, other)


def test_integers_of_numpy_address_the_same_stream():
    assert state(np.int64(7), ("run", np.uint8(3))) == state(7, ("run", 3))


def test_a_name_is_a_string_or_an_integer():
    with pytest.raises(TypeError):
        stream(0, 1.5)


@pytest.mark.parametrize("make", [stream, numpy_generator, torch_generator, kernel_words])
def test_negative_seeds_are_refused(make):
    with pytest.raises(InputError, match="`seed` is -1"):
        make(-1, "train")


def test_generators_follow_their_stream_whatever_was_drawn_before():
    first = numpy_generator(3, "a").random(5), torch.rand(5, generator=torch_generator(3, "a"))
    numpy_generator(3, "b").random(100)
    torch.rand(100)
    assert np.array_equal(numpy_generator(3, "a").random(5), first[0])
    assert torch.equal(torch.rand(5, generator=torch_generator(3, "a")), first[1])
    assert not np.array_equal(numpy_generator(3, "b").random(5), first[0])
    assert not torch.equal(torch.rand(5, generator=torch_generator(3, "b")), first[1])


def test_streams_look_independent():
    n = 4000
    one, other = (numpy_generator(0, "train", k).standard_normal(n) for k in range(2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(n)
    firsts = [numpy_generator(0, "train", k).random() for k in range(n)]
    assert abs(np.mean(firsts) - 0.5) < 4 / np.sqrt(12 * n)


def test_seeds_of_torch_are_never_negative():
    assert all(torch_generator(0, k).initial_seed() >= 0 for k in range(200))


def test_kernels_get_four_words_that_are_not_all_zero():
    words = np.stack([kernel_words(0, k) for k in range(50)])
    assert words.shape == (50, 4) and words.dtype == np.uint64
    assert words.any(axis=1).all() and len(np.unique(words)) == words.size


def test_an_ambient_seed_governs_the_block_and_nothing_after_it():
    def weights():
        with ambient_seed(1, "weights"):
            return torch.nn.Linear(3, 3).weight

    before = torch.random.get_rng_state()
    first = weights()
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(7)
    assert torch.equal(weights(), first)
    moved = torch.random.get_rng_state()
    with pytest.raises(RuntimeError), ambient_seed(1, "weights"):
        raise RuntimeError
    assert torch.equal(torch.random.get_rng_state(), moved)
