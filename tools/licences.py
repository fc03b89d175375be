"""Writes the table of docs/licences.md: the licence of every dependency that pyproject.toml names.

    python tools/licences.py

The licences are those that the installed packages state. A package that is not installed keeps the
line that it has on the page, so that no machine needs all extras at once; one that has none is
refused.
"""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
LINE = re.compile(r"^\| ([\w.-]+) \| (.+) \| (.+) \|$", re.MULTILINE)

# What packages state in words, as SPDX writes it.
WORDS = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
}
# Packages whose metadata say nothing, or less than their licence file does.
FILES = {
    "deeptime": "LGPL-3.0",
    "h5netcdf": "BSD-3-Clause",
    "matplotlib": "Matplotlib (PSF-2.0)",
    "numba": "BSD-2-Clause",
    "scipy": "BSD-3-Clause",
    "scoringrules": "Apache-2.0",
}

HEAD = "| package | licence | asked for by |\n| --- | --- | --- |\n"


def read_dependencies() -> dict[str, list[str]]:
    """The groups that ask for each package, "core" or an extra, in the order of the names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {}
    for group, requirements in groups.items():
        for requirement in requirements:
            name = re.match(r"[\w.-]+", requirement)
            assert name is not None, requirement
            found.setdefault(name.group(), []).append(group)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def read_page() -> dict[str, tuple[str, str]]:
    """Licence and groups of each package on the page."""
    _, _, table = PAGE.read_text().partition(HEAD)
    return {name: (licence, groups) for name, licence, groups in LINE.findall(table)}


def find_licence(package: str) -> str | None:
    """The licence that an installed package states; None where it is not installed."""
    try:
        told = metadata(package)
    except PackageNotFoundError:
        return None
    if package in FILES:
        return FILES[package]
    if expression := told.get("License-Expression"):
        return expression
    if re.fullmatch(r"[A-Z][\w.-]{2,20}", told.get("License") or ""):
        return told["License"]
    stated = [each.split(" :: ")[-1] for each in told.get_all("Classifier") or []]
    known = [WORDS[each] for each in stated if each in WORDS]
    if len(known) != 1:
        raise SystemExit(f"{package} states no licence that WORDS knows: {stated}; see its files")
    return known[0]


def main() -> None:
    """Writes the table; the words above it stay."""
    former, lines = read_page(), []
    for name, groups in read_dependencies().items():
        licence = find_licence(name) or former.get(name, ("", ""))[0]
        if not licence:
            sys.exit(f"{name} is not installed and has no line yet; install it and call again")
        lines.append(f"| {name} | {licence} | {', '.join(groups)} |")
    before = PAGE.read_text().partition(HEAD)[0]
    PAGE.write_text(before + HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
