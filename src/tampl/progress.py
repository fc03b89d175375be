"""Progress bars on standard error, so that standard output stays machine-readable."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["bar", "quiet", "say"]

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)

Advance = Callable[[str], None]


@contextmanager
def bar(description: str, total: int, *, visible: bool = True) -> Iterator[Advance]:
    """Shows a bar of `total` steps; each call of what it yields advances it by one.

    Arguments:
        description: What is being done.
        total: How many steps there are.
        visible: Whether to show it at all.

    Example:
        >>> with bar("counting", 2, visible=False) as advance:
        ...     advance("first")
        ...     advance("second")
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as progress:
        task = progress.add_task(description, total=total, note="")

        def advance(note: str) -> None:
            progress.update(task, advance=1, note=note)

        yield advance


def say(line: str) -> None:
    """Prints one line on standard error; a bar that is shown stays below it."""
    if not _QUIET.get():
        print(f"tampl: {line}", file=sys.stderr)


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps what is said within from being printed: of one of many trainings, for example."""
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)
