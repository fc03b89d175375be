"""Equations as MathML, which browsers draw without any script, and the font that they need."""

import re
import shutil
from html import unescape
from pathlib import Path

import ziamath
from latex2mathml.converter import convert

__all__ = ["copy_font", "to_mathml"]

_SPAN = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
_FONT = Path(ziamath.__file__).with_name("fonts") / "STIXTwoMath-Regular.ttf"
# The converter knows sizes by name only before brackets that are single characters.
_SIZED = {r"\Big\langle": r"\left\langle", r"\Big\rangle": r"\right\rangle"}


def to_mathml(html: str) -> str:
    """A page with MathML in the place of every formula that Markdown marked."""
    return _SPAN.sub(_convert, html)


def _convert(match: re.Match[str]) -> str:
    display = "block" if match[1] == "div" else "inline"
    latex = unescape(match[2]).strip()
    latex = latex.removeprefix(r"\[").removesuffix(r"\]")
    latex = latex.removeprefix(r"\(").removesuffix(r"\)")
    for name, known in _SIZED.items():
        latex = latex.replace(name, known)
    made = convert(latex, display=display)
    if left := re.search(r"\\[A-Za-z]+", re.sub(r"&#x\w+;", "", made)):
        raise ValueError(f"{left[0]} of the formula {latex!r} has no counterpart in MathML")
    return f'<div class="formula">{made}</div>' if display == "block" else made


def copy_font(folder: Path) -> None:
    """Puts the font of the equations into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(_FONT, folder / _FONT.name)
