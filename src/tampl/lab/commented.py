"""A recipe as TOML with a comment for every setting, to be edited.

The comments are the documentation of the records themselves, the `Attributes` (or `Arguments`) of
their docstrings, so that a comment says what the code does.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

import tomli_w
from pydantic import BaseModel

from .recipes import Recipe

__all__ = ["write_commented"]

_WIDTH = 96

_OWN = (
    "Data of one's own, which nothing simulates: give the folder of the store by --data. There "
    "is no section [data] therefore."
)


def write_commented(recipe: Recipe) -> str:
    """The resolved recipe, defaults included, with comments; it reads back as the same recipe."""
    sections: dict[str, BaseModel | None] = {
        "system": recipe.system,
        "data": recipe.data,
        "model": recipe.model,
        "training": recipe.training,
    }
    tables = recipe.as_tables()
    lines = [
        f"# A recipe for {recipe.name}, with all settings and their defaults.",
        "#",
        "#     tampl train THIS_FILE --data STORE --out RUN --method tampl+",
        "#     tampl compare THIS_FILE --data STORE --out FOLDER --methods tampl+,tampl,vamp",
    ]
    for name, record in sections.items():
        if name in tables:
            lines += ["", *_write_section(name, record, tables[name])]
    lines += ["", *_comment("Settings of the methods, each of which `--method` may name.")]
    for name in recipe.methods:
        key = name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
        lines += [
            "",
            *_write_section(f"methods.{key}", recipe.method(name), tables["methods"][name]),
        ]
    if recipe.chosen:
        lines += ["", *_comment("What was chosen for one method, in place of the values above.")]
        lines += [tomli_w.dumps({"chosen": tables["chosen"]}).rstrip()]
    return "\n".join(lines) + "\n"


def _write_section(path: str, record: BaseModel | None, table: Mapping[str, Any]) -> Iterator[str]:
    """A table: its summary, its values with their comments, then the tables in it."""
    yield from _comment(_OWN if record is None else _read_summary(record))
    yield f"[{path}]"
    comments = {} if record is None else _read_comments(record)
    table = table if record is None else _complete(record, table)
    inner = {key: getattr(record, key, None) for key in table}
    plain = [key for key, part in inner.items() if not isinstance(part, BaseModel)]
    for key in plain:
        yield from _comment(comments.get(key, ""))
        yield _write_value(key, table[key])
    # TOML has no word for None, so what is off by default stands there as a comment.
    for key in [] if record is None else type(record).model_fields:
        if getattr(record, key) is None and key in comments and key not in inner:
            yield from _comment(comments[key])
            yield f"# {key} ="
    for key, part in inner.items():
        if key not in plain:
            yield ""
            yield from _write_section(f"{path}.{key}", part, table[key])


def _complete(record: BaseModel, table: Mapping[str, Any]) -> dict[str, Any]:
    """A table with the plain settings that are left out of recipes where they are the usual."""
    usual = {key: getattr(record, key) for key in type(record).model_fields if key not in table}
    plain = {key: value for key, value in usual.items() if isinstance(value, str | int | float)}
    places = {key: place for place, key in enumerate(type(record).model_fields)}
    return dict(sorted({**table, **plain}.items(), key=lambda item: places.get(item[0], -1)))


def _write_value(key: str, value: object) -> str:
    """A setting in one line; TOML's writer gives each number of a list a line."""
    lines = tomli_w.dumps({key: value}).split("\n")
    return " ".join(line.strip() for line in lines).strip().replace("[ ", "[").replace(", ]", "]")


def _comment(text: str) -> Iterator[str]:
    for line in wrap(text, _WIDTH):
        yield f"# {line}"


def _read_summary(record: BaseModel) -> str:
    return (inspect.getdoc(type(record)) or "").partition("\n\n")[0].replace("\n", " ")


def _read_comments(record: BaseModel) -> dict[str, str]:
    """What the docstrings of a record's class, and of those it is derived from, say of fields."""
    found: dict[str, str] = {}
    for owner in reversed(type(record).__mro__):
        text = inspect.cleandoc(owner.__doc__ or "")
        for block in re.findall(r"^(?:Attributes|Arguments):\n((?:[ ]+.*\n?|\n)+)", text, re.M):
            for key, comment in re.findall(r"^    (\w+): ((?:.+\n?)(?:^ {8}.*\n?)*)", block, re.M):
                found[key] = " ".join(comment.split())
    return found
