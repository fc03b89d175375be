"""The entry point of the command: its verbs, and one line and an exit code for an error.

A training step on the CPU allocates and frees the same tens of megabytes again and again. The C
library by default gives such blocks back to the system, which then clears their pages anew for
every step: a third of the time of an encoder's forward and backward pass on two cores. The command
therefore asks the C library to keep freed memory.
"""

import ctypes
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from ...errors import ForecastWarning, InputError
from ...progress import say
from ...version import __version__
from . import linear, looks, verbs

__all__ = ["app", "keep_freed_memory", "main"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGEST_BLOCK = 1 << 30, 32 << 20  # the second is the largest that glibc takes


def keep_freed_memory() -> None:
    """Lets the C library keep up to 1 GB of freed memory; does nothing where it is not glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)


VERBS: Mapping[str, Callable[..., None]] = {
    "demo": verbs.demo,
    "simulate": verbs.simulate,
    "import": verbs.import_data,
    "check": verbs.check,
    "recipe": verbs.recipe,
    "advise": looks.advise,
    "train": verbs.train,
    "card": looks.card,
    "forecast": verbs.forecast,
    "evaluate": verbs.evaluate,
    "report": verbs.report,
    "record": verbs.record,
    "results": verbs.results,
    "compare": verbs.compare,
    "sweep": verbs.sweep,
    "studio": verbs.studio,
}
"""In the order of `--help`."""

SHARED = ("train", "compare", "sweep")
"""Verbs that several processes of torchrun carry out together."""

# typer may carry its own copy of click; its public exception leads to the base in either case.
UsageError: Any = typer.BadParameter.__base__

# Some versions of typer turn Ctrl-C into this exit code, others raise.
INTERRUPTED = 130

_TOO_LARGE = "this needs more memory than there is; ask for less, or use a larger machine"

app = typer.Typer(
    help="Forecast macroscopic observables of many-body systems from one microscopic state.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(linear.app, name="linear")
for name, verb in VERBS.items():
    app.command(name, cls=verbs.ListingCommand)(verb)


def main() -> None:
    """Runs the command line and turns wrong input into one line and exit code 2."""
    keep_freed_memory()
    # What stops a batch job is to save first, as Ctrl-C does.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    shown = warnings.showwarning
    warnings.showwarning = partial(_show_warning, shown)
    try:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal may lack the ² of MMD²
        _refuse_ranks(sys.argv[1:])
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except InputError as error:
        _fail(str(error))
    except UsageError as error:
        _fail(f"{error.format_message().rstrip('.')} (see `{_name_help(error)}`)")
    except OSError as error:
        known = error.filename is not None and error.strerror is not None
        said = f"{error.filename}: {error.strerror}" if known else error
        _fail(f"{said}; see that the path is right and the disk has room")
    except MemoryError:
        _fail(_TOO_LARGE)
    except RuntimeError as error:  # so torch says that there is not enough memory
        if not any(words in str(error) for words in ("allocate memory", "out of memory")):
            raise
        _fail(_TOO_LARGE)
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(error.__cause__, EOFError):
            _fail("a file ends too early; restore it, or make it again")
        message = "interrupted; the same command resumes from the last checkpoint"
        _fail(message, code=INTERRUPTED)
    finally:
        warnings.showwarning = shown
        signal.signal(signal.SIGTERM, before)


def _name_help(error: Any) -> str:  # noqa: ANN401
    """The command whose help explains a wrong call, such as "tampl train --help"."""
    verbs, context = [], error.ctx
    while context is not None and context.parent is not None:
        verbs.append(context.info_name)
        context = context.parent
    return " ".join(["tampl", *reversed(verbs), "--help"])


def _show_warning(
    shown: Callable[..., None],
    message: Warning | str,
    *arguments: Any,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> None:
    """One line for a warning of a forecast; others as Python shows them."""
    if isinstance(message, ForecastWarning):
        say(f"warning: {message}")
    else:
        shown(message, *arguments, **options)


def _has_peers() -> bool:
    """Whether torchrun has started several processes; torch itself need not be loaded to know."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def _refuse_ranks(words: Sequence[str]) -> None:
    """Refuses several processes for a verb that is the work of one."""
    verb = next((word for word in words if not word.startswith("-")), "")
    if _has_peers() and verb and verb not in SHARED:
        raise InputError(
            f"torchrun has started several processes, which {', '.join(SHARED)} share; start "
            f"`tampl {verb}` without torchrun"
        )


def _fail(message: str, code: int = 2) -> None:
    # What is wrong on any rank is said by the first.
    if not (_has_peers() and os.environ.get("RANK", "0") != "0"):
        print(f"tampl: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(__version__)
