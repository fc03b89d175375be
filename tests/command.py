"""The command line, called in this process."""

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO

import pytest

from tampl.lab.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    def refused(self, *words):
        """Exit code 2 and one line that holds all the words."""
        assert self.code == 2, self
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, lines
        assert "Traceback" not in lines[0]
        for word in words:
            assert str(word) in lines[0], (word, lines[0])


def call(*arguments):
    """Runs the command in this process."""
    out, err, argv = StringIO(), StringIO(), sys.argv
    sys.argv = ["tampl", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exit_:
            main()
    finally:
        sys.argv = argv
    # Progress also goes to standard error; what is said to the user starts with the name.
    said = [line for line in err.getvalue().splitlines() if line.startswith(("tampl:", "Trace"))]
    return Outcome(int(exit_.value.code or 0), out.getvalue(), "\n".join(said))
