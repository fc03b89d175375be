"""Packages that only some formats need, with one line where one is missing."""

from importlib import import_module
from types import ModuleType

from ...errors import InputError

__all__ = ["load_extra"]


def load_extra(extra: str, *modules: str) -> ModuleType:
    """The first of some modules, all of which an extra of the package brings.

    Arguments:
        extra: Name of the extra.
        modules: Names of the modules.
    """
    for name in modules:
        try:
            import_module(name)
        except ImportError as error:
            raise InputError(
                f"this format needs {name.partition('.')[0]}: run `pip install 'tampl[{extra}]'`"
            ) from error
    return import_module(modules[0])
