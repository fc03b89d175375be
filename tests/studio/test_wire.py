"""Microstates on their way: what is packed comes back, and nothing else is read."""

from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tampl.errors import InputError
from tampl.studio.wire import WireState, pack_array, read_npy

DTYPES = ["uint8", "uint16", "int64", "float32", "float64"]
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda name: hnp.arrays(name, hnp.array_shapes(max_dims=3, max_side=5))
)


def npy(array):
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


@given(ARRAYS)
def test_arrays_come_back_as_they_were(array):
    packed = pack_array(array)
    found = WireState.model_validate(packed).to_array()
    assert found.dtype == array.dtype
    assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")


@given(ARRAYS, st.booleans())
def test_files_are_read_as_numpy_reads_them(array, fortran):
    order = np.asfortranarray(array) if fortran else array
    for stored in (order, order.astype(order.dtype.newbyteorder(">"))):
        found = read_npy(npy(stored))
        assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")
        assert found.dtype.isnative


@given(st.binary(max_size=300))
def test_bytes_that_are_no_file_are_refused_in_one_line(content):
    for data in (content, npy(np.arange(6))[:60] + content, b"\x93NUMPY\x01\x00" + content):
        with pytest.raises(InputError) as found:
            read_npy(data)
        assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    "array",
    [
        np.array([{}, 1], dtype=object),
        np.array(["text"]),
        np.ones(2, complex),
        np.ones(2, "f4,f8"),
    ],
)
def test_arrays_of_anything_but_numbers_are_refused(array):
    with pytest.raises(InputError):
        read_npy(npy(array))


def test_a_header_that_claims_more_than_there_is_allocates_nothing():
    honest = npy(np.zeros((4, 4), np.uint8))
    liar = honest.replace(b"(4, 4)", b"(9**9,)"[:6])
    with pytest.raises(InputError):
        read_npy(liar)
    huge = honest.replace(b"(4, 4), }     ", b"(99999, 99999)"[:14])
    with pytest.raises(InputError):
        read_npy(huge)


def test_too_few_or_strange_bytes_are_refused():
    good = pack_array(np.zeros((2, 2), np.uint8))
    with pytest.raises(InputError, match="has 4 bytes"):
        WireState(**{**good, "shape": [3, 2]}).to_array()
    with pytest.raises(InputError, match="base 64"):
        WireState(**{**good, "data": "###"}).to_array()
