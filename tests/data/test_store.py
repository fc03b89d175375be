import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from lattice_walk import LatticeWalk

import tampl.data
from tampl.data import DataPlan, Store, generate, read_shard, write_miniature
from tampl.data.shards import encode_labels, write_shard
from tampl.errors import InputError
from tampl.seeding import kernel_words, numpy_generator


def first(store, split="train"):
    shard = store.manifest.of_split(split)[0]
    return store.path / shard.file, shard


def read_first(store, **options):
    path, shard = first(store)
    return read_shard(path, manifest=store.manifest, shard=shard, **options)


def refuses(store, *words):
    """Both ways of reading refuse the first shard, by name and with a remedy."""
    path, _ = first(store)
    for read in (lambda: read_first(store), lambda: store.dataset("train")):
        with pytest.raises(InputError, match=".*".join(words)) as caught:
            read()
        message = str(caught.value)
        assert path.name in message and "tampl simulate" in message and "\n" not in message


def test_what_is_read_is_what_the_system_made(store, system):
    data = Store.open(store.path).dataset("train", verify=True)
    x = [system.initial(numpy_generator(3, "walk", "train", i, "initial")) for i in range(5)]
    words = np.stack([kernel_words(3, "walk", "train", i, "run") for i in range(5)])
    runs = system.simulate(np.stack([state.microstate for state in x]), words)
    np.testing.assert_array_equal(data.x, runs.microstates)
    np.testing.assert_array_equal(data.y, runs.macrostates)
    assert data.x.dtype == np.uint8 and data.y.dtype == np.float64
    assert data.labels.tolist() == [state.label for state in x]


def test_references_are_the_members_of_each_microstate(store, system):
    data = store.references(verify=True)
    assert data.x.shape == (3, 4, 4) and data.y.shape == (3, 4, 5, 2)
    words = np.stack([kernel_words(3, "walk", "test", 2, "member", k) for k in range(4)])
    expected = system.ensemble(data.x[2:], words[None])
    np.testing.assert_array_equal(data.y[2:], expected)


def test_the_store_says_what_it_holds(store, system):
    assert store.description == system.description
    assert store.missing() == ()
    with h5py.File(first(store)[0]) as file:
        assert set(file.attrs) == {
            *("identity", "split", "start", "count"),
            *("seed", "kernel", "code_version", "checksum"),
        }


def test_a_miniature_is_a_store(system, tmp_path):
    store = write_miniature(system, tmp_path / "mini")
    assert store.missing() == () and len(store.dataset("train").labels) == 4


def test_a_split_of_the_other_kind_is_refused(store):
    with pytest.raises(InputError, match=r"`split` is 'test'.*hold trajectories"):
        store.dataset("test")
    with pytest.raises(InputError, match=r"`split` is 'train'.*hold references"):
        store.references("train")
    with pytest.raises(InputError, match="`split` is 'tests'"):
        store.dataset("tests")


def edited(**changes):
    return lambda text: json.dumps({**json.loads(text), **changes})


def with_frames(frames):
    def edit(text):
        tree = json.loads(text)
        tree["description"]["frames"] = frames
        return json.dumps(tree)

    return edit


