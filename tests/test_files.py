"""A file is there whole or not at all; a folder has one writer."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.files import (
    claimed,
    is_temporary,
    read_arrays,
    read_json,
    remove_unfinished,
    replacing,
    strict_json,
)

CLAIM = """
import sys
from pathlib import Path
from tampl.files import claimed
with claimed(Path(sys.argv[1])):
    print("claimed", flush=True)
    sys.stdin.read()
"""


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "a.json"
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path and is_temporary(temporary)
        assert not path.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_interrupted_write_leaves_the_old_file_alone(tmp_path, error):
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(error), replacing(path) as temporary:
        temporary.write_text("half of the n")
        raise error
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "old"


def test_a_write_that_writes_nothing_is_an_error(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), replacing(path):
        pass
    assert path.read_text() == "old"


def test_the_content_reaches_the_disk_before_the_name(tmp_path, monkeypatch):
    calls = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("flush"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("rename"), rename(a, b)))
    with replacing(tmp_path / "a") as temporary:
        temporary.write_bytes(b"content")
    assert calls == ["flush", "rename", "flush"]


def test_sweeping_removes_what_dead_runs_left_and_nothing_else(tmp_path):
    ours = f".tampl-{'0' * 32}.tmp"
    left = [tmp_path / name for name in (ours, ".run.json.123.tmp", ".train-00001.h5.9.tmp")]
    names = ("a.json", "b.tmp", ".hidden", ".tmp", ".x.tmp", ".thesis.tex.1.tmp", ".tampl-1.tmp")
    kept = [tmp_path / name for name in names]
    for path in [*left, *kept]:
        path.write_text("")
    assert all(map(is_temporary, left)) and not any(map(is_temporary, kept))
    remove_unfinished(tmp_path)
    assert set(tmp_path.iterdir()) == set(kept)


def test_a_temporary_name_is_new_each_time_and_follows_no_link(tmp_path, monkeypatch):
    path, victim = tmp_path / "a", tmp_path / "victim"
    victim.write_text("mine")
    names = set()
    for _ in range(3):
        with replacing(path) as temporary:
            names.add(temporary.name)
            temporary.write_text("new")
    assert len(names) == 3 and not any(str(os.getpid()) in name for name in names)
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    (tmp_path / f".tampl-{'0' * 32}.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError), replacing(path) as temporary:
        temporary.write_text("followed")
    assert victim.read_text() == "mine"


def test_json_that_is_written_is_read(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(strict_json({"name": "Δt", "values": [1, float("inf")]}))
    assert read_json(path, "") == {"name": "Δt", "values": [1, None]}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 500 + "]" * 500,
        '{"a":' * 200 + "1" + "}" * 200,
        "9" * 5000,
        "",
        "{",
        '"\udcff"',
    ],
    ids=["unclosed", "lists", "tables", "digits", "empty", "open", "bytes"],
)
def test_json_that_is_no_json_of_ours_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InputError, match=r"a\.json is damaged .*; do this") as caught:
        read_json(path, "do this")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [0, 1, 30, 100, -1])
def test_an_archive_that_is_cut_off_is_refused(tmp_path, keep):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.arange(1000), b=np.array("text"))
    assert read_arrays(path, "")["a"].sum() == 499_500
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"a\.npz is no archive of arrays \(.*\); do this"):
        read_arrays(path, "do this")


def test_a_small_archive_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("tampl.files._MOST_UNPACKED", 2**20)
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(2**21, np.uint8))
    with pytest.raises(InputError, match=r"it would unpack to 0\.0 GiB\); do this"):
        read_arrays(path, "do this")
    np.savez(path, a=np.zeros(2**21, np.uint8))  # large, and larger on the disk
    assert read_arrays(path, "do this")["a"].size == 2**21


def test_archives_are_read_from_regular_files_only(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError, match="is no regular file; do this"):
            read_arrays(path, "do this")
    with pytest.raises(InputError, match="does not exist; do this"):
        read_arrays(tmp_path / "nowhere", "do this")


def test_json_is_read_from_regular_files_only(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError, match="is no regular file; do this"):
            read_json(path, "do this")
    with pytest.raises(InputError, match="does not exist; do this"):
        read_json(tmp_path / "nowhere", "do this")


def test_a_folder_has_one_claim_at_a_time(tmp_path):
    with claimed(tmp_path):
        with pytest.raises(InputError, match=f"another run is writing to {tmp_path}"):
            with claimed(tmp_path):
                pytest.fail("claimed twice")
        (tmp_path / "below").mkdir()
        with claimed(tmp_path / "below"):
            pass
    with pytest.raises(RuntimeError), claimed(tmp_path):
        raise RuntimeError
    with claimed(tmp_path):
        pass


def test_a_claim_holds_against_other_processes_and_ends_with_them(tmp_path):
    command = [sys.executable, "-c", CLAIM, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline() == b"claimed\n"
            with pytest.raises(InputError, match="another run"), claimed(tmp_path):
                pytest.fail("claimed twice")
        finally:
            other.kill()
            other.wait()
    with claimed(tmp_path):
        pass


def test_a_claim_leaves_nothing_behind_and_a_stale_lock_holds_nobody_up(tmp_path):
    with claimed(tmp_path):
        (lock,) = tmp_path.iterdir()
        assert is_temporary(lock)
        remove_unfinished(tmp_path)
        assert lock.exists()
    assert list(tmp_path.iterdir()) == []
    lock.write_text("")
    with claimed(tmp_path):
        pass


def test_where_files_cannot_be_locked_the_claim_is_given(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with claimed(tmp_path), claimed(tmp_path):
        pass


def test_a_claim_needs_room_for_its_lock(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(OSError, match="no space left"), claimed(tmp_path):
        pytest.fail("claimed")
