"""The published polymer data: what is read is what was written, what is wrong is refused."""

import pickle

import numpy as np
import pyarrow
import pytest
from polymer_files import ROWS, SYSTEM, trajectories, write_data_set, write_rows
from pyarrow import parquet

from command import call
from tampl.data import Store, check_store
from tampl.errors import InputError
from tampl.lab.sources import ImportSpec, import_polymer, import_store


def read(folder, out, system=SYSTEM):
    return import_polymer(folder, out, system=system, progress=False)


@pytest.mark.parametrize("converted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_store_holds_what_the_files_hold(tmp_path, converted, dtype):
    data = write_data_set(tmp_path / "files", converted=converted, dtype=dtype)
    store = read(tmp_path / "files", tmp_path / "store")
    for split in ("train", "valid"):
        stored = store.dataset(split)
        np.testing.assert_array_equal(stored.x, data[split])
        np.testing.assert_array_equal(stored.y, SYSTEM.observe(data[split]))
    test = store.references()
    assert test.labels.tolist() == ["fast", "medium", "slow"]
    for k, label in enumerate(test.labels):
        np.testing.assert_array_equal(test.x[k], data[f"test_{label}"][0, 0])
        np.testing.assert_array_equal(test.y[k], SYSTEM.observe(data[f"test_{label}"]))
    report = check_store(store.path, SYSTEM, progress=False)
    assert report.ok and report.trajectories == ROWS["train"] + ROWS["valid"]
    assert Store.open(store.path).manifest.kernel == "polymer-parquet-1"


def test_an_interrupted_import_is_begun_again_and_a_finished_one_kept(tmp_path):
    write_data_set(tmp_path / "files")
    whole = read(tmp_path / "files", tmp_path / "whole")
    (tmp_path / "store" / "shards").mkdir(parents=True)
    (tmp_path / "store" / "shards" / "train-00000.h5").write_bytes(b"half")
    again = read(tmp_path / "files", tmp_path / "store")
    assert again.manifest == whole.manifest
    np.testing.assert_array_equal(again.dataset("train").y, whole.dataset("train").y)
    with pytest.raises(InputError, match="holds a store already: choose a new or empty folder"):
        read(tmp_path / "files", tmp_path / "store")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("buy milk")
    with pytest.raises(InputError, match="holds other files"):
        read(tmp_path / "files", tmp_path / "notes")


@pytest.fixture
def files(tmp_path):
    write_data_set(tmp_path)
    return tmp_path


def spoil(files, split="valid", **changes):
    x = changes.pop("x", None)
    x = trajectories(split, ROWS[split]) if x is None else x
    write_rows(files / f"data/{split}-00000-of-00001.parquet", x, **changes)


def refused(files, message):
    with pytest.raises(InputError, match=message):
        read(files, files / "store")
    assert not (files / "store" / "manifest.json").exists()


@pytest.mark.parametrize("column", ["t", "x"])
def test_missing_columns(files, column):
    spoil(files, drop=(column,))
    refused(
        files, rf"valid-00000-of-00001.parquet has no column `{column}`, only .*needed are t, x"
    )


def test_the_column_of_arguments_is_not_needed(files):
    spoil(files, drop=("args",))
    assert read(files, files / "store").manifest.splits["valid"].count == 2


def test_other_beads_and_frames(files):
    x = trajectories("valid", 2)
    spoil(files, x=x[:, :, :-1])
    refused(files, r"row 0: `x` has shape \(4, 15\); 4 frames of 6 beads have \(4, 18\)")
    spoil(files, x=x[:, :-1])
    refused(files, r"`x` has shape \(3, 18\)")
    with pytest.raises(InputError, match="1001 frames of 300 beads"):
        spec = ImportSpec(files=(str(files),), observables=(), format="polymer-parquet")
        import_store(spec, files / "other")


def test_numbers_that_are_no_chain(files):
    x = trajectories("valid", 2)
    spoil(files, x=np.where(np.arange(6)[:, None] == 3, np.nan, x))
    refused(files, "row 0: `x` must be finite")
    spoil(files, x=x + 1)
    refused(files, "centre of mass is off the origin by 1")
    spoil(files, x=0.1 * x)
    refused(files, r"row 0: `x` has a rod whose length is off by 0\.9, between .*in diameters")
    spoil(files, x=x.swapaxes(-1, -2).reshape(x.shape))
    refused(files, "consecutive beads must be one diameter apart .*bead after bead")
    spoil(files, dtype="str")
    refused(files, "`x` holds object; it must hold numbers")


def test_times_that_are_no_frames(files):
    spoil(files, t=np.array([0.0, 1.0, 2.0, 4.0]))
    refused(files, "`t` is not evenly spaced")
    spoil(files, t=np.array([0.0, 1.0, 2.0]))
    refused(files, "`t` has 3 times for 4 frames")


def test_ragged_rows_and_plain_numbers(files):
    path = files / "data" / "valid-00000-of-00001.parquet"
    t = [[[0.0], [1.0]]]
    parquet.write_table(pyarrow.table({"t": t, "x": [[[1.0, 2.0], [3.0]]]}), path)
    refused(files, "`x` is no list of rows of equal length")
    parquet.write_table(pyarrow.table({"t": t, "x": [1.0]}), path)
    refused(files, "`x` is no list of rows of equal length")


def test_a_test_split_from_several_configurations(files):
    x = np.concatenate([trajectories("valid", 2), trajectories("test_slow", 1)])
    spoil(files, "test_slow", x=x)
    refused(files, "trajectory 1 of .* starts .* away from the first of its split")
    spoil(files, "test_slow", x=trajectories("test_slow", 2))
    refused(files, "equal numbers of trajectories, and have .*test_slow 2: download all")


def test_files_that_are_missing_or_damaged(files):
    path = files / "data" / "valid-00000-of-00001.parquet"
    path.write_bytes(b"version https://git-lfs")
    refused(files, "valid-00000-of-00001.parquet is no parquet file .*download it again")
    path.unlink()
    refused(files, "no parquet file of the split `valid`.*download all splits")
    refused(files / "nowhere", "which is no folder")


def test_a_data_set_in_two_layouts(files):
    write_rows(files / "default/valid/0000.parquet", trajectories("valid", 2))
    refused(files, "`valid` more than once, as data/valid-0.* and as default/valid/0000.parquet")
    (files / "default/valid/0000.parquet").rename(files / "data/valid-00001-of-00002.parquet")
    assert read(files, files / "store").manifest.splits["valid"].count == 4


def test_pickles_are_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was opened",))

    (tmp_path / "train.pkl").write_bytes(pickle.dumps(Trap()))
    refused(tmp_path, "train.pkl is pickled, and reading it would run .*get the parquet files")


def test_the_command(files, monkeypatch):
    command = ("import", files, "--format", "polymer-parquet", "--out", files / "store", "--json")
    call(*command).refused("row 0: `x` has shape (4, 18); 1001 frames of 300 beads")
    call("import", files, files, *command[2:]).refused(
        "`--format` is 'polymer-parquet', which is one folder, and 2 are given"
    )
    call("import", files, "--format", "csv", "--out", files / "store").refused(
        "`--format` is 'csv'"
    )
    monkeypatch.setattr("tampl.lab.sources.polymer.Polymer", lambda: SYSTEM)
    done = call(*command)
    assert done.code == 0 and done.json["splits"] == {"train": 5, "valid": 2, "test": 3}
