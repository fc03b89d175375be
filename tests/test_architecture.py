"""Imports go down the rooms and never round in a circle; the middle opens no file."""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tampl

ROOT = Path(tampl.__file__).parent
LEAVES = (
    *("errors", "frozen", "plugins", "version"),
    *("files", "memory", "progress", "seeding", "threads"),
    *("calibration", "nn", "flow", "theory"),
)
# What every leaf may use, because these hold nothing else.
COMMON = ("errors", "frozen", "plugins", "version")
LAYERS = (
    LEAVES,
    ("microstates",),
    ("description", "forecast"),
    ("observables",),
    ("system",),
    ("data", "systems"),
    ("models",),
    ("training",),
    ("methods",),
    ("evaluation",),
    ("advice",),
    ("lab", "studio"),
    ("__main__",),
)
HEIGHTS = {name: height for height, names in enumerate(LAYERS) for name in names}
# Simulators are a choice of the laboratory and the studio: nothing else of the package knows them.
LAB_ONLY = ("systems", "theory")
OUTSIDE = ("lab", "studio")
# The studio shows runs of the laboratory; of the laboratory the command line alone opens it.
OPENS_THE_STUDIO = "tampl.lab.cli."
MIDDLE = ("data.dataset", "models", "training", "methods", "evaluation", "advice")
# Modules of the middle whose only matter is to write or read one file.
FILES_OF_THE_MIDDLE = ("models.check", "models.checkpoint", "models.pretrained")


def modules(root):
    """The modules of a package by dotted name, parsed."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = (path, ast.parse(path.read_text(encoding="utf-8")))
    return found


def imports(name, path, tree):
    """Every dotted name a module may import, wherever in the module the statement stands."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def edges(root):
    """The modules of the same package that each module imports."""
    found = modules(root)

    def resolve(target):
        # `from a.b import c` imports the module a.b.c where there is one, a.b otherwise.
        return target if target in found else target.rpartition(".")[0]

    return {
        name: {resolve(target) for target in imports(name, path, tree)} & found.keys() - {name}
        for name, (path, tree) in found.items()
    }


def room(module):
    """The first name below the package."""
    return module.split(".")[1]


def violations(graph):
    for module, targets in graph.items():
        # The package's own file names what users want from all rooms, and loads it when used.
        for target in targets if "." in module else ():
            here, there = room(module), room(target) if "." in target else "version"
            if here == there:
                continue
            upward = there not in COMMON if here in LEAVES else HEIGHTS[there] >= HEIGHTS[here]
            if (here, there) == ("studio", "lab") or module.startswith(OPENS_THE_STUDIO):
                upward = False
            if upward or (there in LAB_ONLY and here not in OUTSIDE):
                yield f"{module} imports {target}"


def test_every_module_has_a_place_in_the_order():
    assert {room(module) for module in modules(ROOT) if "." in module} <= HEIGHTS.keys()


def test_no_import_goes_up():
    assert sorted(violations(edges(ROOT))) == []


def test_no_import_goes_round():
    graph = {name: targets for name, targets in edges(ROOT).items() if name != "tampl"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"cycle: {' <- '.join(error.args[1])}")


def test_every_module_has_a_docstring():
    bare = [name for name, (_, tree) in modules(ROOT).items() if not ast.get_docstring(tree)]
    assert bare == []


def test_no_two_public_classes_have_one_name():
    homes = defaultdict(list)
    for name, (_, tree) in modules(ROOT).items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def opens_files(tree):
    """The functions that name a path or open a file; `save` and `load` may."""
    words = {"open", "Path", "replacing", "claimed", "read_text", "read_bytes", "write_text"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.name.strip("_").startswith(
            ("save", "load")
        ):
            continue
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        names |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        if names & words:
            yield node.name


def test_the_middle_opens_no_file():
    for name, (_, tree) in modules(ROOT).items():
        inside = name.removeprefix("tampl.")
        if inside.startswith(MIDDLE) and inside not in FILES_OF_THE_MIDDLE:
            assert list(opens_files(tree)) == [], name


@pytest.fixture
def package(tmp_path):
    """Writes a package of given sources and returns its graph of imports."""

    def write(**sources):
        for name, source in sources.items():
            path = tmp_path / "tampl" / (name.replace("__in__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return edges(tmp_path / "tampl")

    return write


@pytest.mark.parametrize(
    "source",
    [
        "from ..lab import read",
        "from .. import lab",
        "from tampl import lab",
        "import tampl.lab",
        "def f():\n    from ..lab import read",
        "if TYPE_CHECKING:\n    from .. import lab",
    ],
)
def test_the_walk_sees_every_way_to_import(package, source):
    graph = package(__init__="", lab="", data__in____init__="", data__in__store=source)
    assert graph["tampl.data.store"] == {"tampl.lab"}
    assert list(violations(graph)) == ["tampl.data.store imports tampl.lab"]


def test_the_walk_sees_leaves_that_lean_on_leaves_and_cycles(package):
    graph = package(__init__="", errors="", seeding="from . import errors", files="import os")
    assert list(violations(graph)) == []
    graph = package(files="from .seeding import stream", errors="from .files import replacing")
    assert sorted(violations(graph)) == [
        "tampl.errors imports tampl.files",
        "tampl.files imports tampl.seeding",
    ]
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


def test_the_walk_sees_who_opens_the_studio(package):
    cli, verb = "lab__in__cli__in__verbs", "from ...studio import serve"
    graph = package(__init__="", studio="from .lab import runs", lab__in__runs="", **{cli: verb})
    assert list(violations(graph)) == []
    graph = package(lab__in__runs="from ..studio import serve")
    assert "tampl.lab.runs imports tampl.studio" in violations(graph)


def test_the_walk_sees_simulators_and_files_where_they_do_not_belong(package):
    graph = package(__init__="", systems="", models="from .systems import SIRS")
    assert list(violations(graph)) == ["tampl.models imports tampl.systems"]
    tree = ast.parse("def fit(path):\n    Path(path).read_text()\ndef save(path):\n    open(path)")
    assert list(opens_files(tree)) == ["fit"]
