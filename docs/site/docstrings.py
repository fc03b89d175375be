"""Docstrings as the reference reads them: an example is a section, its lines are a console."""

import re

from griffe import Extension, Module, Object

__all__ = ["OneExample"]


class OneExample(Extension):
    """Lets "Example:" mean what "Examples:" does; otherwise its lines would run together."""

    def on_object(self, *, obj: Object, **rest: object) -> None:
        """Renames the section of an object that was just read."""
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)

    def on_package(self, *, pkg: Module, **rest: object) -> None:
        """Hides the constructor that all records share: it takes any keyword, and says nothing."""
        pkg["frozen.Frozen"].members.pop("__init__", None)
