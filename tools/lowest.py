"""Tries the lower bounds of pyproject.toml: installs exactly them, and runs the tests of the core.

    python tools/lowest.py --write     lowest.txt, from the bounds and what was installed last
    python tools/lowest.py             installs it in build/lowest and tests
    python tools/lowest.py --json results/lowest_versions.json     and keeps the record

`lowest.txt` beside this script holds every dependency of pyproject.toml, of all extras, at its
lower bound, and what these depend on at the version that was tried with them. torch is the one
exception: it is tried at the version of constraints.txt only, since its builds are gigabytes.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
import venv
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("lowest.txt")
FOLDER = ROOT / "build" / "lowest"
PYTHON = FOLDER / "bin" / "python"
KEPT = ("torch",)
"""Packages that are not tried at their lower bound."""

CORE = ("data", "evaluation", "flow", "lab", "methods", "microstates", "models", "nn")
CORE += ("observables", "training")
# What packages of today say of the functions that older ones call is no fault of either.
PYTEST = ("-q", "-n", "2", "--dist", "loadfile", "-W", "ignore::DeprecationWarning")


def read_bounds() -> dict[str, str]:
    """The lower bound of every dependency of pyproject.toml; each has one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = {}
    for group in (project["dependencies"], *project["optional-dependencies"].values()):
        for requirement in group:
            name, version = requirement.split(">=")
            if found.setdefault(name, version) != version:
                sys.exit(f"{name} has two lower bounds, {found[name]} and {version}")
    return found


def read_pins(path: Path) -> dict[str, str]:
    """The versions in a file of constraints, by the packages' names in lower case."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return {plain(name): version for name, version in (x.split("==") for x in lines if x)}


def plain(name: str) -> str:
    """A package's name in the form in which two spellings of it are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write_list() -> None:
    """Writes the list: bounds, and beside them the versions that were installed last."""
    freeze = [str(PYTHON), "-m", "pip", "list", "--format", "json", "--exclude", "tampl"]
    told = json.loads(_ask(*freeze)) if PYTHON.exists() else []
    pins = {plain(each["name"]): each["version"].partition("+")[0] for each in told}
    pins |= {plain(name): version for name, version in read_bounds().items()}
    constraints = read_pins(ROOT / "constraints.txt")
    pins |= {name: constraints[name] for name in KEPT}
    leave = ("pip", "setuptools")
    lines = [f"{name}=={pins[name]}\n" for name in sorted(pins) if name not in leave]
    LIST.write_text("".join(lines))


def install() -> None:
    """Makes build/lowest anew, with torch first, so that its version is settled."""
    venv.create(FOLDER, clear=True, with_pip=True)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package = f"{ROOT}[{','.join(extras['optional-dependencies'])}]"
    for words in (["torch"], ["-e", package]):
        subprocess.run([*pip, "-c", str(LIST), *words], cwd=ROOT, check=True)
    subprocess.run([str(PYTHON), "-m", "pip", "check"], check=True)


def run_tests() -> dict[str, int]:
    """Runs the tests of the core; returns how many passed and were skipped, or ends."""
    report = FOLDER / "tests.xml"
    words = [str(PYTHON), "-m", "pytest", *PYTEST, f"--junitxml={report}"]
    code = subprocess.run([*words, *(f"tests/{name}" for name in CORE)], cwd=ROOT).returncode
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    count = {key: int(suite.get(key, 0)) for key in ("tests", "skipped", "failures", "errors")}
    if code:
        sys.exit(f"with the lower bounds tests fail: {count}")
    return {"passed": count["tests"] - count["skipped"], "skipped": count["skipped"]}


def describe(tests: dict[str, int], command: list[str]) -> dict[str, object]:
    """The record of a run."""
    program = f"import json, sys; sys.argv = {command}\n"
    program += "from tampl.lab.provenance import provenance; print(json.dumps(provenance()))"
    told = json.loads(_ask(str(PYTHON), "-m", "pip", "list", "--format", "json"))
    installed = {plain(each["name"]): each["version"] for each in told}
    return {
        "versions": {name: installed[plain(name)] for name in read_bounds()},
        "kept": list(KEPT),
        "tests": {"folders": [f"tests/{name}" for name in CORE], **tests},
        "date": date.today().isoformat(),
        "provenance": json.loads(_ask(str(PYTHON), "-c", program)),
    }


def _ask(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Writes the list, or tries it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write lowest.txt and do no more")
    parser.add_argument("--json", type=Path, help="where to keep the record")
    parser.add_argument("--installed", action="store_true", help="take build/lowest as it is")
    options = parser.parse_args()
    if options.write:
        write_list()
        return
    if not options.installed:
        install()
    record = describe(run_tests(), ["tools/lowest.py", *sys.argv[1:]])
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
