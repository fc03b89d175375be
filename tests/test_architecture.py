"""Imports go down the layers and never round in a circle; every module has a preface."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tampl

ROOT = Path(tampl.__file__).parent
LEAVES = (
    *("errors", "records", "version"),
    *("seeding", "microstates", "progress", "provenance", "atomic"),
    *("nn", "flow", "theory"),
)
# What every leaf may use: errors, the base of records and the version, which hold nothing else.
COMMON = ("errors", "records", "version")
LAYERS = (
    LEAVES,
    ("systems",),
    ("data",),
    ("models",),
    ("methods",),
    ("forecast",),
    ("evaluate",),
    ("report",),
    ("config",),
    ("pipeline",),
    ("campaigns", "profile"),
    ("cli",),
)
HEIGHTS = {name: height for height, names in enumerate(LAYERS) for name in names}


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


def layer(module):
    """The first name below the package; the package's own file counts as a common leaf."""
    return module.split(".")[1] if "." in module else "version"


def violations(graph):
    for module, targets in graph.items():
        for target in targets:
            here, there = layer(module), layer(target)
            if here == there:
                continue
            forbidden = there not in COMMON if here in LEAVES else HEIGHTS[there] > HEIGHTS[here]
            if forbidden:
                yield f"{module} imports {target}"


def test_every_module_has_a_place_in_the_order():
    assert {layer(module) for module in modules(ROOT)} <= HEIGHTS.keys()


def test_no_import_goes_up():
    assert sorted(violations(edges(ROOT))) == []


def test_no_import_goes_round():
    try:
        TopologicalSorter(edges(ROOT)).prepare()
    except CycleError as error:
        pytest.fail(f"cycle: {' <- '.join(error.args[1])}")


def test_every_module_has_a_docstring():
    bare = [name for name, (_, tree) in modules(ROOT).items() if not ast.get_docstring(tree)]
    assert bare == []


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
        "from ..config import read",
        "from .. import config",
        "from tampl import config",
        "import tampl.config",
        "def f():\n    from ..config import read",
        "if TYPE_CHECKING:\n    from .. import config",
    ],
)
def test_the_walk_sees_every_way_to_import(package, source):
    graph = package(__init__="", config="", data__in____init__="", data__in__store=source)
    assert graph["tampl.data.store"] == {"tampl.config"}
    assert list(violations(graph)) == ["tampl.data.store imports tampl.config"]


def test_the_walk_sees_leaves_that_lean_on_leaves_and_cycles(package):
    graph = package(__init__="", errors="", seeding="from . import errors", atomic="import os")
    assert list(violations(graph)) == []
    graph = package(atomic="from .seeding import stream", errors="from .atomic import replacing")
    assert sorted(violations(graph)) == [
        "tampl.atomic imports tampl.seeding",
        "tampl.errors imports tampl.atomic",
    ]
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()
