"""Every format of arrays and pictures gives the arrays that were written, cut as `split` cuts."""

import json
import os
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

from command import call
from tampl import Dataset, Vector
from tampl.data import Store, check_store
from tampl.lab.sources import ImportSpec, import_trajectories
from tampl.lab.sources.tracks import Reading

RUNS, FRAMES, SIZE = 20, 6, 3
WALK = np.random.default_rng(0).normal(size=(RUNS, FRAMES, SIZE)).cumsum(axis=1)
RADII = np.linalg.norm(WALK, axis=-1)


def take(tmp_path, *arguments):
    """Imports files; the result is checked as any store."""
    done = call("import", *arguments, "--out", tmp_path / "store", "--json")
    assert done.code == 0, done
    store = Store.open(tmp_path / "store")
    assert done.json["identity"] == store.manifest.identity
    report = check_store(store.path, progress=False)
    assert report.ok, report.problems
    return store


def agrees(store, x=WALK, y=RADII):
    """The store holds what a data set of the arrays holds, divided alike."""
    data = Dataset(x, y, microstate=store.description.microstate)
    for name, part in zip(("train", "valid", "test"), data.split(0.8, 0.1, 0.1), strict=True):
        found = store.dataset(name)
        np.testing.assert_array_equal(found.x, part.x)
        np.testing.assert_array_equal(found.y, part.y)


@pytest.fixture
def radii(tmp_path):
    np.save(tmp_path / "r.npy", RADII)
    return tmp_path / "r.npy"


def write_npy(path):
    np.save(path / "x.npy", WALK)
    return path / "x.npy"


def write_npz(path):
    np.savez_compressed(path / "x.npz", x=WALK, other=RADII)
    return path / "x.npz"


def write_npz_member(path):
    np.savez(path / "x.npz", walk=WALK, other=RADII)
    return f"{path / 'x.npz'}:walk"


def write_hdf5(path):
    with h5py.File(path / "x.h5", "w") as file:
        file["traj/x"] = WALK
        file["traj/y"] = RADII
    return f"{path / 'x.h5'}:/traj/x"


def write_hdf5_groups(path):
    with h5py.File(path / "x.h5", "w") as file:
        for k, run in enumerate(WALK):
            file[f"run{k}/x"] = run
    return f"{path / 'x.h5'}:/run*/x"


def write_zarr(path):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(path / "x.zarr", mode="w")
    root.create_array("traj/x", shape=WALK.shape, dtype=WALK.dtype)[:] = WALK
    return f"{path / 'x.zarr'}:traj/x"


def write_netcdf(path):
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset({"x": (("run", "time", "axis"), WALK), "y": (("run", "time"), RADII)})
    data.to_netcdf(path / "x.nc", engine="h5netcdf")
    return f"{path / 'x.nc'}:x"


def write_parquet(path):
    matrix = pyarrow.list_(pyarrow.list_(pyarrow.float64()))
    table = pyarrow.table({"x": pyarrow.array(WALK.tolist(), matrix)})
    parquet.write_table(table, path / "x.parquet", row_group_size=7)
    return path / "x.parquet"


WRITERS = [
    write_npy,
    write_npz,
    write_npz_member,
    write_hdf5,
    write_hdf5_groups,
    write_zarr,
    write_netcdf,
    write_parquet,
]


@pytest.mark.parametrize("write", WRITERS)
def test_arrays(write, tmp_path, radii):
    store = take(tmp_path, write(tmp_path), "--observable", radii, "--interval", 0.5)
    assert store.description.microstate == Vector(size=SIZE)
    assert (store.description.interval, store.description.frames) == (0.5, FRAMES)
    assert [o.symbol for o in store.description.observables] == ["r"]
    agrees(store)


