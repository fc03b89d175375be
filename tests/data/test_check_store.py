import h5py
import numpy as np
import pytest
from lattice_walk import LatticeWalk

from tampl.data import check_store, generate, read_shard
from tampl.data.shards import write_shard
from tampl.errors import InputError


@pytest.fixture
def check(store, system):
    return lambda system=system: check_store(store.path, system, progress=False)


@pytest.fixture
def rewrite(store):
    """Writes a shard again with other content: intact as a file, wrong as data."""

    def edit(file, change):
        shard = next(s for s in store.manifest.shards if s.file == f"shards/{file}")
        path = store.path / shard.file
        arrays = read_shard(path, manifest=store.manifest, shard=shard)
        change(arrays)
        write_shard(path, arrays, manifest=store.manifest, shard=shard)

    return edit


@pytest.fixture
def system():
    # Large enough that no two of its random initial microstates are the same.
    return LatticeWalk(size=6)


def test_a_good_store_has_no_problems(check, store):
    report = check()
    assert report.ok and report.problems == () and report.notes == ()
    assert (report.shards, report.trajectories, report.references) == (6, 7, 3)
    assert report.bytes == sum(path.stat().st_size for path in store.path.glob("shards/*"))


def test_several_runs_must_start_alike(system, plan, tmp_path):
    several = plan.model_copy(update={"train_runs": 2})
    store = generate(system, several, tmp_path / "several", progress=False)
    report = check_store(store.path, system, progress=False)
    assert report.ok and report.notes == () and report.trajectories == 12
    shard = store.manifest.shards[0]
    arrays = read_shard(store.path / shard.file, manifest=store.manifest, shard=shard)
    order = [0, 3, 2, 1]  # whole trajectories exchanged between two initial microstates
    arrays = {name: array[order] for name, array in arrays.items()}
    write_shard(store.path / shard.file, arrays, manifest=store.manifest, shard=shard)
    problems = check_store(store.path, system, progress=False).problems
    assert len(problems) == 1 and "start from different ones" in problems[0]


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(InputError, match="no manifest"):
        check_store(tmp_path, None)


def test_every_bad_shard_is_named_and_the_rest_is_read(check, store):
    (store.path / "shards/train-00000.h5").unlink()
    (store.path / "shards/valid-00000.h5").write_text("junk")
    report = check()
    assert not report.ok and report.shards == 4
    assert [p for p in report.problems if "train-00000.h5 is missing" in p]
    assert [p for p in report.problems if "valid-00000.h5 is truncated" in p]
    assert len(report.problems) == 2


def test_a_flipped_byte_is_found(check, store):
    path = store.path / "shards/test-00000.h5"
    with h5py.File(path) as file:
        offset = file["macrostates"].id.get_offset()
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)
    assert "checksum" in check().problems[0]


@pytest.mark.parametrize("file", ["train-00000.h5", "test-00000.h5"])
def test_macrostates_are_those_of_the_microstates(check, rewrite, file):
    def shift(arrays):
        y = arrays["macrostates"]
        y[(0,) * (y.ndim - 1)][1] += 0.25

    rewrite(file, shift)
    (problem,) = check().problems
    assert file in problem and "differ" in problem and "`top row` by up to 0.25" in problem


def test_physical_faults_are_reported(check, rewrite):
    rewrite("test-00000.h5", lambda arrays: arrays["macrostates"][:, :, 1:].fill(2.0))
    assert any("a fraction above 1" in problem for problem in check().problems)


def test_what_is_not_finite_is_reported(check, rewrite):
    rewrite("valid-00000.h5", lambda arrays: arrays["macrostates"].fill(np.nan))
    assert "NaN or infinity" in check(None).problems[0]


def test_an_impossible_microstate_is_reported(check, rewrite):
    rewrite("train-00000.h5", lambda arrays: arrays["microstates"].fill(7))
    assert "a site in state 7" in check(None).problems[0]


def test_a_label_that_is_no_text_is_reported(check, rewrite):
    rewrite("train-00000.h5", lambda arrays: arrays["labels"].fill(b"\xff"))
    assert "utf-8" in check(None).problems[0]


def test_without_the_system_physics_is_skipped(check, rewrite):
    rewrite("test-00000.h5", lambda arrays: arrays["macrostates"].fill(2.0))
    report = check(None)
    assert report.ok and "not checked" in report.notes[0]


def test_another_system_is_a_problem(check):
    (problem,) = check(LatticeWalk(size=6, flips=2)).problems
    assert "`parameters.flips` is 1 in the store and 2" in problem


def test_another_kernel_is_a_note(check):
    class Faster(LatticeWalk):
        @property
        def kernel(self):
            return "walk-cuda-1"

    report = check(Faster(size=6))
    assert report.ok and "walk-cuda-1" in report.notes[0]


def test_a_leak_between_splits_is_a_problem(store, check, rewrite):
    leaked = store.dataset("train").x[3, 0]

    def leak(arrays):
        arrays["initial"][0] = leaked

    rewrite("test-00001.h5", leak)
    leaks = [problem for problem in check(None).problems if "repeat" in problem]
    assert len(leaks) == 1 and "`test` 2 and `train` 3" in leaks[0]


def test_a_repetition_within_a_split_is_a_note(check, rewrite):
    def repeat(arrays):
        arrays["initial"][1] = arrays["initial"][0]

    rewrite("test-00000.h5", repeat)
    report = check(None)
    assert report.ok and any("`test` 1 and `test` 0" in note for note in report.notes)


def test_a_file_too_many_is_a_note(check, store):
    (store.path / "shards/notes.txt").touch()
    report = check()
    assert report.ok and report.notes == ("shards/notes.txt is not in the manifest",)


def test_a_check_changes_nothing(check, store, snapshot, system, plan):
    before = snapshot(store.path)
    check()
    assert snapshot(store.path) == before
    generate(system, plan, store.path, progress=False)
