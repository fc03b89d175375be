"""Trajectories of different lengths and missing frames, in memory and in stores."""

import numpy as np
import pytest

from tampl.data import Dataset, Store, check_store
from tampl.data.manifest import Manifest, Shard, Split
from tampl.data.shards import encode_labels, write_shard
from tampl.data.store import write_manifest
from tampl.errors import InputError
from tampl.microstates import Lattice, Particles, Vector

LENGTHS = (4, 7, 2, 5)
PRESENT = np.arange(7) < np.array(LENGTHS)[:, None]
PRESENT[1, 3] = False


def walks(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(length, 3)).cumsum(axis=0) for length in LENGTHS]


def ragged(**options):
    x = walks()
    return Dataset(x, [states[:, :2] for states in x], microstate=Vector(size=3), **options)


def holed():
    return ragged(present=[row[:length] for row, length in zip(PRESENT, LENGTHS, strict=True)])


def test_shorter_trajectories_are_filled_up_with_missing_frames():
    data = ragged()
    assert data.x.shape == (4, 7, 3) and data.description.frames == 7
    np.testing.assert_array_equal(data.present, np.arange(7) < np.array(LENGTHS)[:, None])
    for number, states in enumerate(walks()):
        np.testing.assert_array_equal(data.x[number, : len(states)], states)
        np.testing.assert_array_equal(data.y[number, : len(states)], states[:, :2])
    assert not data.x[~data.present].any() and np.isnan(data.y[~data.present]).all()
    assert "up to 7 frames" in repr(data)


def test_what_a_missing_frame_holds_does_not_matter():
    first, x, y = holed(), np.full((4, 7, 3), np.nan), np.full((4, 7, 2), np.inf)
    x[PRESENT], y[PRESENT] = first.x[PRESENT], first.y[PRESENT]
    second = Dataset(x, y, microstate=Vector(size=3), present=PRESENT)
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.y, second.y)
    np.testing.assert_array_equal(first.present, second.present)


def test_all_frames_present_is_the_plain_data_set():
    x = np.random.default_rng(0).normal(size=(3, 4, 2))
    data = Dataset(x, x, present=np.ones((3, 4), bool))
    assert data.present is None and ragged().select(np.array([1])).present is None


def test_statistics_are_those_of_the_frames_that_exist():
    data = holed()
    found, known = data.statistics, np.concatenate([data.y[i][PRESENT[i]] for i in range(4)])
    np.testing.assert_allclose(found.y.mean, known.mean(axis=0))
    np.testing.assert_allclose(found.y.std, known.std(axis=0))
    np.testing.assert_allclose(found.x.mean, data.x[PRESENT].mean(axis=0))
    # Frame 6 is that of one trajectory; frame 3 lacks the second.
    np.testing.assert_allclose(found.mean_trajectory[6], data.y[1, 6])
    np.testing.assert_allclose(found.mean_trajectory[3], (data.y[0, 3] + data.y[3, 3]) / 2)


def test_the_mean_trajectory_has_no_gaps_and_ends_with_the_data():
    y = np.arange(10.0).reshape(2, 5)
    present = np.array([[1, 0, 0, 1, 0]] * 2, bool)
    found = Dataset(y[..., None], y, present=present).statistics.mean_trajectory
    np.testing.assert_allclose(found[:, 0], y[:, [0]].mean() + np.arange(4))


def test_what_is_conserved_is_found_beside_missing_frames():
    data = holed()
    data.y[..., 1] = np.where(PRESENT, np.arange(4)[:, None], np.nan)
    assert [o.conserved for o in data.find_conserved().observables] == [False, True]


@pytest.mark.parametrize("lag", [1, 2, 3, 6, 7, 20])
def test_pairs_have_two_ends(lag):
    expected = sum(
        PRESENT[i, t] and PRESENT[i, t + lag] for i in range(4) for t in range(max(0, 7 - lag))
    )
    assert holed().count_pairs(lag) == expected
    x = np.random.default_rng(0).normal(size=(4, 7, 1))
    assert Dataset(x, x).count_pairs(lag) == 4 * max(0, 7 - lag)


def test_thinning_keeps_frames_and_times():
    data = holed()
    thin = data.thin(3)
    np.testing.assert_array_equal(thin.x, data.x[:, ::3])
    np.testing.assert_array_equal(thin.present, PRESENT[:, ::3])
    np.testing.assert_allclose(thin.description.times, data.description.times[::3])
    assert data.thin(1) is data
    for wrong in (0, 7, 1.5):
        with pytest.raises(InputError, match=f"`every` is {wrong}"):
            data.thin(wrong)


def test_references_keep_their_holes():
    x = np.zeros((4, 3, 1))
    x[:, 1:] = np.random.default_rng(0).normal(size=(4, 2, 1))
    x[2:] += 1
    present = np.ones((4, 3), bool)
    present[1, 2] = False
    found = Dataset(x, x, present=present).references
    assert found.y.shape == (2, 2, 3, 1)
    assert np.isnan(found.y[..., 0]).tolist() == [
        [[False] * 3, [False, False, True]],
        [[False] * 3] * 2,
    ]


def test_the_kind_is_recognised_from_the_frames_that_exist():
    x = np.full((2, 3, 4, 4), 99)
    x[:, :2] = np.random.default_rng(0).integers(0, 3, (2, 2, 4, 4))
    data = Dataset(x, np.arange(6.0).reshape(2, 3), present=[[True, True, False]] * 2)
    assert data.description.microstate == Lattice(height=4, width=4, states=3)


