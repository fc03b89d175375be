"""Microstates on disk: indexing like an array, reading what is asked for and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lattice_walk import LatticeWalk

from tampl.data import DataPlan, generate
from tampl.errors import InputError


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The same training set on disk and in memory."""
    plan = DataPlan(seed=3, train=5, valid=2, test=3, members=4, train_runs=2, shard_size=2)
    folder = tmp_path_factory.mktemp("lazy") / "store"
    store = generate(LatticeWalk(), plan, folder, workers=1, progress=False)
    return store.dataset("train", memory=0), store.dataset("train")


def test_what_fits_is_in_memory(store):
    x = store.dataset("train").x
    assert isinstance(store.dataset("train", memory=1e6).x, np.ndarray)
    lazy = store.dataset("train", memory=x.nbytes).x  # macrostates need memory too
    assert not isinstance(lazy, np.ndarray)
    assert (lazy.shape, lazy.dtype, lazy.nbytes) == (x.shape, x.dtype, x.nbytes)


def test_everything_but_the_microstates_is_in_memory(pair):
    lazy, whole = pair
    assert np.array_equal(lazy.y, whole.y)
    assert np.array_equal(lazy.labels, whole.labels)
    assert lazy.description == whole.description
    assert np.array_equal(np.asarray(lazy.x), whole.x)
    assert np.asarray(lazy.x).dtype == whole.x.dtype
    assert np.asarray(lazy.x, dtype=np.int64).dtype == np.int64


@pytest.mark.parametrize(
    "key",
    [
        3,
        (3, 2),
        (slice(None), 0),
        (np.array([0, 9, 4]), np.array([1, 1, 4])),
        (np.array([[0], [9]]), np.array([0, 4])),
        (slice(2, 7), 3, 1),
        (..., 0, 1),
        (slice(None, None, -1), np.array([4, 0])),
    ],
)
def test_what_is_no_selection_is_read(pair, key):
    lazy, whole = pair
    found = lazy.x[key]
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, whole.x[key])


@given(st.data())
def test_selections_stay_on_disk(pair, data):
    lazy, whole = (each.x for each in pair)
    for _ in range(3):
        rows = st.lists(st.integers(0, len(lazy) - 1), min_size=1, max_size=12)
        steps = st.builds(slice, st.none(), st.none(), st.integers(1, 3))
        key = data.draw(st.one_of(rows.map(np.array), steps, st.tuples(steps, steps)))
        lazy, whole = lazy[key], whole[key]
        assert not isinstance(lazy, np.ndarray)
        assert lazy.shape == whole.shape
    assert np.array_equal(np.asarray(lazy), whole)
    index = np.array(data.draw(st.lists(st.integers(0, whole[..., 0, 0].size - 1))), dtype=int)
    assert np.array_equal(lazy.read(index), whole.reshape(-1, 4, 4)[index])


def test_parts_thinned_sets_and_references_are_the_same(pair):
    lazy, whole = pair
    for one, other in zip(lazy.split(0.6, 0.4), whole.split(0.6, 0.4), strict=True):
        assert np.array_equal(one.thin(2).x[:, 1], other.thin(2).x[:, 1])
    assert np.array_equal(lazy.references.x, whole.references.x)


def test_a_damaged_shard_is_found_before_anything_is_read(store):
    path = store.path / store.manifest.of_split("train")[-1].file
    content = bytearray(path.read_bytes())
    place = content.index(store.dataset("train").x[-1].tobytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="differs from its checksum"):
        store.dataset("train", memory=0)
    assert store.dataset("train", memory=0, verify=False).x[-1, 0, 0, 0] in (0, 1)


def test_a_shard_that_shrinks_is_one_line(store):
    lazy = store.dataset("train", memory=0)
    path = store.path / store.manifest.of_split("train")[-1].file
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="has become shorter"):
        lazy.x[-1]


def test_chunked_microstates_are_refused_in_one_line(store):
    import h5py

    path = store.path / store.manifest.of_split("train")[0].file
    with h5py.File(path, "r+") as file:
        x = file["microstates"][()]
        del file["microstates"]
        file.create_dataset("microstates", data=x, chunks=True)
    assert np.array_equal(store.dataset("train").x[: len(x)], x)
    with pytest.raises(InputError, match="chunked or compressed"):
        store.dataset("train", memory=0)
