"""Builds the wheel and the source archive, and uses both as somebody who has nothing else.

    python tools/check_wheel.py [--out dist] [--demo]

Both are built from the files that git tracks, so that what lies about in the tree does not get
in, and their lists of files are compared with what belongs in. Then an empty virtual environment
gets the wheel, with the versions of constraints.txt, and an empty folder outside of the tree sees
an import, the help, and a short training on data of one's own; with `--demo` the whole demo too,
which takes minutes. The source archive is installed in place of the wheel, and imports and helps.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
# What the archives are made from.
ARCHIVED = (
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"),
    *("recipes", "src/tampl"),
)
MADE = ("PKG-INFO", "setup.cfg")
DESCRIPTION = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")

IMPORT = """\
import sys, tampl
assert tampl.__file__.startswith(sys.prefix), tampl.__file__
assert "torch" not in sys.modules and "matplotlib" not in sys.modules
print(tampl.__version__)
"""
DATA = """\
import numpy as np
rng = np.random.default_rng(0)
for run in range(40):
    x = np.cumsum(rng.normal(size=(11, 3)), axis=0).astype(np.float32)
    np.savez(f"run{run:02}.npz", x=x, y=x.sum(axis=1, keepdims=True))
"""
REST = """\
from importlib.resources import files
from tampl.systems.regimes import load_regimes
assert len(load_regimes()) == 3
assert (files("tampl") / "studio" / "page" / "index.html").is_file()
"""
OWN_DATA = (
    "import run*.npz:x --observable {file}:y --interval 0.5 --out store",
    "check store",
    "train --data store --out run --method tampl --epochs 1 --device cpu",
    "forecast run --initial store --horizon 5 --samples 4 --out ahead.npz --device cpu",
    "evaluate run --data store --device cpu",
    "report run --out page",
    "card run",
)


def list_package() -> set[str]:
    """The files of the package that git tracks, by their paths in a wheel."""
    tracked = _list_tracked("src/tampl", "recipes")
    return {
        f"tampl/{name}" if name.startswith("recipes/") else name.removeprefix("src/")
        for name in tracked
        if name != "src/tampl/recipes"  # a link to the folder
    }


def _list_tracked(*paths: str) -> list[str]:
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *paths]
    told = subprocess.run(git, capture_output=True, text=True, check=True).stdout
    return [name for name in told.split("\0") if name]


def build(out: Path, scratch: Path) -> tuple[Path, Path]:
    """Builds both archives in `out`; returns the paths of wheel and source archive."""
    tree = scratch / "tree"
    for name in _list_tracked(*ARCHIVED):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    python = _make_environment(scratch / "builder", "build")
    made = scratch / "made"
    _run([python, "-m", "build", "--outdir", str(made), str(tree)], scratch)  # wheel from archive
    wheel, archive = next(made.glob("*.whl")), next(made.glob("*.tar.gz"))
    out.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(wheel, out)), Path(shutil.copy(archive, out))


def check_contents(wheel: Path, archive: Path) -> None:
    """Compares the lists of files with what belongs in; ends with what is missing or too much."""
    package = list_package()
    with zipfile.ZipFile(wheel) as file:
        found = {name for name in file.namelist() if not name.endswith("/")}
    about = {name.partition("/")[0] for name in found if ".dist-info/" in name}.pop()
    wanted = {f"{about}/{name}" for name in (*DESCRIPTION, "top_level.txt")}
    _compare(wheel.name, found, package | wanted)
    with tarfile.open(archive) as file:
        names = [each.name.partition("/")[2] for each in file.getmembers() if not each.isdir()]
    found = {name for name in names if not name.startswith("src/tampl.egg-info/")}
    beside = {name for name in _list_tracked(*ARCHIVED) if "/" not in name}
    _compare(archive.name, found, {f"src/{name}" for name in package} | beside | set(MADE))


def _compare(archive: str, found: set[str], wanted: set[str]) -> None:
    if found != wanted:
        missing, extra = sorted(wanted - found), sorted(found - wanted)
        sys.exit(f"{archive}: missing {missing}, does not belong in {extra}")


def check_use(wheel: Path, archive: Path, scratch: Path, *, demo: bool) -> None:
    """Installs the wheel, then the archive, into an empty environment and calls the command."""
    torch = next(line for line in PINS.read_text().splitlines() if line.startswith("torch=="))
    python = _make_environment(scratch / "user", torch, str(wheel))
    tampl, empty = str(Path(python).with_name("tampl")), scratch / "empty"
    empty.mkdir()
    _run([python, "-c", IMPORT], empty)
    _run([python, "-c", REST], empty)
    for words in ("--help", "demo --help", "studio --help"):
        _run([tampl, *words.split()], empty, quiet=True)
    _run([python, "-c", DATA], empty)
    for words in OWN_DATA:
        _run([tampl, *words.split()], empty)
    if demo:
        _run([tampl, "demo"], empty)
    pip = [python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"]
    _run([*pip, str(archive)], scratch)
    _run([python, "-c", IMPORT], empty)
    _run([tampl, "--help"], empty, quiet=True)


def _make_environment(folder: Path, *requirements: str) -> str:
    """Makes a virtual environment with some requirements; returns its Python."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "-c", str(PINS), *requirements], folder)
    return python


def _run(words: Sequence[str], folder: Path, *, quiet: bool = False) -> None:
    """Runs a command without Python's variables, such as a path to this tree; says its time."""
    environment = {key: value for key, value in os.environ.items() if key[:6] != "PYTHON"}
    begun = time.perf_counter()
    done = subprocess.run(
        words, cwd=folder, env=environment, stdout=subprocess.DEVNULL if quiet else None
    )
    called = " ".join([Path(words[0]).name, *words[1:]]).partition("\n")[0]
    if done.returncode:
        sys.exit(f"failed with {done.returncode}: {called}")
    print(f"-- {time.perf_counter() - begun:.1f} s: {called}", file=sys.stderr)


def main() -> None:
    """Builds, compares, installs and calls."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for both archives")
    parser.add_argument("--demo", action="store_true", help="run the whole demo too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tampl-wheel-") as scratch:
        wheel, archive = build(options.out.resolve(), Path(scratch))
        check_contents(wheel, archive)
        check_use(wheel, archive, Path(scratch), demo=options.demo)
    print(f"{wheel.name} and {archive.name} hold what they need, and work")


if __name__ == "__main__":
    main()
