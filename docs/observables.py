"""Writes the table of docs/observables.md from the registry: python docs/observables.py."""

from pathlib import Path
from typing import Any

from tampl.description import Observable
from tampl.microstates import KINDS, Chain, Image, Lattice, Microstate, Particles, Vector
from tampl.observables import OBSERVABLES, ObservableMap

PAGE = Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- table: python docs/observables.py -->", "<!-- end of table -->"

_EXAMPLES: dict[type[Microstate], Microstate] = {
    Lattice: Lattice(height=4, width=4, states=2),
    Particles: Particles(count=8, types=1, box=4.0),
    Image: Image(height=4, width=4),
    Vector: Vector(size=12),
    Chain: Chain(beads=4, height=5, width=9),
}


def make_table() -> str:
    """Every map: name, definition, kinds, settings, symbol and range."""
    heads = ("name and settings", "definition", "kinds", "symbol", "range")
    rows = [heads, ("---",) * len(heads), *(_describe(map_) for map_ in OBSERVABLES.values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def write_table() -> str:
    """The page with the present table."""
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{make_table()}{rest[rest.index(END) :]}"


def _describe(map_: type[ObservableMap]) -> tuple[str, ...]:
    name = map_.model_fields["name"].default
    settings = [
        f"`{key}={_write_default(field.default)}`"
        for key, field in map_.model_fields.items()
        if key not in ("name", "symbol")
    ]
    described = {
        key: map_.model_validate({}).describe(_EXAMPLES[kind])
        for key, kind in KINDS.items()
        if kind in map_.kinds
    }
    ranges: dict[str, list[str]] = {}
    for key, observables in described.items():
        ranges.setdefault(_write_range(observables[0]), []).append(key)
    known = next(iter(described.values()))
    return (
        f"`{name}`" + (f"<br>{' '.join(settings)}" if settings else ""),
        _define(map_),
        ", ".join(described),
        ", ".join(observable.symbol for observable in known),
        next(iter(ranges))
        if len(ranges) == 1
        else "; ".join(f"{range_} ({', '.join(keys)})" for range_, keys in ranges.items()),
    )


def _define(map_: type[ObservableMap]) -> str:
    """The docstring up to the attributes, on one line."""
    text = " ".join((map_.__doc__ or "").partition("Attributes:")[0].split())
    return text.replace("<", "&lt;").replace("|", "\\|")


def _write_default(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "..".join(f"{end:g}" for end in value)
    return "" if value is None else str(value)


def _write_range(observable: Observable) -> str:
    low, high = observable.lower, observable.upper
    if low is None and high is None:
        return "any"
    return f"from {low:g}" if high is None else f"{low:g} to {high:g}"


if __name__ == "__main__":
    PAGE.write_text(write_table(), encoding="utf-8")
