import json
import sys
import threading
import weakref

import numpy as np
import pytest
from lattice_walk import LatticeWalk
from pydantic import Field

from tampl.data import DataPlan, Store, generate, read_shard
from tampl.errors import InputError
from tampl.files import claimed, replacing


def content(store):
    data = [store.dataset(s, verify=True) for s in ("train", "valid")]
    data.append(store.references(verify=True))
    return [a for d in data for a in (d.x, d.y, d.labels)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(content(one), content(other), strict=True))


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


class Failing(LatticeWalk):
    """Fails in the middle of the run of the third trajectory and later."""

    def simulate(self, microstates, words):
        runs = super().simulate(microstates, words)
        if len(microstates) == 1:
            raise KeyboardInterrupt
        return runs


def test_bytes_do_not_depend_on_the_workers(system, plan, store, tmp_path, snapshot):
    many = generate(system, plan, tmp_path / "many", workers=4, progress=False)
    assert snapshot(many.path) == snapshot(store.path)


@pytest.mark.parametrize("size", [None, 1, 3, 100])
def test_content_does_not_depend_on_the_shards(system, plan, store, tmp_path, size):
    other = plan.model_copy(update={"shard_size": size})
    assert same(generate(system, other, tmp_path / "o", workers=2, progress=False), store)


@pytest.mark.parametrize("workers", [1, 3])
def test_one_shard_per_worker_is_in_memory(system, plan, workers, tmp_path, monkeypatch):
    module = sys.modules["tampl.data.generate"]
    lock, alive, most, simulate = threading.Lock(), [0], [0], module._run_trajectories

    def count(change):
        with lock:
            alive[0] += change
            most[0] = max(most[0], alive[0])

    def watched(*arguments):
        made = simulate(*arguments)
        for arrays in made:
            count(1)
            weakref.finalize(arrays["microstates"], count, -1)
        return made

    monkeypatch.setattr(module, "_run_trajectories", watched)
    many = plan.model_copy(update={"train": 40, "shard_size": 1})
    generate(system, many, tmp_path / "many", workers=workers, progress=False)
    assert 1 <= most[0] <= workers and alive[0] == 0


def test_an_error_says_which_runs_it_is_of(system, plan, tmp_path, monkeypatch):
    def fail(system, microstates, words):
        raise InputError("run 1 blew up")

    monkeypatch.setattr(LatticeWalk, "simulate", fail)
    with pytest.raises(InputError, match="split `train`, initial microstates 0 to 1 with 1 runs"):
        generate(system, plan, tmp_path / "failed", workers=1, progress=False)
    together = "^split `train`, .* 0 to 4 with 1 runs each; split `valid`, .* 0 to 1 with 1 runs"
    with pytest.raises(InputError, match=together):
        generate(Recorded(wanted=9), plan, tmp_path / "both", workers=1, progress=False)


class Recorded(LatticeWalk):
    """Wants many trajectories at once and remembers how many it got."""

    wanted: int = Field(default=1, exclude=True)
    calls: list = Field(default_factory=list, exclude=True)

    @property
    def batch(self):
        return self.wanted

    def simulate(self, microstates, words):
        self.calls.append(len(microstates))
        return super().simulate(microstates, words)

    def ensemble(self, microstates, words):
        self.calls.append(words.shape[0] * words.shape[1])
        return LatticeWalk().ensemble(microstates, words)


@pytest.mark.parametrize(
    ("wanted", "calls"),
    [(1, [2, 2, 1, 2, 8, 4]), (4, [4, 3, 8, 4]), (12, [7, 12]), (1000, [7, 12])],
)
def test_a_device_gets_shards_together_and_makes_the_same_files(
    plan, store, tmp_path, snapshot, wanted, calls
):
    system = Recorded(wanted=wanted)
    out = generate(system, plan, tmp_path / "o", workers=1, progress=False)
    assert system.calls == calls
    assert snapshot(out.path) == snapshot(store.path)


