"""Links from pages to files of the repository, which become pages of the site too.

Pages are written for readers of the repository: they link to `../examples/own_method.py` and name
files of the package such as `methods/tampl.py`. On the site each such file is a page in the folder
`source`, so that every link leads somewhere without a network.
"""

import posixpath
import re
from pathlib import Path

__all__ = ["find_files", "relink", "show_file", "to_uri"]

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FILE_AS_WORDS = re.compile(r"\[[\w/]+\.md\](?=\(([^)\s#]+)[^)\s]*\))")
_NAMED = re.compile(r"(?<![\[`])`((?:[\w.-]+/)*[\w.-]+\.(?:py|toml))`(?![\]`])")
_FENCED = re.compile(r"^(?: {4})?```.*?^(?: {4})?```$", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".cff": "yaml", ".js": "js"}


def to_uri(file: str) -> str:
    """The place of a file of the repository in the sources of the site.

    Example:
        >>> to_uri("docs/method.md"), to_uri("README.md"), to_uri("examples/minimal.py")
        ('method.md', 'source/README.md', 'source/examples/minimal.py.md')
    """
    if file.startswith("docs/") and not file.endswith(".py"):
        return file.removeprefix("docs/")
    return f"source/{file}" if file.endswith(".md") else f"source/{file}.md"


def find_files(page: str, text: str) -> set[str]:
    """The files outside of the site's pages that a page links to or names.

    Arguments:
        page: Path of the page in the repository.
        text: Its text.
    """
    found: set[str] = set()
    relink(page, text, found)
    return {file for file in found if to_uri(file).startswith("source/")}


def relink(page: str, text: str, found: set[str] | None = None) -> str:
    """A page of the repository with its links turned into links of the site.

    Arguments:
        page: Path of the page in the repository.
        text: Its text.
        found: Takes the files that it links to.
    """
    found = set() if found is None else found
    pieces, end = [], 0
    for fence in _FENCED.finditer(text):
        pieces += [_relink_prose(page, text[end : fence.start()], found), fence[0]]
        end = fence.end()
    return "".join([*pieces, _relink_prose(page, text[end:], found)])


def _relink_prose(page: str, prose: str, found: set[str]) -> str:
    here = posixpath.dirname(to_uri(page))

    def lead(file: str) -> str:
        found.add(file)
        return posixpath.relpath(to_uri(file), here or ".")

    def link(match: re.Match[str]) -> str:
        target, hash_sign, anchor = match[1].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if (ROOT / file).is_dir():
            file = posixpath.join(file, "README.md")
        return f"]({lead(file)}{hash_sign}{anchor})" if (ROOT / file).is_file() else match[0]

    def name(match: re.Match[str]) -> str:
        for file in (match[1], f"src/tampl/{match[1]}"):
            if (ROOT / file).is_file() and not file.startswith(("docs/", ".")):
                return f"[{match[0]}]({lead(file)})"
        return match[0]

    def entitle(match: re.Match[str]) -> str:
        file = ROOT / posixpath.normpath(posixpath.join(posixpath.dirname(page), match[1]))
        return f"[{_read_title(file)}]" if file.is_file() else match[0]

    prose = _FILE_AS_WORDS.sub(entitle, prose)
    # Headings stay as they are: their anchors are made of their words.
    lines = [
        line if line.startswith(("#", "    ")) else _NAMED.sub(name, line)
        for line in _LINK.sub(link, prose).split("\n")
    ]
    return "\n".join(lines)


def _read_title(page: Path) -> str:
    """The title of a page without its apposition: "The method", not ", in the code's words"."""
    heading = page.read_text(encoding="utf-8").partition("\n")[0]
    return heading.removeprefix("# ").partition(",")[0]


def show_file(file: str) -> str:
    """The page of a file of the repository: its text, or its code."""
    text = (ROOT / file).read_text(encoding="utf-8")
    head = "---\nsearch:\n  exclude: true\n---\n\n"
    if file.endswith(".md"):
        return head + text
    language = _LANGUAGES.get(Path(file).suffix, "text")
    opening = f"This page shows a file of the repository, `{Path(file).name}`, as it is."
    return f"{head}# {file}\n\n{opening}\n\n````{language}\n{text}\n````\n"
