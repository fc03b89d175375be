"""Particles in fixed point: round trips, what the network sees, what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import TypeAdapter

from tampl.errors import InputError
from tampl.microstates import AnyMicrostate, Particles

GAS = Particles(count=3, types=2, box=8.0)
STORED = np.array([[0, 65535, 1], [32768, 8192, 2], [7, 7, 0]], np.uint16)


def stored_sets(types=2):
    """Stacks of sets in stored form, with a particle at least in each and with absent ones."""

    @st.composite
    def draw(draw_from):
        shape = (draw_from(st.integers(1, 3)), draw_from(st.integers(1, 6)))
        stored = draw_from(hnp.arrays(np.uint16, (*shape, 3)))
        stored[..., -1] = draw_from(hnp.arrays(np.uint16, shape, elements=st.integers(0, types)))
        stored[:, 0, -1] = 1
        return stored

    return draw()


@settings(max_examples=60, deadline=None)
@given(stored=stored_sets(), box=st.floats(1e-3, 1e3))
def test_what_is_stored_survives_decoding(stored, box):
    kind = Particles(count=6, types=2, box=box)
    positions, types = kind.decode(kind.check(stored, "`x`"))
    assert ((positions > 0) & (positions < box)).all()
    np.testing.assert_array_equal(kind.encode(positions, types), stored)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), box=st.floats(1e-2, 1e3))
def test_a_position_moves_by_half_a_level_at_most(data, box):
    kind = Particles(count=4, types=1, box=box)
    positions = data.draw(hnp.arrays(float, (4, 2), elements=st.floats(0, box)))
    decoded, _ = kind.decode(kind.encode(positions, np.ones(4, int)))
    assert np.abs(decoded - positions).max() <= (0.5 + 1e-6) * box / 65536


@settings(max_examples=40, deadline=None)
@given(stored=stored_sets(types=3))
def test_the_network_sees_scaled_positions_one_hot_types_and_zeros(stored):
    kind = Particles(count=6, types=3, box=5.0)
    x = kind.network_input(torch.from_numpy(stored), torch.float32).numpy()
    assert x.shape == (*stored.shape[:2], 5) and x.dtype == np.float32
    positions, types = kind.decode(stored)
    there = types > 0
    np.testing.assert_array_equal(x[..., 2:].sum(axis=-1), there)
    np.testing.assert_array_equal(x[..., 2:].argmax(axis=-1)[there] + 1, types[there])
    np.testing.assert_allclose(x[..., :2][there], 2 * positions[there] / 5.0 - 1, atol=1e-6)
    assert not x[~there].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_that_of_float32_rounded(dtype):
    x = torch.from_numpy(STORED)[None]
    exact = GAS.network_input(x, torch.float32)
    assert torch.equal(GAS.network_input(x, dtype), exact.to(dtype))


def test_three_dimensions():
    kind = Particles(count=2, dim=3, types=1, box=2.0)
    stored = kind.encode(np.array([[0.0, 1.0, 2.0], [0.5, 0.5, 0.5]]), np.array([1, 1]))
    assert stored.shape == kind.shape == (2, 4)
    x = kind.network_input(torch.from_numpy(stored)[None], torch.float64)
    np.testing.assert_allclose(x[0, :, :3], [[-1, 0, 1], [-0.5] * 3], atol=2e-5)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
def test_any_number_of_rows_is_accepted(rows, leading):
    stored = np.ones((*leading, rows, 3), np.uint16)
    assert GAS.check(stored, "`x`").shape == stored.shape


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.int64, np.uint64])
def test_integers_of_any_type_become_levels(kind):
    checked = GAS.check(np.ones((2, 3), kind), "`x`")
    assert checked.dtype == GAS.dtype and (checked == 1).all()


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (np.ones(3, np.uint16), "has shape"),
        (np.ones((3, 2), np.uint16), "has shape"),
        (np.ones((3, 4), np.uint16), "has shape"),
        (np.full((3, 3), np.nan), "holds float64; .*must be integers.*`Particles.encode`"),
        (np.full((3, 3), 0.5), "must be integers"),
        (np.ones((3, 3)), "holds float64"),
        (np.ones((3, 3), np.float32), "holds float32"),
        (np.ones((3, 3), bool), "holds bool"),
        (np.full((3, 3), "a"), "must be integers"),
        (np.full((3, 3), -1), "outside of the box, at level -1"),
        (np.full((3, 3), 65536), "outside of the box, at level 65536"),
        (np.full((3, 3), 3, np.uint16), "type 3; types are 1 to 2"),
        (np.zeros((2, 3, 3), np.uint16), "without particles"),
        (np.ones((2, 0, 3), np.uint16), "without particles"),
    ],
)
def test_what_is_no_set_of_particles_is_refused(stored, words):
    with pytest.raises(InputError, match=f"^`x` .*{words}"):
        GAS.check(stored, "`x`")


@pytest.mark.parametrize(
    ("positions", "types", "words"),
    [
        ([[1.0, 1.0], [0.0, np.nan]], [1, 1], r"particle 1 at \[0.0, nan\]; .* from 0 to 8"),
        ([[0.0, np.inf]], [1], r"particle 0 at \[0.0, inf\]"),
        ([[0.0, 8.1]], [1], r"particle 0 at \[0.0, 8.1\]"),
        ([[[1.0, 1.0]], [[-0.1, 8.0]]], [1], r"particle 0 at \[-0.1, 8.0\]"),
        ([[0.0, 1.0, 2.0]], [1], r"`positions` has shape \(1, 3\)"),
        ([0.0, 1.0], [1], "`positions` has shape"),
        ([[0.0, 1.0]], [3], "type 3"),
        ([[0.0, 1.0]], [-1], "type -1"),
        ([[0.0, 1.0]], [1.0], "must be integers"),
        ([[0.0, 1.0]], [0], "without particles"),
    ],
)
def test_positions_and_types_that_cannot_be_stored_are_refused(positions, types, words):
    with pytest.raises(InputError, match=words):
        GAS.encode(np.array(positions), np.array(types))


def test_particles_survive_json():
    adapter = TypeAdapter(AnyMicrostate)
    assert adapter.validate_json(adapter.dump_json(GAS)) == GAS


@pytest.mark.parametrize("wrong", [{"count": 0}, {"types": 0}, {"types": 257}, {"box": 0.0}])
def test_impossible_particles_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Particles(**{"count": 1, "types": 1, "box": 1.0, **wrong})
