"""Equations as MathML, which browsers draw without any script, and the font that they need."""

import re
import shutil
from html import unescape
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path

from latex2mathml.converter import convert

__all__ = ["copy_font", "to_mathml"]

_SPAN = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
# The converter knows sizes by name only before brackets that are single characters.
_ALPHABET = re.compile(r"\\(mathcal|mathbb|mathbf)\s+([A-Za-z])")
_UPRIGHT = re.compile(r'(?:<mi mathvariant="normal">[A-Za-z]</mi>){2,}')
_NORM = re.compile(r"<mo>&#x02016;</mo>")
# What the converter takes for identifiers, or leaves without the space of an operator.
_OPERATORS = {
    "<mi>&#x0007E;</mi>": "<mo>&#x0223C;</mo>",
    "<mi>&#x000B1;</mi>": "<mo>&#x000B1;</mo>",
    "<mi>;</mi>": '<mo separator="true">;</mo>',
    "<mi>&#x027E8;</mi>": '<mo form="prefix" stretchy="false">&#x027E8;</mo>',
    "<mi>&#x027E9;</mi>": '<mo form="postfix" stretchy="false">&#x027E9;</mo>',
    '<mo stretchy="false">&#x0007C;</mo>': '<mo lspace="0" rspace="0" stretchy="false">|</mo>',
}
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
    # With braces the converter writes the letters of other alphabets themselves, which browsers
    # show; without, it asks for them by an attribute that MathML Core does not have.
    latex = _ALPHABET.sub(r"\\\1{\2}", latex)
    made = _UPRIGHT.sub(_join_letters, convert(latex, display=display))
    for found, meant in _OPERATORS.items():
        made = made.replace(found, meant)
    sides = cycle(("prefix", "postfix"))  # norms do not nest here
    made = _NORM.sub(lambda _: f'<mo form="{next(sides)}" stretchy="false">&#x02016;</mo>', made)
    if left := re.search(r"\\[A-Za-z]+", re.sub(r"&#x\w+;", "", made)):
        raise ValueError(f"{left[0]} of the formula {latex!r} has no counterpart in MathML")
    return f'<div class="formula">{made}</div>' if display == "block" else made


def _join_letters(match: re.Match[str]) -> str:
    return f"<mi>{''.join(re.findall(r'>([A-Za-z])<', match[0]))}</mi>"


def copy_font(folder: Path) -> None:
    """Puts the font of the equations, which the package ziamath brings, into a folder."""
    package = find_spec("ziamath")
    assert package is not None and package.origin is not None, "ziamath is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    name = "STIXTwoMath-Regular.ttf"
    shutil.copy(Path(package.origin).with_name("fonts") / name, folder / name)
