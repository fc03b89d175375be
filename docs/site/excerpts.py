"""Pieces of the package's source for pages: the code beside the equation.

A comment `<!-- code: tampl.flow.interpolate -->` in a page stands for the definition of that name
without its docstring. A git host does not show it; the site shows the code.
"""

import ast
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["MARK", "Excerpt", "read_excerpt", "show_excerpts"]

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"^<!-- code: ([\w. ]+) -->$", re.MULTILINE)
_SHORT = 18


@dataclass(frozen=True)
class Excerpt:
    """A definition, its name inside its module, and its file relative to the repository."""

    name: str
    file: str
    code: str


def read_excerpt(dotted: str) -> Excerpt:
    """Finds a function, class or method by its full name, such as tampl.flow.interpolate."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        path = ROOT.joinpath("src", *parts[:length]).with_suffix(".py")
        if path.is_file():
            break
    else:
        raise ValueError(f"no module of {dotted} under src/")
    text, tree = _parse(path)
    body: list[ast.stmt] = tree.body
    node: ast.stmt | None = None
    for part in parts[length:]:
        node = next((n for n in body if getattr(n, "name", None) == part), None)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            raise ValueError(f"{dotted} is not defined in {path.name}")
        body = node.body
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    code = _cut(text.splitlines(), node)
    file = path.relative_to(ROOT).as_posix()
    return Excerpt(".".join(parts[length:]), file, code)


def show_excerpts(page: str) -> str:
    """A page with boxes of code in the place of its marks; short ones are open."""
    return MARK.sub(lambda match: "\n\n".join(map(_box, match[1].split())), page)


def _box(dotted: str) -> str:
    excerpt = read_excerpt(dotted)
    sign = "???+" if excerpt.code.count("\n") < _SHORT else "???"
    file = excerpt.file.removeprefix("src/tampl/")
    fenced = textwrap.indent(f"```python\n{excerpt.code}\n```", "    ")
    return f'{sign} code "`{excerpt.name}` in `{file}`"\n\n{fenced}\n'


def _cut(lines: list[str], node: ast.FunctionDef | ast.ClassDef) -> str:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    kept = lines[first - 1 : node.end_lineno]
    if ast.get_docstring(node) is not None and len(node.body) > 1:
        start, stop = node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno
        after = stop + 1 if not lines[stop].strip() else stop
        kept = lines[first - 1 : start - 1] + lines[after : node.end_lineno]
    return textwrap.dedent("\n".join(kept)).rstrip()


@cache
def _parse(path: Path) -> tuple[str, ast.Module]:
    text = path.read_text(encoding="utf-8")
    return text, ast.parse(text)
