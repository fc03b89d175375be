"""What comes from outside of the package: registered in Python, or installed as a plug-in.

A registry is a plain dictionary. A name that it does not have is looked for among the entry points
of a group, such as `tampl.encoders`, so that an installed plug-in is known to recipes and to the
command line without an import.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BeforeValidator, SerializeAsAny

from .errors import InputError
from .frozen import Frozen

__all__ = ["find_entry", "known_names", "open_choice", "register_entry"]

Entry = TypeVar("Entry")


def register_entry(entries: dict[str, Entry], name: str, entry: Entry, *, what: str) -> None:
    """Adds an entry to a registry; refuses a name that is taken by another one."""
    if not name or name.strip() != name:
        raise InputError(f"`name` is {name!r}; give {what} a name without blanks around it")
    own = _own_names(entry)
    if own and name not in own:
        raise InputError(f"`name` is {name!r}; the {what} calls itself {own[0]!r}: give that name")
    if entries.get(name, entry) is not entry:
        raise InputError(f"`name` is {name!r}, which another {what} has; choose another name")
    entries[name] = entry


def find_entry(entries: dict[str, Entry], name: object, *, group: str, key: str) -> Entry:
    """The entry of a name, from the registry or from an installed plug-in.

    Arguments:
        entries: The registry.
        name: The name; a file may hold anything.
        group: The entry points to look among, such as `tampl.encoders`.
        key: What a message calls the name.
    """
    if isinstance(name, str) and name not in entries:
        _load_plugin(group, name, entries)
    if not isinstance(name, str) or name not in entries:
        raise InputError(
            f"`{key}` is {name!r}; choose one of {', '.join(known_names(entries, group))}"
        )
    return entries[name]


def known_names(entries: Mapping[str, object], group: str) -> list[str]:
    """Every name: those of the registry, then those of installed plug-ins."""
    return list(dict.fromkeys([*entries, *_find_installed(group)]))


def open_choice(entries: dict[str, Any], *, group: str, base: Any = Frozen) -> Any:  # noqa: ANN401
    """A field that takes any specification of a registry: a record, or a table with its `name`.

    Arguments:
        entries: Classes of specifications by name.
        group: Entry points of further ones.
        base: What all of them are.
    """

    def choose(value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        if "name" not in value:
            raise InputError("`name` is missing")
        return find_entry(entries, value["name"], group=group, key="name").model_validate(value)

    return Annotated[base, SerializeAsAny(), BeforeValidator(choose)]


def _own_names(entry: object) -> tuple[str, ...]:
    """The names that plain data accept for themselves, in their field `name` or `kind`."""
    fields = getattr(entry, "model_fields", {}) if isinstance(entry, type) else {}
    field = fields.get("kind") or fields.get("name")
    return tuple(name for name in get_args(getattr(field, "annotation", None)) if name)


@cache
def _find_installed(group: str) -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=group)}


def _load_plugin(group: str, name: str, entries: dict[str, Any]) -> None:
    point = _find_installed(group).get(name)
    if point is None:
        return
    try:
        entries[name] = point.load()
    except Exception as error:  # whatever somebody else's code raises
        raise InputError(
            f"the plug-in {name!r} of {group} could not be loaded ({type(error).__name__}: "
            f"{error}): correct or uninstall the package that brings it"
        ) from error
