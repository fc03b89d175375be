"""Pages with code as Jupyter notebooks, with the outputs of the build in them."""

import json
import re
from collections.abc import Sequence
from typing import Any

from blocks import Cell
from execution import Output

__all__ = ["write_notebook"]

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:)[^)\s]+\)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\((?![a-z]+:)[^)\s]+\)")
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)


def write_notebook(cells: Sequence[Cell], outputs: Sequence[Output]) -> str:
    """A notebook of a page.

    Links inside the repository become their words, since a notebook is read alone.

    Arguments:
        cells: Text and code of the page.
        outputs: What the blocks printed and drew, in their order.
    """
    rest = iter(outputs)
    written = []
    for number, cell in enumerate(cells):
        place = {"id": f"cell-{number}", "metadata": {}}
        if cell.block is None:
            text = _COMMENT.sub("", _IMAGE.sub(r"*\1*", _LINK.sub(r"\1", cell.text))).strip()
            if text:
                written.append({"cell_type": "markdown", **place, "source": _lines(text)})
            continue
        shell = "%%bash\n" if cell.block.kind == "sh" else ""
        written.append(
            {
                "cell_type": "code",
                **place,
                "execution_count": None,
                "source": _lines(shell + cell.block.text.rstrip()),
                "outputs": _show(next(rest)),
            }
        )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": written,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _show(output: Output) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    if output.text:
        stream = {"output_type": "stream", "name": "stdout", "text": _lines(output.text)}
        shown.append(stream)
    for figure in output.figures:
        data = {"image/png": figure, "text/plain": ["<Figure>"]}
        shown.append({"output_type": "display_data", "metadata": {}, "data": data})
    return shown


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
