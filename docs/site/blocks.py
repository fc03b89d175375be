"""The code blocks of a page: Python that runs in order in one namespace, and shell commands.

A page is cut into *cells*, text and code in turns, from which both the page of the site and a
notebook are made. Only fenced blocks that begin with three backquotes and `python` or `sh` are
code; a Python block whose first line is a comment like `# mine.py` is also written to that file.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Block",
    "Cell",
    "find_blocks",
    "is_python",
    "read_indented",
    "replace_indented",
    "split_cells",
]

_FENCE = re.compile(r"^```(python|sh)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
_ANY_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)*^ {4}.*$", re.MULTILINE)
_LIST = re.compile(r"\s*(?:[-*] |\d+\. )")


@dataclass(frozen=True)
class Block:
    """A block of code, and the line of the page on which it starts."""

    kind: Literal["python", "sh"]
    text: str
    line: int


@dataclass(frozen=True)
class Cell:
    """A piece of text, or a block of code."""

    text: str
    block: Block | None = None


def split_cells(page: str) -> list[Cell]:
    """Cuts a page into text and code, nothing left out."""
    cells, end = [], 0
    for match in _FENCE.finditer(page):
        if match.start() > end:
            cells.append(Cell(page[end : match.start()]))
        line = page.count("\n", 0, match.start(2)) + 1
        kind: Literal["python", "sh"] = "python" if match[1] == "python" else "sh"
        cells.append(Cell(match[0], Block(kind, match[2], line)))
        end = match.end()
    return [*cells, Cell(page[end:])] if end < len(page) else cells


def find_blocks(page: str) -> list[Block]:
    """The blocks of code in the order of the page."""
    return [cell.block for cell in split_cells(page) if cell.block is not None]


def read_indented(page: str) -> list[str]:
    """The indented blocks of a page without their indentation; those in lists are text."""
    found: list[str] = []
    replace_indented(page, found.append)
    return found


def replace_indented(page: str, replacement: Callable[[str], str | None]) -> str:
    """A page with other text for some of its indented blocks.

    Arguments:
        page: The page.
        replacement: Takes a block without its indentation; None leaves it as it is.
    """
    pieces, end = [], 0
    for fence in [*_ANY_FENCE.finditer(page), None]:
        text = page[end : fence.start() if fence else len(page)]

        def replace(match: re.Match[str], text: str = text) -> str:
            above = text[: match.start()].rstrip("\n").rpartition("\n\n")[2]
            if _LIST.match(above):
                return match[0]
            code = "\n".join(line[4:] for line in match[0].split("\n")).strip("\n")
            other = replacement(code)
            return match[0] if other is None else other

        pieces += [_INDENTED.sub(replace, text), fence[0] if fence else ""]
        end = fence.end() if fence else end
    return "".join(pieces)


def is_python(code: str) -> bool:
    """Whether a block without a name of its language is Python: it parses, and imports or defines.

    Example:
        >>> is_python("import tampl"), is_python("tampl demo"), is_python("a = b")
        (True, False, False)
    """
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return False
    told = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    return any(isinstance(statement, told) for statement in body)
