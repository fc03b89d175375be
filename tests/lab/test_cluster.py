"""Clusters: the bytes of one process, with workers that die, and what is refused."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from command import call
from tampl.data import DataPlan, generate
from tampl.errors import InputError
from tampl.files import is_temporary
from tampl.lab.campaign import Resources
from tampl.lab.cluster import connected
from tampl.lab.comparisons import compare
from tampl.lab.recipes import read_recipe
from tampl.systems import SIRS

pytest.importorskip("distributed")

TINY = Path(__file__).parents[1] / "tiny.toml"
PLAN = DataPlan(seed=5, train=9, valid=2, test=3, members=2, shard_size=1)
MARK = "TAMPL_TEST_MARK"


class Mortal(SIRS):
    """Kills its process in the middle of a shard, the first time that it simulates anywhere."""

    def simulate(self, microstates, words):
        made = super().simulate(microstates, words)
        mark = Path(os.environ[MARK])
        if not mark.exists():
            mark.write_text(str(os.getpid()))
            unfinished = Path(os.environ[MARK + "_STORE"]) / "shards" / f".tampl-{'0' * 32}.tmp"
            unfinished.write_bytes(b"half of a shard")
            os.kill(os.getpid(), signal.SIGKILL)
        return made


class Faulty(SIRS):
    def simulate(self, microstates, words):
        raise InputError("the lattice broke")


@pytest.fixture(scope="module")
def system():
    return SIRS(size=8, frames=4, coverage=0.2, clusters=(1, 2))


@pytest.fixture(scope="module")
def store(system, tmp_path_factory):
    """The store of a single process."""
    folder = tmp_path_factory.mktemp("one") / "store"
    return generate(system, PLAN, folder, workers=1, progress=False)


@pytest.fixture(scope="module")
def marks(tmp_path_factory):
    """A mark, and the folder of the store that the mortal system is to make."""
    return tmp_path_factory.mktemp("marks") / "mark", tmp_path_factory.mktemp("two") / "store"


@pytest.fixture(scope="module")
def executor(marks):
    with pytest.MonkeyPatch.context() as patch:
        for name, path in zip((MARK, MARK + "_STORE"), marks, strict=True):
            patch.setenv(name, str(path))  # read when the workers start
        with connected("local", workers=2) as executor:
            yield executor


def contents(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_killed_worker_loses_its_shard_only(system, store, marks, executor):
    mark, folder = marks
    mortal = Mortal(**system.model_dump())
    made = generate(mortal, PLAN, folder, executor=executor, progress=False)
    assert int(mark.read_text()) != os.getpid()  # a worker was indeed killed
    assert contents(made.path) == contents(store.path)
    assert not any(is_temporary(path) for path in folder.rglob("*"))


def test_a_cluster_makes_what_is_missing(system, store, executor, tmp_path):
    made = generate(system, PLAN, tmp_path / "store", workers=1, progress=False)
    kept, *lost = (made.path / shard.file for shard in made.manifest.shards)
    before = kept.stat().st_mtime_ns
    for path in lost:
        path.unlink()
    generate(system, PLAN, made.path, executor=executor, progress=False)
    assert kept.stat().st_mtime_ns == before
    assert contents(made.path) == contents(store.path)


def test_a_fault_of_a_worker_is_one_line(system, executor, tmp_path):
    with pytest.raises(InputError, match=r"split `\w+`, initial microstates .* broke"):
        generate(
            Faulty(**system.model_dump()),
            PLAN,
            tmp_path / "store",
            executor=executor,
            progress=False,
        )


def test_a_worker_that_sees_another_store_refuses(system, store):
    from tampl.data.generate import _make_elsewhere
    from tampl.version import __version__

    shards = store.manifest.shards[:1]
    for folder, identity, version, words in (
        (store.path / "shards", "0" * 64, __version__, "does not see"),
        (store.path, "0" * 64, __version__, "another store"),
        (store.path, store.manifest.identity, "0.0", "same version"),
    ):
        with pytest.raises(InputError, match=words):
            _make_elsewhere(system, folder, identity, version, shards, [[]])


def test_compare_sends_runs_to_a_cluster(executor, tmp_path):
    address = executor._client.scheduler.address
    recipe = read_recipe(TINY).with_epochs(2)
    options = {"methods": ["tampl", "macro-only"]}
    here = compare(recipe, tmp_path / "here", **options)
    there = compare(recipe, tmp_path / "there", **options, resources=Resources(dask=address))
    assert there.comparison == here.comparison
    assert contents(tmp_path / "here" / "data") == contents(tmp_path / "there" / "data")
    for run in ("tampl-42", "macro-only-42"):
        best = [
            (tmp_path / place / "runs" / run / "best.safetensors").read_bytes()
            for place in ("here", "there")
        ]
        assert best[0] == best[1]


def test_an_address_without_a_scheduler_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("tampl.lab.cluster._PATIENCE_S", 0.2)
    for address, words in (
        ("tcp://127.0.0.1:9", "no scheduler answers"),
        ("nonsense://x", "no scheduler answers"),
        (str(tmp_path / "none.json"), "no such file"),
    ):
        outcome = call("simulate", TINY, "--out", tmp_path / "store", "--dask", address)
        outcome.refused("`dask` is", address, words)


def test_side_by_side_and_a_cluster_exclude_each_other():
    with pytest.raises(InputError, match="give one of them"):
        replace(Resources(dask="local"), side_by_side=2)