def test_files_of_one_trajectory_each_with_tables_beside_them(tmp_path):
    for k, (x, r) in enumerate(zip(WALK, RADII, strict=True)):
        np.save(tmp_path / f"run{k}.npy", x)
        table = np.column_stack([0.5 * np.arange(FRAMES), r, -r])
        np.savetxt(
            tmp_path / f"run{k}.csv", table, delimiter=",", header="time,r,minus", comments=""
        )
    files = [tmp_path / f"run{k}.npy" for k in range(RUNS)]
    store = take(tmp_path, *files, "--observable", "{stem}.csv", "--interval", 0.5)
    assert [o.symbol for o in store.description.observables] == ["r", "minus"]
    agrees(store, y=np.stack([RADII, -RADII], axis=-1))


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".xyz"])
def test_more_files_than_a_process_may_open(tmp_path, monkeypatch, suffix):
    resource = pytest.importorskip("resource")
    if suffix == ".xyz":
        pytest.importorskip("MDAnalysis")
    monkeypatch.chdir(tmp_path)
    points = np.random.default_rng(0).normal(size=(100, 4, 3, 3)).round(3)
    for k, x in enumerate(points):
        if suffix == ".h5":
            with h5py.File(f"{k:03}.h5", "w") as file:
                file["x"] = x.reshape(4, -1)
        elif suffix == ".npz":
            np.savez(f"{k:03}.npz", x=x.reshape(4, -1))
        else:
            rows = ["3\nm\n" + "".join(f"C {a} {b} {c}\n" for a, b, c in frame) for frame in x]
            Path(f"{k:03}.xyz").write_text("".join(rows))
    spec = ImportSpec(
        files=(f"*{suffix}",),
        observables=("radius-of-gyration",),
        interval=1,
        reading=Reading(molecule=suffix == ".xyz"),
    )
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    here = len(os.listdir("/dev/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (here + 85, before[1]))
    try:
        store = import_trajectories(spec, "store", progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(store.dataset("train")) == 80


def test_a_table_may_begin_with_a_mark_and_is_read_anew_when_it_changes(tmp_path, monkeypatch):
    """Spreadsheets mark the beginning of UTF-8, which is no part of the name of a column."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", WALK)
    for sign in (1, -1):
        rows = "\n".join(f"{t},{sign * r!r}" for t, r in enumerate(RADII.ravel().tolist()))
        Path("r.csv").write_text(f"time,r\n{rows}\n", encoding="utf-8-sig")
        spec = ImportSpec(files=("x.npy",), observables=("r.csv",), interval=0.5)
        store = import_trajectories(spec, f"store{sign}", progress=False)
        assert [o.symbol for o in store.description.observables] == ["r"]
        assert (np.sign(store.dataset("train").y) == sign).all()


def test_observables_in_the_file_of_the_trajectories_and_in_one_table(tmp_path):
    np.savez(tmp_path / "runs.npz", x=WALK, y=RADII)
    np.savetxt(tmp_path / "all.csv", RADII.reshape(-1, 1))
    options = ("--observable", "{file}:y", "--observable", tmp_path / "all.csv", "--interval", 1)
    store = take(tmp_path, tmp_path / "runs.npz", *options)
    assert [o.symbol for o in store.description.observables] == ["y", "all"]
    agrees(store, y=np.stack([RADII, RADII], axis=-1))


def write_pictures(path, suffix, dtype, frames):
    for k, run in enumerate(frames):
        folder = path / f"run{k}"
        folder.mkdir()
        for t, picture in enumerate(run):
            Image.fromarray(picture.astype(dtype)).save(folder / f"frame{t}{suffix}")
    return [path / f"run{k}" for k in range(len(frames))]


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("depth", [8, 16])
def test_folders_of_pictures_in_natural_order(tmp_path, suffix, depth):
    shown = np.random.default_rng(1).integers(0, 256, size=(5, 11, 4, 6))
    scale, dtype = (1, np.uint8) if depth == 8 else (257, np.uint16)
    folders = write_pictures(tmp_path, suffix, dtype, scale * shown)
    np.save(tmp_path / "y.npy", shown.mean(axis=(2, 3)))
    store = take(tmp_path, *folders, "--observable", tmp_path / "y.npy", "--interval", 1)
    assert store.description.microstate.kind == "image"
    x = np.concatenate([store.dataset(name).x for name in ("train", "valid", "test")])
    ours = {run.tobytes() for run in shown.astype(np.uint8)}
    assert {run.tobytes() for run in x} == ours  # frame10 comes after frame9


def test_a_tiff_of_many_pages_is_a_trajectory(tmp_path):
    shown = np.random.default_rng(1).integers(0, 256, size=(5, 4, 6, 6)).astype(np.uint8)
    for k, run in enumerate(shown):
        pages = [Image.fromarray(page) for page in run]
        pages[0].save(tmp_path / f"run{k}.tif", save_all=True, append_images=pages[1:])
    files = [tmp_path / f"run{k}.tif" for k in range(5)]
    store = take(tmp_path, *files, "--observable", "density:x=0..0.5", "--interval", 1)
    truth = {run.tobytes(): run[..., :3].mean(axis=(1, 2)) / 255 for run in shown}
    train = store.dataset("train")
    for x, y in zip(train.x, train.y, strict=True):
        np.testing.assert_allclose(y[:, 0], truth[x.tobytes()])


def test_a_lattice_knows_all_its_states(tmp_path):
    x = np.random.default_rng(2).integers(0, 2, size=(8, 5, 6, 6))
    x[7, 4, 0, :2] = 2, 3
    np.save(tmp_path / "x.npy", x)
    store = take(tmp_path, tmp_path / "x.npy", "--observable", "fractions", "--interval", 1)
    kind = store.description.microstate
    assert (kind.kind, kind.states) == ("lattice", 4)
    y = store.dataset("train").y
    np.testing.assert_allclose(y.sum(axis=-1), 1)
    np.testing.assert_allclose(y[..., 3], (store.dataset("train").x == 3).mean(axis=(2, 3)))


def test_thinning_is_that_of_a_data_set(tmp_path, radii):
    write_npy(tmp_path)
    options = ("--observable", radii, "--interval", 0.5, "--every", 2)
    store = take(tmp_path, tmp_path / "x.npy", *options)
    assert (store.description.interval, store.description.frames) == (1.0, 3)
    agrees(store, WALK[:, ::2], RADII[:, ::2])


def test_times_say_the_interval_and_which_frames_are_missing(tmp_path):
    """Holes, and trajectories of different lengths, are marked; thinning keeps to the clock."""
    lost = {3: [2], 5: [4, 5]}
    for k, (x, r) in enumerate(zip(WALK, RADII, strict=True)):
        kept = [t for t in range(FRAMES) if t not in lost.get(k, [])]
        np.savez(tmp_path / f"{k}.npz", x=x[kept], y=r[kept], t=7 + 0.25 * np.array(kept))
    files = [tmp_path / f"{k}.npz" for k in range(RUNS)]
    options = ("--observable", "{file}:y", "--times", "{file}:t")
    store = take(tmp_path, *files, *options, "--split", "0.9,0.05,0.05")
    assert store.description.interval == 0.25
    assert {name for name, split in store.manifest.splits.items() if split.holes} <= {"train"}
    train = store.dataset("train")
    places = {x[0].tobytes(): k for k, x in enumerate(WALK)}
    for x, y, present in zip(train.x, train.y[..., 0], train.present, strict=True):
        k = places[x[0].tobytes()]
        assert np.flatnonzero(~present).tolist() == lost.get(k, [])
        np.testing.assert_array_equal(x[present], WALK[k, present])
        np.testing.assert_array_equal(y[present], RADII[k, present])
    thinned = call(
        "import", *files, *options, "--every", 2, "--split", "0.9,0.05,0.05", "--out",
        tmp_path / "thin", "--json",
    )  # fmt: skip
    assert thinned.code == 0, thinned
    again = Store.open(tmp_path / "thin").dataset("train")
    np.testing.assert_array_equal(again.present, train.thin(2).present)
    np.testing.assert_array_equal(again.x, train.thin(2).x)


def test_a_function_of_ones_own_runs_where_it_is_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "width_of_mine.py").write_text(
        "def width(frame):\n    return (frame**2).sum() ** 0.5"
    )
    write_npy(tmp_path)
    store = take(tmp_path, "x.npy", "--observable", "width_of_mine:width", "--interval", 0.5)
    agrees(store)
    source = json.loads((store.path / "source.json").read_text())
    assert [each["file"].endswith("width_of_mine.py") for each in source["beside"]] == [True]


def particles(tmp_path, count=6):
    """Trajectories of particles whose number, types and box change."""
    generator = np.random.default_rng(3)
    edges = np.stack([np.linspace(8, 9, FRAMES), np.linspace(6, 5, FRAMES)], axis=-1)
    x = generator.uniform(0, 5, size=(count, FRAMES, 7, 2))
    types = generator.integers(0, 3, size=(count, FRAMES, 7))
    types[..., 0] = 1
    np.savez(tmp_path / "p.npz", x=x, types=types, box=np.tile(edges, (count, 1, 1)))
    return x, types, edges


def test_particles_with_types_and_boxes_that_change(tmp_path):
    x, types, edges = particles(tmp_path)
    options = ("--kind", "particles", "--types", "{file}:types", "--box", "{file}:box")
    store = take(
        tmp_path, tmp_path / "p.npz", *options, "--observable", "particle-number", "--interval", 1
    )
    kind, train = store.description.microstate, store.dataset("train")
    assert kind.changes and kind.periodic is True and kind.types == 2
    positions, found = kind.decode(train.x)
    np.testing.assert_allclose(
        kind.edges(train.x), np.broadcast_to(edges, (*positions.shape[:2], 2)), atol=1e-4
    )
    for k in range(len(train)):
        [place] = np.flatnonzero((types == found[k]).all(axis=(1, 2)))
        there = found[k] > 0
        np.testing.assert_allclose(positions[k][there], x[place][there], atol=1e-3)
        np.testing.assert_array_equal(train.y[k, :, 0], there.sum(axis=1))


def test_particles_between_walls(tmp_path):
    generator = np.random.default_rng(3)
    np.save(tmp_path / "p.npy", generator.uniform(0, 4, size=(6, FRAMES, 7, 2)))
    options = ("--box", "4,5", "--closed", "xy", "--observable", "density:x=0..0.5")
    store = take(tmp_path, tmp_path / "p.npy", *options, "--interval", 1)
    kind = store.description.microstate
    assert (kind.periodic, kind.box, kind.types) == (False, (4.0, 5.0), 1)
