"""Work on all cores: compiled kernels and NumPy's loops release the interpreter lock."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["available_cores", "map_threads"]

Item = TypeVar("Item")


Result = TypeVar("Result")


def available_cores() -> int:
    """The cores this process may use, in a container or a batch job not all of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Applies `function` to all items, one thread per core, and keeps their order.

    Example:
        >>> map_threads(abs, [-1, 2, -3])
        [1, 2, 3]
    """
    items = list(items)
    if len(items) == 1:
        return [function(items[0])]
    with ThreadPoolExecutor(available_cores()) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