@pytest.mark.parametrize("wanted", [1, 5])
@pytest.mark.parametrize("size", [None, 2])
def test_several_runs_start_alike_and_the_first_is_the_only_run_of_before(
    plan, store, tmp_path, size, wanted
):
    more = plan.model_copy(update={"train_runs": 3, "valid_runs": 2, "shard_size": size})
    several = generate(Recorded(wanted=wanted), more, tmp_path / "o", workers=2, progress=False)
    for split, runs in (("train", 3), ("valid", 2)):
        one, many = store.dataset(split), several.dataset(split, verify=True)
        for field in ("x", "y", "labels"):
            a, b = getattr(one, field), getattr(many, field)
            assert len(b) == runs * len(a)
            np.testing.assert_array_equal(b[::runs], a)
        together = many.x.reshape(-1, runs, *many.x.shape[1:])
        assert (together[:, :, 0] == together[:, :1, 0]).all()
        assert not (together[:, 1, 1:] == together[:, 0, 1:]).all()
    assert len(several.dataset("train")) == 15


def test_a_seed_and_a_split_have_their_own_streams(system, plan, store, tmp_path):
    other = plan.model_copy(update={"seed": 4})
    assert not same(generate(system, other, tmp_path / "o", workers=1, progress=False), store)
    train, valid = store.dataset("train"), store.dataset("valid")
    assert not np.array_equal(train.x[:2], valid.x)


@pytest.mark.parametrize("gone", ["train-00001.h5", "valid-00000.h5", "test-00001.h5"])
def test_only_what_is_missing_is_made_again(system, plan, store, snapshot, gone):
    before = snapshot(store.path)
    stamps = {path: path.stat().st_mtime_ns for path in store.path.glob("shards/*")}
    (store.path / "shards" / gone).unlink()
    generate(system, plan, store.path, workers=2, progress=False)
    assert snapshot(store.path) == before
    kept = {path: stamp for path, stamp in stamps.items() if path.name != gone}
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_an_interruption_leaves_complete_shards_only(system, plan, store, tmp_path, snapshot):
    out = tmp_path / "interrupted"
    with pytest.raises(KeyboardInterrupt):
        generate(Failing(), plan, out, workers=2, progress=False)
    found = names(out)
    assert "manifest.json" in found and "shards/train-00002.h5" not in found
    assert not [name for name in found if "tmp" in name]
    generate(system, plan, out, progress=False)
    assert snapshot(out) == snapshot(store.path)


def test_an_exception_while_writing_leaves_nothing(system, plan, tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr("tampl.data.shards._checksum", fail)
    with pytest.raises(OSError, match="the disk is full"):
        generate(system, plan, tmp_path / "s", workers=1, progress=False)
    assert names(tmp_path / "s") == ["manifest.json"]


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "x"
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert names(tmp_path) == ["x"] and path.read_text() == "new"
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert names(tmp_path) == ["x"] and path.read_text() == "new"


def test_the_leftovers_of_a_killed_run_are_swept(system, plan, store, snapshot):
    before = snapshot(store.path)
    (store.path / "shards/.train-00001.h5.123.tmp").write_text("half")
    (store.path / ".manifest.json.123.tmp").write_text("half")
    generate(system, plan, store.path, progress=False)
    assert snapshot(store.path) == before


def test_a_run_killed_before_its_manifest_can_begin_again(system, plan, tmp_path):
    (tmp_path / ".manifest.json.123.tmp").write_text("half")
    assert generate(system, plan, tmp_path, progress=False).missing() == ()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "other, change, words",
    [
        (LatticeWalk(), {"seed": 4}, "`seed` is 3 there and 4 here"),
        (LatticeWalk(), {"test": 4}, "`splits.test.count` is 3 there and 4 here"),
        (LatticeWalk(), {"shard_size": 5}, "`shards.0.count` is 2 there and 5 here"),
        (LatticeWalk(flips=2), {}, "`description.parameters.flips` is 1 there and 2 here"),
    ],
)
def test_other_data_is_refused_and_left_alone(plan, store, snapshot, other, change, words):
    (store.path / "shards/train-00001.h5").unlink()
    (store.path / "shards/.train-00003.h5.1.tmp").touch()
    before = snapshot(store.path)
    with pytest.raises(InputError, match=words):
        generate(other, plan.model_copy(update=change), store.path, progress=False)
    assert snapshot(store.path) == before


def test_a_folder_of_other_files_is_refused_and_left_alone(system, plan, tmp_path, snapshot):
    (tmp_path / "thesis.tex").write_text("do not lose me")
    before = snapshot(tmp_path)
    with pytest.raises(InputError, match="holds files but no manifest"):
        generate(system, plan, tmp_path, progress=False)
    assert snapshot(tmp_path) == before and not (tmp_path / "shards").exists()
    with pytest.raises(InputError, match="cannot be made a folder"):
        generate(system, plan, tmp_path / "thesis.tex", progress=False)


