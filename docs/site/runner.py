"""Runs the blocks of one page in this process and folder, and says what they printed and drew.

    python runner.py < blocks.json > outputs.json

Standard input holds `[{"kind": ..., "text": ..., "line": ...}, ...]`, standard output becomes
`[{"text": ..., "figures": [PNG in base64, ...]}, ...]`. As in a notebook, a last line that is an
expression is shown. The first error ends the run with a traceback in lines of the page.
"""

import ast
import base64
import contextlib
import io
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.figure import Figure

FILE_NAME = re.compile(r"# (\w+\.py)\n")
DPI = 160


def main() -> None:
    """Runs all blocks."""
    blocks, page = json.load(sys.stdin), sys.argv[1]
    warnings.showwarning = _show_warning
    sys.path.insert(0, str(Path.cwd()))
    namespace: dict[str, Any] = {"__name__": "__page__"}
    outputs = []
    for block in blocks:
        run = _run_shell if block["kind"] == "sh" else _run_python
        outputs.append(run(block, page, namespace))
    json.dump(outputs, sys.__stdout__)


def _run_shell(block: dict[str, Any], page: str, namespace: dict[str, Any]) -> dict[str, Any]:
    command = ["bash", "-euo", "pipefail", "-c", block["text"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{page}, line {block['line']}: exit code {done.returncode}\n{done.stderr}")
    return {"text": done.stdout, "figures": []}


def _run_python(block: dict[str, Any], page: str, namespace: dict[str, Any]) -> dict[str, Any]:
    if file := FILE_NAME.match(block["text"]):
        Path(file[1]).write_text(block["text"])
    # Empty lines above the code, so that a traceback has the line numbers of the page.
    tree = ast.parse("\n" * (block["line"] - 1) + block["text"], page)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    figures: list[Figure] = []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, page, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), page, "eval"), namespace)
            if isinstance(value, Figure):
                figures.append(value)
            elif value is not None:
                print(repr(value))
    figures += [f for f in map(pyplot.figure, pyplot.get_fignums()) if f not in figures]
    drawn = [_encode(figure) for figure in figures]
    pyplot.close("all")
    return {"text": printed.getvalue(), "figures": drawn}


def _encode(figure: Figure) -> str:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DPI, bbox_inches="tight", facecolor="white")
    return base64.b64encode(stream.getvalue()).decode()


def _show_warning(message: Warning | str, category: type[Warning], *rest: object) -> None:
    # What the library has to say belongs to the page; what its dependencies say does not.
    if category.__module__.startswith("tampl"):
        print(f"{category.__name__}: {message}")


if __name__ == "__main__":
    main()