@pytest.mark.parametrize(
    "edit, words",
    [
        (lambda text: text[:100], "is damaged"),
        (lambda text: "[]", "`format` None"),
        (edited(format="zarr"), "`format` 'zarr'"),
        (edited(format_version=2), "`format_version` 2; this tampl .* newer tampl, or make"),
        (edited(format_version=0), "malformed .*`format_version` is 0"),
        (edited(format_version=None), "malformed .*`format_version` is None"),
        (lambda text: "null", "`format` None"),
        (lambda text: "[" * 5000, "is damaged .*nested"),
        (lambda text: text.replace('"seed": 3', f'"seed": {"3" * 5000}'), "is damaged"),
        (lambda text: text.replace('"seed": 3', f'"seed": {"3" * 4000}'), "malformed .*`seed`"),
        (edited(splits=None), "malformed .*`splits`"),
        (edited(splits={"train": {"count": 1e300}}), "malformed .*`splits.train.count`"),
        (edited(description=[]), "malformed .*`description`"),
        (with_frames(10**30), "malformed .*`description.frames`"),
        (with_frames(-5), "malformed .*`description.frames`"),
        (with_frames(None), "malformed .*`description.frames`"),
        (edited(seed="x"), "malformed .*`seed`"),
        (edited(colour="red"), "malformed .*`colour`"),
        (edited(shards=[]), "malformed .*`shards` do not cover"),
    ],
)
def test_a_bad_manifest_is_refused(store, edit, words):
    path = store.path / "manifest.json"
    path.write_text(edit(path.read_text()))
    with pytest.raises(InputError, match=f"{re.escape(str(path))}.*{words}") as caught:
        Store.open(store.path)
    assert "\n" not in str(caught.value)


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(InputError, match="nowhere does not exist"):
        Store.open(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        Store.open(tmp_path)


def test_a_missing_shard_is_refused(store):
    path, shard = first(store)
    path.unlink()
    assert store.missing() == (shard,)
    refuses(store, "is missing", "makes only what is missing")


@pytest.mark.parametrize("keep", [0, 40, 1500])
def test_a_truncated_shard_is_refused(store, keep):
    path, _ = first(store)
    path.write_bytes(path.read_bytes()[:keep])
    refuses(store, "truncated or not a shard", "delete it")


def test_a_file_of_another_kind_is_refused(store):
    path, _ = first(store)
    path.write_text("not HDF5 " * 1000)
    refuses(store, "truncated or not a shard", "delete it")


def test_an_hdf5_file_without_attributes_is_refused(store):
    path, _ = first(store)
    with h5py.File(path, "w") as file:
        file["microstates"] = np.zeros(3)
    refuses(store, "not a shard", "identity")


def test_a_foreign_shard_is_refused(store, system, plan, tmp_path):
    other = plan.model_copy(update={"seed": 4})
    foreign = generate(system, other, tmp_path / "other", workers=1, progress=False)
    shutil.copy(first(foreign)[0], first(store)[0])
    refuses(store, "belongs to other data", "delete it")


def test_a_renamed_shard_is_refused(store):
    shutil.copy(store.path / "shards/train-00001.h5", first(store)[0])
    refuses(store, "`start` 2 where the manifest has 0", "delete it")


@pytest.mark.parametrize("name", ["microstates", "macrostates"])
def test_wrong_shapes_types_and_names_are_refused(store, name):
    path, _ = first(store)
    with h5py.File(path, "a") as file:
        data = file[name][...]
        del file[name]
        file[name] = data[:, 1:]
    refuses(store, f"`{name}` of", "is required")
    with h5py.File(path, "a") as file:
        del file[name]
        file[name] = data.astype(np.float32)
    refuses(store, f"`{name}` of float32", "is required")
    with h5py.File(path, "a") as file:
        del file[name]
        file.create_group(name)
    refuses(store, f"`{name}` of None", "is required")
    with h5py.File(path, "a") as file:
        del file[name]
    refuses(store, "datasets", "are required")


@pytest.mark.parametrize("name", ["microstates", "macrostates", "labels"])
def test_the_checksum_finds_a_flipped_byte(store, name):
    path, _ = first(store)
    with h5py.File(path) as file:
        offset = file[name].id.get_offset()
    content = bytearray(path.read_bytes())
    content[offset + 3] ^= 1
    path.write_bytes(content)
    read_first(store, verify=False)
    store.dataset("train", verify=False)
    for read in (lambda: read_first(store), lambda: store.dataset("train")):
        with pytest.raises(InputError, match=f"{path.name} is damaged.*checksum.*delete it"):
            read()


def test_references_are_verified_too(store):
    path, _ = first(store, "test")
    with h5py.File(path, "a") as file:
        file["macrostates"][0, 0, 1, 0] += 1
    with pytest.raises(InputError, match=f"{path.name} is damaged.*checksum"):
        store.references("test")


def replace_dataset(path, make):
    with h5py.File(path, "a") as file:
        del file["microstates"]
        make(file)


@pytest.mark.parametrize("link", [h5py.SoftLink("/macrostates"), "external"])
def test_links_are_not_followed(store, tmp_path, link):
    path, _ = first(store)
    shutil.copy(path, tmp_path / "outside.h5")
    if link == "external":
        link = h5py.ExternalLink(str(tmp_path / "outside.h5"), "/microstates")
    replace_dataset(path, lambda file: file.__setitem__("microstates", link))
    refuses(store, "`microstates` as a link to another place", "delete it")


def test_bytes_in_other_files_are_not_read(store, tmp_path):
    path, _ = first(store)
    data = read_first(store)["microstates"]
    shutil.copy(path, tmp_path / "outside.h5")
    (tmp_path / "outside.bin").write_bytes(data.tobytes())
    external = [(str(tmp_path / "outside.bin"), 0, data.nbytes)]
    replace_dataset(
        path,
        lambda file: file.create_dataset("microstates", data.shape, data.dtype, external=external),
    )
    refuses(store, "bytes of `microstates` in another file", "delete it")
    layout = h5py.VirtualLayout(data.shape, data.dtype)
    layout[...] = h5py.VirtualSource(tmp_path / "outside.h5", "microstates", data.shape)
    replace_dataset(path, lambda file: file.create_virtual_dataset("microstates", layout))
    refuses(store, "bytes of `microstates` in another file", "delete it")


def test_a_pipe_or_folder_in_the_place_of_a_shard_is_refused_at_once(store):
    path, _ = first(store)
    path.unlink()
    os.mkfifo(path)
    refuses(store, "is no regular file", "delete it")
    path.unlink()
    path.mkdir()
    refuses(store, "is no regular file", "delete it")


@pytest.mark.parametrize("name", [b"microstates", b"identity", b"checksum"])
def test_a_damaged_name_is_refused(store, name):
    path, _ = first(store)
    content = path.read_bytes()
    assert name in content
    path.write_bytes(content.replace(name, b"\xff\xfe" + name[2:]))
    refuses(store, path.name)


@pytest.mark.parametrize("size", [0, 1, 8, 2**63, 2**64 - 1])
@pytest.mark.parametrize("first_object", [True, False])
def test_damaged_texts_do_not_keep_hdf5_busy_for_ever(store, size, first_object):
    """HDF5 walks through the texts of attributes by their sizes, without end if one is wrong."""
    path, _ = first(store)
    content = bytearray(path.read_bytes())
    place = content.index(b"GCOL\x01\0\0\0") + 16
    while not first_object and content[place : place + 2] != b"\0\0":
        length = int.from_bytes(content[place + 8 : place + 16], "little")
        place += 16 + -(-length // 8) * 8
    content[place + 8 : place + 16] = size.to_bytes(8, "little")
    path.write_bytes(content)
    refuses(store, path.name)


@pytest.mark.parametrize("value", [1.5, np.zeros(3), np.array(["a", "b"], "S1"), b"\xff"])
@pytest.mark.parametrize("name", ["identity", "start", "checksum"])
def test_attributes_of_other_types_are_refused(store, name, value):
    path, _ = first(store)
    with h5py.File(path, "a") as file:
        file.attrs[name] = value
    refuses(store, path.name)


@pytest.mark.parametrize("harm", [lambda b: b[:-100], lambda b: b"\0" * len(b), lambda b: b[:1]])
def test_a_shard_that_the_disk_does_not_hold_as_written_gets_no_name(store, monkeypatch, harm):
    """As on a full disk, where a write that seems to succeed leaves holes."""
    path, shard = first(store)
    arrays = read_first(store)
    path.unlink()
    write = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, data: write(path, harm(data)))
    with pytest.raises(OSError, match=f"{path.name} could not be written"):
        write_shard(path, arrays, manifest=store.manifest, shard=shard)
    assert shard in store.missing()
    assert not [other for other in path.parent.iterdir() if other.name.startswith(".")]


def test_a_store_that_does_not_fit_into_memory_is_refused(store, monkeypatch):
    monkeypatch.setattr("tampl.data.shards._find_memory", lambda: 300)
    with pytest.raises(InputError, match=r"split `train` would need .*GiB of memory; this mach"):
        store.dataset("train")


def test_the_checksum_is_the_documented_one(store):
    digest = hashlib.sha256()
    with h5py.File(first(store)[0]) as file:
        for name in ("labels", "macrostates", "microstates"):
            array = file[name][...]
            digest.update(f"{name} {array.dtype.str} {list(array.shape)}\n".encode())
            digest.update(array.tobytes())
        assert file.attrs["checksum"] == digest.hexdigest()


def test_a_system_that_breaks_its_word_is_named(store):
    path, shard = first(store)
    before = path.read_bytes()
    arrays = read_first(store)
    arrays["macrostates"] = arrays["macrostates"].astype(np.float32)
    with pytest.raises(InputError, match="`walk` made `macrostates` of float32"):
        write_shard(path, arrays, manifest=store.manifest, shard=shard)
    assert path.read_bytes() == before


def test_labels_are_utf8_of_bounded_length():
    assert encode_labels(["Σ=1", ""]).tolist() == ["Σ=1".encode(), b""]
    with pytest.raises(InputError, match="longer than 64 bytes"):
        encode_labels(["Σ" * 33])


def test_no_pickles_and_no_objects(store):
    for path in Path(tampl.data.__file__).parent.glob("*.py"):
        assert "import pickle" not in path.read_text()
    for path in store.path.glob("shards/*"):
        with h5py.File(path) as file:
            assert {dataset.dtype.kind for dataset in file.values()} <= set("ufS")


def test_large_states_of_one_trajectory_per_shard(tmp_path):
    plan = DataPlan(train=3, valid=1, test=2, members=2, shard_size=1)
    store = generate(LatticeWalk(size=8), plan, tmp_path / "s", workers=2, progress=False)
    assert store.dataset("train").x.shape == (3, 5, 8, 8)
