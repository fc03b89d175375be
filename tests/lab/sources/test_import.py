"""How an import divides trajectories, resumes, and what it refuses to write over."""

import json
import shutil

import numpy as np
import pytest

from command import call
from tampl.data import Store, check_store
from tampl.errors import InputError
from tampl.lab.sources import ImportSpec, SplitSpec, import_trajectories
from tampl.lab.sources.tracks import Reading

RUNS, FRAMES, SIZE = 20, 6, 3
WALK = np.random.default_rng(0).normal(size=(RUNS, FRAMES, SIZE)).cumsum(axis=1)
RADII = np.linalg.norm(WALK, axis=-1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", WALK)
    np.save("y.npy", RADII)
    return tmp_path


def read(out="store", *, files=("x.npy",), observables=("y.npy",), by=None, **splits):
    spec = ImportSpec(
        files=files,
        observables=observables,
        interval=0.5,
        splits=SplitSpec(files=by or {}, **splits),
    )
    return import_trajectories(spec, out, progress=False)


def content(store):
    """All bytes of a store."""
    files = sorted(path for path in store.path.rglob("*") if path.is_file())
    return {path.relative_to(store.path).as_posix(): path.read_bytes() for path in files}


def test_a_killed_import_resumes_to_the_same_bytes(folder, monkeypatch):
    from tampl.lab.sources import importing

    whole, write, written = read("whole"), importing.write_shard, []

    def stop(path, arrays, **where):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(path)
        write(path, arrays, **where)

    monkeypatch.setattr(importing, "write_shard", stop)
    with pytest.raises(KeyboardInterrupt):
        read()
    assert len(Store.open("store").missing()) == len(whole.manifest.shards) - 3
    (folder / "store/shards/.tampl-0123456789abcdef0123456789abcdef.tmp").write_bytes(b"half")
    monkeypatch.setattr(importing, "write_shard", write)
    kept = written[0].stat().st_mtime_ns
    assert content(read()) == content(whole)
    assert written[0].stat().st_mtime_ns == kept


def test_other_files_other_options_and_damaged_shards_are_refused(folder):
    store = read()
    before = content(store)
    with pytest.raises(
        InputError, match=r"store, which holds other data: `description.observables.1`"
    ):
        read(observables=("y.npy", "phase-order"))
    with pytest.raises(InputError, match="holds other data"):
        read(seed=1)
    np.save("x.npy", WALK + 1)
    with pytest.raises(InputError, match="holds other data"):
        read()
    assert content(store) == before
    np.save("x.npy", WALK)
    shard = store.path / store.manifest.shards[0].file
    shard.write_bytes(shard.read_bytes()[:-9] + b"123456789")
    with pytest.raises(InputError, match=shard.name):
        read()


def test_the_identity_is_of_the_content_and_not_of_the_place(folder):
    store = read()
    (folder / "elsewhere").mkdir()
    for name in ("x.npy", "y.npy"):
        shutil.copy(name, folder / "elsewhere" / name)
    again = read("again", files=("elsewhere/x.npy",), observables=("elsewhere/y.npy",))
    assert again.manifest == store.manifest


def test_source_json_names_files_digests_and_options(folder):
    read()
    source = json.loads((folder / "store/source.json").read_text())
    assert [each["file"] for each in source["trajectories"]] == ["x.npy"]
    assert [len(each["sha256"]) for each in source["beside"]] == [64]
    assert source["options"]["interval"] == 0.5


def write_single(frames, seed=0):
    x = np.random.default_rng(seed).normal(size=(frames, 2)).cumsum(axis=0)
    np.save("one.npy", x)
    np.save("r.npy", x[:, 0])
    return x


def test_a_single_long_trajectory_is_cut_into_blocks_with_gaps(folder, capsys):
    x = write_single(500)
    store = read(files=("one.npy",), observables=("r.npy",), frames=10, gap=7)
    said = capsys.readouterr().err
    assert "cut into blocks of 10 frames" in said and "gaps of 7 frames" in said
    places = {frame.tobytes(): k for k, frame in enumerate(x)}
    starts = {
        name: [places[run[0].tobytes()] for run in store.dataset(name).x]
        for name in ("train", "valid", "test")
    }
    assert starts["train"] == list(range(0, 380, 10))
    assert starts["valid"] == list(range(387, 387 + 50, 10))
    assert starts["test"] == list(range(444, 444 + 50, 10))
    assert check_store(store.path, progress=False).ok


@pytest.mark.parametrize("frames", [98, 1000, 20000])
def test_blocks_and_gap_have_sensible_defaults(folder, frames):
    write_single(frames)
    store = read(files=("one.npy",), observables=("r.npy",))
    splits = store.manifest.splits
    assert 5 <= store.description.frames <= 101
    assert splits["test"].count >= 2 and splits["train"].count >= 10
    used = sum(split.count for split in splits.values()) * store.description.frames
    assert used <= frames - 2 * store.description.frames
    assert used >= 0.7 * frames


def test_blocks_of_several_trajectories_stay_in_the_split_of_their_trajectory(folder):
    store = read(frames=3)
    origin = {run[t].tobytes(): k for k, run in enumerate(WALK) for t in range(FRAMES)}
    found = {
        name: {origin[run[0].tobytes()] for run in store.dataset(name).x}
        for name in ("train", "valid", "test")
    }
    assert sum(map(len, found.values())) == len(set().union(*found.values())) == RUNS
    assert store.manifest.splits["train"].count == 2 * len(found["train"])


def test_splits_by_file(folder):
    for k in range(8):
        np.save(f"{'test' if k > 5 else 'new' if k == 5 else 'old'}{k}.npy", WALK[k])
    files = tuple(sorted(str(path.name) for path in folder.glob("*[0-9].npy")))
    np.save("y.npy", np.stack([RADII[int(name[-5])] for name in files]))
    patterns = {"train": "old*", "valid": "new*", "test": "test*"}
    store = read(files=files, by=patterns)
    np.testing.assert_array_equal(store.dataset("train").x, WALK[:5])
    np.testing.assert_array_equal(store.dataset("valid").x, WALK[5:6])
    np.testing.assert_array_equal(store.dataset("test").y[..., 0], RADII[6:8])


@pytest.mark.parametrize("uneven", [False, True])
def test_trajectories_from_one_initial_state_stay_together_and_become_references(folder, uneven):
    generator = np.random.default_rng(5)
    runs = [3 + (k % 2 if uneven else 0) for k in range(10)]
    starts = np.repeat(generator.normal(size=(10, SIZE)), runs, axis=0)
    steps = generator.normal(size=(len(starts), FRAMES - 1, SIZE)).cumsum(axis=1)
    x = np.concatenate([starts[:, None], starts[:, None] + steps], axis=1)
    order = generator.permutation(len(x))
    np.save("x.npy", x[order])
    np.save("y.npy", x[order][..., 0])
    store = read(fractions=(0.6, 0.2, 0.2))
    assert check_store(store.path, progress=False).ok
    test = store.references()
    assert test.y.shape[:2] == (2, 3)
    for initial, y in zip(test.x, test.y[..., 0], strict=True):
        same = np.flatnonzero((x[:, 0] == initial).all(axis=1))
        truth = {run.tobytes() for run in x[same][..., 0]}
        assert {run.tobytes() for run in y} <= truth
    split = store.manifest.splits["train"]
    assert split.runs == (1 if uneven else 3)
    assert split.count * split.runs == len(store.dataset("train"))


def test_the_command_divides_by_pattern_and_prints_the_store(folder):
    for k in range(5):
        np.savez(f"{k}.npz", x=WALK[k], y=RADII[k])
    done = call(
        "import", *(f"{k}.npz" for k in range(5)), "--observable", "{file}:y", "--interval", 1,
        "--train", "[01]*", "--valid", "2*", "--test", "[34]*", "--out", "store",
    )  # fmt: skip
    assert done.code == 0, done
    assert "splits: train 2, valid 1, test 2" in done.out


def test_frames_of_nan_are_missing_frames(folder):
    x, y = WALK.copy(), RADII.copy()
    x[1, 2], y[1, 2] = np.nan, np.nan
    x[4, 0] = np.nan  # what is observed where nothing is known does not count
    np.save("x.npy", x)
    np.save("y.npy", y)
    store = read(fractions=(0.5, 0.25, 0.25))
    assert check_store(store.path, progress=False).ok
    parts = [store.dataset(name) for name in ("train", "valid", "test")]
    found = {known(y).tobytes() for part in parts for y in part.y[..., 0]}
    assert found == {RADII[k][np.isfinite(x[k, :, 0])].tobytes() for k in range(RUNS)}


def known(y):
    return y[np.isfinite(y)]


def test_blocks_may_begin_or_consist_of_missing_frames(folder, capsys):
    x = np.random.default_rng(0).normal(size=(200, 2)).cumsum(axis=0)
    times = np.delete(np.arange(200.0), [*range(20, 31), 40, 41, 77, 190])
    np.savez("long.npz", x=x[times.astype(int)], t=times, y=x[times.astype(int), 0])
    spec = ImportSpec(
        files=("long.npz",),
        observables=("{file}:y",),
        reading=Reading(times="{file}:t"),
        splits=SplitSpec(frames=10),
    )
    store = import_trajectories(spec, "store", progress=False)
    assert check_store(store.path, progress=False).ok
    assert "blocks left out because their frames are missing: 1" in capsys.readouterr().err
    train = store.dataset("train")
    np.testing.assert_array_equal(train.y[2, :9, 0], x[31:40, 0])
    np.testing.assert_array_equal(train.y[3, :8, 0], x[42:50, 0])


def test_a_pattern_stands_for_files(folder):
    for k in range(6):
        np.savez(f"{k}.npz", z=WALK[k], y=RADII[k])
    whole = read("one", files=tuple(f"{k}.npz:z" for k in range(6)), observables=("{file}:y",))
    store = read("other", files=("[0-9].npz:z",), observables=("{file}:y",))
    assert content(store) == content(whole)
