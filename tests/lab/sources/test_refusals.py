"""Wrong input is one line that says what is wrong and where, and nothing is written."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from command import call

RUNS, FRAMES, SIZE = 8, 6, 3
WALK = np.random.default_rng(0).normal(size=(RUNS, FRAMES, SIZE)).cumsum(axis=1)
RADII = np.linalg.norm(WALK, axis=-1)
GAS = np.random.default_rng(1).uniform(0, 4, size=(RUNS, FRAMES, 5, 2))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files that are right, and a module of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    np.save("x.npy", WALK)
    np.save("y.npy", RADII)
    np.save("gas.npy", GAS)
    (tmp_path / "careless_functions.py").write_text(
        "def fail(frame):\n    raise RuntimeError('no\\nluck')\n"
        "def drift(frame):\n    return float('nan')\n"
        "def both(frame):\n    return frame[:2]\n"
        "def always(frame):\n    return 1.0\n"
    )
    return tmp_path


def save(name, array):
    np.save(name, array, allow_pickle=True)


def spoiled(array, place, value):
    copy = array.copy()
    copy[place] = value
    return copy


def write_xyz(name, frames=6):
    generator = np.random.default_rng(0)
    lines = []
    for _ in range(frames):
        lines += ["3", "molecule"]
        lines += [f"C {x:.4f} {y:.4f} {z:.4f}" for x, y, z in generator.normal(size=(3, 3))]
    Path(name).write_text("\n".join(lines) + "\n")


def damage(name, write, place):
    write()
    content = bytearray(Path(name).read_bytes())
    content[place : place + 8] = b"\xff" * 8
    Path(name).write_bytes(content)


def write_compressed():
    with h5py.File("x.h5", "w") as file:
        file.create_dataset("x", data=WALK, compression="gzip", fletcher32=True)


def write_cut_picture():
    Path("film").mkdir()
    for k in range(3):
        Image.fromarray(np.full((9, 9), 40 * k, np.uint8)).save(f"film/{k}.png")
    content = Path("film/1.png").read_bytes()
    Path("film/1.png").write_bytes(content[: len(content) // 2])


def with_times(times):
    def prepare():
        np.savez("t.npz", x=WALK, t=np.asarray(times, dtype=float), y=RADII)

    return prepare


def mixed_intervals():
    for k, step in enumerate((1.0, 1.0, 2.0, 1.0)):
        np.savez(f"{k}.npz", x=WALK[k], y=RADII[k], t=step * np.arange(FRAMES))


def mixed_types():
    for k in range(4):
        types = np.array([1, 1, 2, 2, 2]) if k else np.array(["A", "A", "B", "B", "B"])
        np.savez(f"{k}.npz", x=GAS[k], types=types)


def mixed_shapes():
    for k in range(4):
        np.save(f"{k}.npy", WALK[k, :, : 2 + (k > 0)])


def mixed_dimensions():
    for k in range(4):
        x = GAS[k] if k else np.concatenate([GAS[k], GAS[k][..., :1]], axis=-1)
        np.savez(f"{k}.npz", x=x, box=np.full(x.shape[-1], 5.0))


def write_occupied():
    Path("taken.txt").write_text("buy milk")


FROM = ("--observable", "y.npy", "--interval", "0.5")
GAS_FROM = ("--observable", "particle-number", "--interval", "1", "--box", "5,5")
TIMED = ("t.npz", "--observable", "t.npz:y", "--times", "t.npz:t")
FOUR = tuple(f"{k}.npz" for k in range(4))
MD = ("--observable", "radius-of-gyration", "--molecule", "--interval", "1")

CASES = {
    "missing file": (None, ("nowhere.npy", *FROM), "nowhere.npy does not exist"),
    "unknown format": (
        lambda: Path("x.abc").touch(),
        ("x.abc", *FROM),
        "x.abc is of a format that its name does not tell: say `--format`",
    ),
    "other format": (
        None,
        ("x.npy", *FROM, "--format", "csv"),
        "`--format` is 'csv'; choose one of numpy",
    ),
    "mixed formats": (
        lambda: np.savez("a.npz", x=WALK) or write_xyz("a.xyz"),
        ("a.npz", "a.xyz", *FROM),
        "a.npz is of format numpy and a.xyz of format md",
    ),
    "file given twice": (None, ("x.npy", "x.npy", *FROM), "x.npy is given twice"),
    "duplicate content": (
        lambda: np.save("z.npy", WALK),
        ("x.npy", "z.npy", *FROM),
        "z.npy has the same content as x.npy",
    ),
    "no array of a name": (
        lambda: np.savez("a.npz", u=WALK, v=WALK),
        ("a.npz:w", *FROM),
        "a.npz has no array `w`; it holds u, v",
    ),
    "several arrays": (
        lambda: np.savez("a.npz", u=WALK, v=WALK),
        ("a.npz", *FROM),
        "a.npz holds several arrays (u, v): say which",
    ),
    "one axis": (
        lambda: save("a.npy", WALK[0, :, 0]),
        ("a.npy", *FROM),
        "a.npy has shape (6,); give (trajectories, frames, ...)",
    ),
    "vectors or lattices": (
        lambda: save("a.npy", np.ones((8, 6, 3), int)),
        ("a.npy", *FROM),
        "a.npy has shape (8, 6, 3)",
        "Give `--kind vector`",
    ),
    "wrong kind": (None, ("x.npy", *FROM, "--kind", "tensor"), "kind", "tensor"),
    "kind of another shape": (
        lambda: save("a.npy", np.ones((2, 2, 2, 2, 2))),
        ("a.npy", *FROM, "--kind", "lattice"),
        "microstates of kind `lattice` need 4 axes",
    ),
    "float pictures": (
        lambda: save("a.npy", np.random.rand(8, 6, 4, 4)),
        ("a.npy", *FROM),
        "floating-point numbers of shape (4, 4)",
        "for particles give their `--box`",
    ),
    "frames of several shapes": (
        mixed_shapes,
        (*(f"{k}.npy" for k in range(4)), *FROM),
        "1.npy has frames of shape (3,), and 0.npy of shape (2,)",
    ),
    "complex numbers": (
        lambda: save("a.npy", WALK + 0j),
        ("a.npy", *FROM),
        "a.npy holds complex numbers; give real ones",
    ),
    "strings": (
        lambda: save("a.npy", WALK.astype(str)),
        ("a.npy", *FROM),
        "a.npy holds <U",
        "must hold numbers",
    ),
    "objects": (
        lambda: save("a.npy", WALK.astype(object)),
        ("a.npy", *FROM),
        "a.npy holds Python objects, and reading them would run code",
    ),
    "pickle": (
        lambda: save("a.npy", np.array([{"a": 1}], object)),
        ("a.npy", *FROM),
        "holds Python objects",
    ),
    "damaged file": (lambda: Path("a.npy").write_bytes(b"half"), ("a.npy", *FROM), "a.npy"),
    "nan at a place": (
        lambda: save("a.npy", spoiled(WALK, (3, 2, 1), np.nan)),
        ("a.npy", *FROM),
        "a.npy, trajectory 3 holds nan in frame 2 at (1,)",
    ),
    "infinity": (
        lambda: save("a.npy", spoiled(WALK, (0, 5, 0), np.inf)),
        ("a.npy", *FROM),
        "a.npy, trajectory 0 holds inf in frame 5",
    ),
    "one frame": (
        lambda: save("a.npy", WALK[:, :1]),
        ("a.npy", *FROM),
        "a.npy, trajectory 0 has 1 frame; a trajectory needs two",
    ),
    "thinned to one frame": (
        None,
        ("x.npy", *FROM, "--every", "9"),
        "keeps 1 of 6 frames with `--every` 9",
    ),
    "every of zero": (
        None,
        ("x.npy", *FROM, "--every", "0"),
        "`--every` is 0; it must be at least 1",
    ),
    "unsorted times": (
        with_times([0, 2, 1, 3, 4, 5]),
        TIMED,
        "trajectory 0 has frame 2 at time 1, and the frame before it at 2",
    ),
    "uneven times": (
        with_times([0, 1, 2, 3, 4.5, 5.5]),
        TIMED,
        "has frames 1.5 apart at time 3, where most are 1 apart",
    ),
    "times of another length": (with_times([0, 1, 2]), TIMED, "`times` has shape (3,)"),
    "mixed intervals": (
        mixed_intervals,
        (*FOUR, "--observable", "{file}:y", "--times", "{file}:t"),
        "2.npz:x has frames 2 apart, and 0.npz:x 1",
    ),
    "no interval": (
        None,
        ("x.npy", "--observable", "y.npy"),
        "`--interval` is missing, and x.npy, trajectory 0 does not say",
    ),
    "negative interval": (
        None,
        ("x.npy", "--observable", "y.npy", "--interval", "-1"),
        "`--interval` is -1.0; it must be a positive number",
    ),
    "no observable": (
        None,
        ("x.npy", "--interval", "1"),
        "`--observable` is missing: give a file",
    ),
    "observable of another length": (
        lambda: save("short.npy", RADII[:, :5]),
        ("x.npy", "--observable", "short.npy", "--interval", "1"),
        "short.npy has 5 values for the 6 frames of x.npy, trajectory 0",
    ),
    "observable of fewer trajectories": (
        lambda: save("short.npy", RADII[:5]),
        ("x.npy", "--observable", "short.npy", "--interval", "1"),
        "short.npy has shape (5, 6); of 8 trajectories",
    ),
    "nan in an observable": (
        lambda: save("bad.npy", spoiled(RADII, (2, 4), np.nan)),
        ("x.npy", "--observable", "bad.npy", "--interval", "1"),
        "bad.npy holds [nan] for frame 4 of x.npy, trajectory 2",
    ),
    "text in an observable": (
        lambda: Path("y.csv").write_text("\n".join([*map(str, RADII.ravel()), "n/a"])),
        ("x.npy", "--observable", "y.csv", "--interval", "1"),
        "y.csv, line 49: 'n/a' is no row of 1 numbers",
    ),
    "table of another length": (
        lambda: np.savetxt("y.csv", RADII.ravel()[:-1]),
        ("x.npy", "--observable", "y.csv", "--interval", "1"),
        "y.csv has 47 rows, and the trajectories have 48 frames",
    ),
    "constant observable": (
        lambda: save("flat.npy", np.ones_like(RADII)),
        ("x.npy", "--observable", "flat.npy", "--interval", "1"),
        "the observable `flat` is 1 in every frame",
    ),
    "constant function": (
        None,
        ("x.npy", "--observable", "careless_functions:always", "--interval", "1"),
        "the observable `always` is 1 in every frame",
    ),
    "observable twice": (
        None,
        ("x.npy", "--observable", "y.npy", *FROM),
        "two observables have the symbol 'y'",
    ),
    "unknown observable": (
        None,
        ("x.npy", "--observable", "temperature", "--interval", "1"),
        "`observable` is 'temperature'",
    ),
    "observable of another kind": (
        None,
        ("x.npy", "--observable", "magnetisation", "--interval", "1"),
        "`magnetisation` applies to lattice",
    ),
    "no such module": (
        None,
        ("x.npy", "--observable", "nobody_wrote_it:f", "--interval", "1"),
        "no module 'nobody_wrote_it'",
    ),
    "function that raises": (
        None,
        ("x.npy", "--observable", "careless_functions:fail", "--interval", "1"),
        "x.npy, trajectory",
        "raises RuntimeError in frame 0: no luck",
    ),
    "function that gives nan": (
        None,
        ("x.npy", "--observable", "careless_functions:drift", "--interval", "1"),
        "returns a value nan in frame 0",
    ),
    "function that gives several": (
        None,
        ("x.npy", "--observable", "careless_functions:both", "--interval", "1"),
        "returns a value of shape (2,)",
    ),
    "no box": (None, ("gas.npy", "--kind", "particles", *GAS_FROM[:4]), "`--box` is missing"),
    "negative box": (
        None,
        ("gas.npy", *GAS_FROM[:4], "--box", "5,-5"),
        "has a box of [5.0, -5.0] in frame 0; edges must be positive",
    ),
    "box of another dimension": (
        None,
        ("gas.npy", *GAS_FROM[:4], "--box", "5,5,5"),
        "`--box` has 3 edges, and positions have 2 coordinates",
    ),
    "particles beyond a wall": (
        None,
        ("gas.npy", *GAS_FROM[:4], "--box", "3,3", "--closed", "xy"),
        "gas.npy, trajectory",
        "the edge of the box",
    ),
    "walls along no axis": (
        None,
        ("gas.npy", *GAS_FROM, "--closed", "w"),
        "`--closed` is 'w', and 'w' is no axis",
    ),
    "types of another number": (
        lambda: save("types.npy", np.ones(4, int)),
        ("gas.npy", *GAS_FROM, "--types", "types.npy"),
        "`types` has shape (4,) for 5 particles",
    ),
    "broken types": (
        lambda: save("types.npy", np.array([1, 2, 1, 1, -1])),
        ("gas.npy", *GAS_FROM, "--types", "types.npy"),
        "`--types` holds -1",
    ),
    "mixed particle kinds": (
        mixed_types,
        (*FOUR, *GAS_FROM, "--types", "{file}:types"),
        "some files name the types of particles and others number them",
    ),
    "mixed dimensions": (
        mixed_dimensions,
        (*FOUR, *GAS_FROM[:4], "--kind", "particles", "--box", "{file}:box"),
        "positions of 2 or 3 coordinates, the same everywhere",
    ),
    "fractions that do not add": (
        None,
        ("x.npy", *FROM, "--split", "0.8,0.1,0.2"),
        "the fractions 0.8,0.1,0.2 add up to 1.1, not 1",
    ),
    "fractions that are none": (
        None,
        ("x.npy", *FROM, "--split", "most"),
        "`--split` is 'most'; give three fractions",
    ),
    "a fraction of zero": (
        None,
        ("x.npy", *FROM, "--split", "0.5,0.5,0"),
        "are not three positive ones",
    ),
    "a file for no split": (
        lambda: [np.savez(f"{k}.npz", x=WALK[k], y=RADII[k]) for k in range(4)],
        (
            *FOUR,
            "--observable",
            "{file}:y",
            "--interval",
            "1",
            "--train",
            "0*",
            "--valid",
            "1*",
            "--test",
            "2*",
        ),
        "3.npz matches none of --train '0*'",
    ),
    "a test set of one": (
        lambda: [np.savez(f"{k}.npz", x=WALK[k], y=RADII[k]) for k in range(4)],
        (
            *FOUR,
            "--observable",
            "{file}:y",
            "--interval",
            "1",
            "--train",
            "[01]*",
            "--valid",
            "2*",
            "--test",
            "3*",
        ),
        "the test split has 1 initial states, and needs 2",
    ),
    "too short for blocks": (
        lambda: save("a.npy", WALK[0]) or save("b.npy", RADII[0]),
        ("a.npy", "--observable", "b.npy", "--interval", "1"),
        "too short for 4 blocks",
    ),
    "empty selection": (
        lambda: write_xyz("a.xyz"),
        ("a.xyz", *MD, "--select", "name Fe"),
        "`--select` is 'name Fe', which selects none of the 3 atoms in a.xyz",
    ),
    "wrong selection": (
        lambda: write_xyz("a.xyz"),
        ("a.xyz", *MD, "--select", "atoms near me"),
        "`--select` is 'atoms near me', which is no selection of MDAnalysis",
    ),
    "missing topology": (
        lambda: write_xyz("a.xyz"),
        ("a.xyz", *MD, "--topology", "no.gro"),
        "`--topology` is no.gro, which does not exist",
    ),
    "missing types": (
        lambda: write_xyz("a.xyz"),
        ("a.xyz", *GAS_FROM[:4], "--box", "5,5,5", "--types", "charges"),
        "`--types` is 'charges'; of atoms give names, elements or types",
    ),
    "no pictures": (
        lambda: Path("film").mkdir(),
        ("film", *FROM),
        "film holds no pictures, PNG or TIFF",
    ),
    "pipe": (
        lambda: os.mkfifo("pipe.npy"),
        ("pipe.npy", *FROM),
        "pipe.npy is no regular file",
    ),
    "damaged archive": (
        lambda: damage("x.npz", lambda: np.savez("x.npz", x=WALK), 100),
        ("x.npz", *FROM),
        "x.npz cannot be read: it is damaged or cut off",
    ),
    "damaged dataset": (
        lambda: damage("x.h5", write_compressed, -100),
        ("x.h5", *FROM),
        "x.h5:/x",
        "cannot be read: it is damaged or cut off",
    ),
    "damaged snapshots": (
        lambda: Path("a.gsd").write_bytes(b"no snapshots"),
        ("a.gsd", *MD),
        "a.gsd cannot be read",
    ),
    "damaged picture": (
        lambda: write_cut_picture(),
        ("film", *FROM),
        "picture",
    ),
    "table that is no text": (
        lambda: Path("y.csv").write_bytes(b"\xff\xfe\x00a"),
        ("x.npy", "--observable", "y.csv", "--interval", 1),
        "y.csv is no table of numbers with commas",
    ),
    "folder that is not empty": (
        write_occupied,
        ("x.npy", *FROM, "--out", "."),
        "`out` is ., which holds files but no manifest.json",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_in_one_line(case, folder):
    prepare, arguments, *words = CASES[case]
    if any(str(argument).endswith((".xyz", ".gsd")) for argument in arguments):
        pytest.importorskip("MDAnalysis")
    if prepare is not None:
        prepare()
    before = sorted(path.name for path in folder.iterdir())
    out = () if "--out" in arguments else ("--out", "store")
    call("import", *arguments, *out).refused(*words)
    after = sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")
    assert after == before