@pytest.mark.parametrize("damage", [lambda b: b[:-200], lambda b: b"", lambda b: b[::-1]])
def test_a_damaged_shard_is_not_overwritten(system, plan, store, snapshot, damage):
    path = store.path / "shards/train-00001.h5"
    (store.path / "shards/train-00000.h5").unlink()
    path.write_bytes(damage(path.read_bytes()))
    before = snapshot(store.path)
    with pytest.raises(InputError, match=r"train-00001.h5.*delete it and run `tampl simulate`"):
        generate(system, plan, store.path, progress=False)
    assert snapshot(store.path) == before


@pytest.mark.parametrize("gone", [True, False])
def test_a_resume_verifies_what_it_keeps(system, plan, store, snapshot, gone):
    path = store.path / "shards/train-00001.h5"
    if gone:
        (store.path / "shards/train-00000.h5").unlink()
    content = bytearray(path.read_bytes())
    content[content.index(read_shard_bytes(store, path))] ^= 1
    path.write_bytes(content)
    before = snapshot(store.path)
    with pytest.raises(InputError, match=r"train-00001.h5 is damaged.*checksum.*delete it"):
        generate(system, plan, store.path, progress=False)
    assert snapshot(store.path) == before


def read_shard_bytes(store, path):
    (shard,) = [shard for shard in store.manifest.shards if shard.file.endswith(path.name)]
    return read_shard(path, manifest=store.manifest, shard=shard)["macrostates"].tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"train": 10**12},
        {"train": 10**4000, "shard_size": 10**4000},
        {"train": 10**12, "shard_size": 10**12},
        {"train_runs": 10**12},
        {"members": 10**12},
        {"test": 10**12},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_plan_beyond_all_memory_is_refused_before_anything_is_made(plan, tmp_path, change):
    larger = plan.model_copy(update=change)
    with pytest.raises(
        InputError, match=r"GiB of memory; this machine|shards of .* at most 100"
    ) as c:
        generate(LatticeWalk(), larger, tmp_path / "s", progress=False)
    assert "\n" not in str(c.value) and not (tmp_path / "s").exists()


def test_systems_beyond_all_memory_are_refused_before_anything_is_made(plan, tmp_path):
    for system in (LatticeWalk(frames=10**12), LatticeWalk(size=10**6)):
        with pytest.raises(InputError, match="GiB of memory; this machine has"):
            generate(system, plan, tmp_path / "s", progress=False)
    with pytest.raises(InputError, match=r"`description\.frames` must be from 1"):
        generate(LatticeWalk(frames=10**30), plan, tmp_path / "s", progress=False)


def test_another_version_of_the_code_goes_on(system, plan, store):
    path = store.path / "manifest.json"
    old = {**json.loads(path.read_text()), "code_version": "0.0.1"}
    path.write_text(json.dumps(old))
    (store.path / "shards/train-00000.h5").unlink()
    generate(system, plan, store.path, progress=False)
    again = Store.open(store.path)
    assert again.manifest.code_version == "0.0.1" and again.missing() == ()
    again.dataset("train", verify=True)


def test_two_runs_do_not_write_the_same_store(system, plan, store):
    with claimed(store.path), pytest.raises(InputError, match="another run is writing"):
        generate(system, plan, store.path, progress=False)
    generate(system, plan, store.path, progress=False)


def test_no_workers_are_refused(system, plan, tmp_path):
    with pytest.raises(InputError, match="`workers` is 0"):
        generate(system, plan, tmp_path / "s", workers=0)
    assert not (tmp_path / "s").exists()


def test_shards_are_made_at_the_same_time(tmp_path):
    barrier = threading.Barrier(2, timeout=10)

    class Meeting(LatticeWalk):
        def simulate(self, microstates, words):
            barrier.wait()
            return super().simulate(microstates, words)

    plan = DataPlan(train=3, valid=1, test=2, members=2, shard_size=1)
    generate(Meeting(), plan, tmp_path / "s", workers=2, progress=False)


def test_the_bar_is_on_standard_error(system, plan, tmp_path, capfd):
    generate(system, plan, tmp_path / "s", workers=1)
    out, err = capfd.readouterr()
    assert out == "" and "simulating" in err
