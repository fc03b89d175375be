"""The order of files and arrays by name, numbers within a name by their value."""

import re

__all__ = ["natural_key"]


def natural_key(name: str) -> list[tuple[int, int | str]]:
    """A key to sort names by, as people would.

    Example:
        >>> sorted(["f10", "f9", "f1a"], key=natural_key)
        ['f1a', 'f9', 'f10']
    """
    parts = re.split(r"(\d+)", name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]
