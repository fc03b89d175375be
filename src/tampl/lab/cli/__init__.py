"""The command `tampl`: one verb per layer, each a thin wrapper over one public function.

Results go to standard output (`--json` for machines), progress to standard error. Exit code 0 is
done, 2 is wrong input with one line that says what to do, 1 is a bug of ours.

A verb imports what it needs when it is called, so that the command starts at once.
"""

from .entry import app, main

__all__ = ["app", "main"]