def test_sets_with_fewer_particles_are_filled_up_with_empty_rows():
    kind, rng = Particles(count=4, types=2, box=1.0), np.random.default_rng(0)
    x = [
        kind.encode(rng.uniform(size=(frames, count, 2)), rng.integers(1, 3, count))
        for frames, count in ((3, 2), (2, 4), (3, 1))
    ]
    data = Dataset(x, [np.arange(float(len(part))) for part in x], microstate=kind)
    assert data.x.shape == (3, 3, 4, 3)
    for part, states in zip(x, data.x, strict=True):
        np.testing.assert_array_equal(states[: len(part), : part.shape[1]], part)
        assert not states[: len(part), part.shape[1] :].any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"present": [[False, True, True]]}, "frame 0 of trajectory 0 is missing"),
        ({"present": [[1, 1, 0]]}, "`present` is int64 of shape"),
        ({"present": [[True, True]]}, r"it must be bool of shape \(1, 3\)"),
        ({"x": [np.ones((2, 1))]}, "agree in their first two axes"),
        ({"x": [np.ones((2, 1)), np.ones((3, 1))]}, "`y` has 3 frames in trajectory 0"),
        (
            {"x": [np.ones((2, 1)), np.ones((3, 2))], "y": [[1, 2], [1, 2, 3]]},
            "they may differ in the number of frames alone",
        ),
        ({"y": [[0.0, np.nan, 1.0]]}, "say by `present` which frames exist"),
    ],
)
def test_bad_holes_are_one_line(change, words):
    with pytest.raises(InputError, match=words):
        Dataset(**{"x": [np.ones((3, 1))], "y": [[0.0, 1.0, 2.0]], **change})


def make_store(folder, data, *, members=0, holes=True):
    """A store of one split with one shard of each initial state, as an importer writes it."""
    count = len(data) // (members or 1)
    manifest = Manifest(
        description=data.description,
        seed=0,
        kernel="by-hand-1",
        code_version="0",
        splits={"all": Split(count=count, members=members, holes=holes)},
        shards=tuple(
            Shard(file=f"shards/all-{i}.h5", split="all", start=i, count=1) for i in range(count)
        ),
    )
    folder.joinpath("shards").mkdir(parents=True)
    for i, shard in enumerate(manifest.shards):
        rows = slice(i * (members or 1), (i + 1) * (members or 1))
        y, known = data.y[rows], np.isfinite(data.y[rows, :, 0]).astype(np.uint8)
        arrays = {"labels": encode_labels([""])}
        if members:
            arrays |= {"initial": data.x[rows][:1, 0], "macrostates": y[None]}
        else:
            arrays |= {"microstates": data.x[rows], "macrostates": y}
        if holes:
            arrays["present"] = known[None] if members else known
        write_shard(folder / shard.file, arrays, manifest=manifest, shard=shard)
    write_manifest(folder, manifest)
    return Store.open(folder)


def test_a_store_gives_back_the_data_set(tmp_path):
    data = holed()
    store = make_store(tmp_path / "store", data)
    found = store.dataset("all")
    assert store.manifest.splits["all"].holes
    for name in ("x", "y", "present"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name))
    report = check_store(store.path, progress=False)
    assert report.ok and report.trajectories == 4


def test_references_with_holes_are_read(tmp_path):
    x = np.random.default_rng(0).normal(size=(4, 7, 3))
    x[1::2, 0] = x[::2, 0]
    data = Dataset(x, x, present=PRESENT)
    store = make_store(tmp_path / "store", data, members=2)
    np.testing.assert_array_equal(store.references("all").y, data.y.reshape(2, 2, 7, 3))
    assert check_store(store.path, progress=False).ok


def test_a_split_without_holes_says_nothing_of_them():
    assert Split(count=3).model_dump(mode="json") == {"count": 3, "members": 0}
    assert Split(count=3, holes=True).model_dump(mode="json")["holes"] is True


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda a: a["present"].__setitem__((0, 0), 0), "whose first frame is missing"),
        (lambda a: a["present"].__setitem__((0, 1), 0), "0 where they are NaN"),
        (lambda a: a["present"].__setitem__((0, 1), 2), "0 where they are NaN"),
        (lambda a: a["macrostates"].__setitem__((0, 1), np.nan), "0 where they are NaN"),
        (lambda a: a.pop("present"), "where .* are required"),
    ],
)
def test_holes_that_contradict_the_data_are_not_written(tmp_path, spoil, words):
    data = ragged().select(np.array([1]))
    arrays = {
        "microstates": data.x,
        "macrostates": data.y.copy(),
        "labels": encode_labels([""]),
        "present": np.ones((1, 7), np.uint8),
    }
    store = make_store(tmp_path / "store", data)
    spoil(arrays)
    with pytest.raises(InputError, match=words):
        shard = store.manifest.shards[0]
        write_shard(tmp_path / "other.h5", arrays, manifest=store.manifest, shard=shard)


def test_numbers_that_are_missing_within_a_frame_are_found_by_the_check(tmp_path):
    data = holed()
    data.y[0, 1, 1] = np.nan
    report = check_store(make_store(tmp_path / "store", data).path, progress=False)
    assert "macrostates hold NaN" in report.problems[0]
