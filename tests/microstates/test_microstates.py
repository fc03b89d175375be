"""Kinds of microstates: what is accepted, what is refused, what the network sees."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import TypeAdapter

from tampl.errors import InputError
from tampl.microstates import AnyMicrostate, Lattice, Vector

LATTICE = Lattice(height=2, width=3, states=3)
VECTOR = Vector(size=3)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), states=st.integers(2, 256))
def test_network_input_is_one_hot(data, states):
    kind = Lattice(height=3, width=2, states=states)
    sites = data.draw(hnp.arrays(np.uint8, (4, 3, 2), elements=st.integers(0, states - 1)))
    x = kind.network_input(torch.from_numpy(sites), torch.float64)
    assert x.shape == (4, states, 3, 2) and x.dtype == torch.float64
    assert torch.equal(x.argmax(dim=1), torch.from_numpy(sites).long())
    assert torch.equal(x.sum(dim=1), torch.ones(4, 3, 2, dtype=torch.float64))
    assert set(x.unique().tolist()) <= {0.0, 1.0}


def test_the_input_of_a_vector_is_the_vector(dtype):
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(VECTOR.network_input(x, dtype), x.to(dtype))


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float32, float])
@pytest.mark.parametrize("leading", [(), (1,), (4, 5), (0,)])
def test_whole_numbers_of_any_type_become_bytes(kind, leading):
    sites = np.ones((*leading, 2, 3), kind)
    checked = LATTICE.check(sites, "`x`")
    assert checked.dtype == LATTICE.dtype and np.array_equal(checked, sites)
    assert checked.shape[-2:] == LATTICE.shape


@pytest.mark.parametrize(
    "value", [3, -1, 255, 256, -256, 2**40, 3.0, -1.0, np.inf, -np.inf, 1e300]
)
def test_states_that_are_not_there_are_refused(value):
    sites = np.zeros((2, 3), np.asarray(value).dtype)
    sites[1, 2] = value
    message = f"`x` has a site in state {value}; states are 0 to 2"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        LATTICE.check(sites, "`x`")


@pytest.mark.parametrize(
    "sites",
    [
        np.full((2, 3), 0.5),
        np.full((2, 3), np.nan),
        np.full((2, 3), 1j),
        np.full((2, 3), "1"),
        np.full((2, 3), None),
    ],
    ids=["half", "nan", "complex", "text", "object"],
)
def test_what_is_no_whole_number_is_refused(sites):
    with pytest.raises(InputError, match=r"^`x` must hold whole numbers"):
        LATTICE.check(sites, "`x`")


@pytest.mark.parametrize("shape", [(), (2,), (3, 2), (2, 3, 1), (6,), (2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(InputError, match=r"^`x` has shape .* has shape \(2, 3\)"):
        LATTICE.check(np.zeros(shape, np.uint8), "`x`")


@pytest.mark.parametrize("shape", [(), (2,), (3, 2)])
def test_vectors_of_other_sizes_are_refused(shape):
    with pytest.raises(InputError, match=r"^`x` has shape .* has shape \(3,\)"):
        VECTOR.check(np.zeros(shape), "`x`")


def test_vectors_become_float64():
    checked = VECTOR.check(np.arange(6, dtype=np.int16).reshape(2, 3), "`x`")
    assert checked.dtype == VECTOR.dtype and checked.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0, np.nan, 0], "must be finite"),
        ([0, np.inf, 0], "must be finite"),
        (["a", "b", "c"], "real numbers"),
        ([1j, 0, 0], "real numbers"),
        ([None, 0, 0], "real numbers"),
    ],
)
def test_what_is_no_vector_of_finite_numbers_is_refused(values, words):
    with pytest.raises(InputError, match=f"^`x` .*{words}"):
        VECTOR.check(np.array(values), "`x`")


@pytest.mark.parametrize("microstate", [LATTICE, VECTOR])
def test_a_kind_survives_json(microstate):
    adapter = TypeAdapter(AnyMicrostate)
    assert adapter.validate_json(adapter.dump_json(microstate)) == microstate
    assert hash(microstate) == hash(microstate.model_copy())


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "gas", "size": 3},
        {"kind": "vector", "size": 0},
        {"kind": "vector", "size": 3, "width": 3},
        {"kind": "lattice", "height": 2, "width": 2, "states": 1},
        {"kind": "lattice", "height": 2, "width": 2, "states": 257},
        {"kind": "lattice", "height": 0, "width": 2, "states": 2},
    ],
)
def test_impossible_kinds_are_refused(fields):
    with pytest.raises(ValueError):
        TypeAdapter(AnyMicrostate).validate_python(fields)
