"""Results on standard output, as lines for people or JSON for machines."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..records import strict_json

__all__ = ["plain_scores", "show"]


def show(result: dict[str, Any], as_json: bool) -> None:
    """Prints a result, one line for each key or one line of JSON."""
    if as_json:
        print(strict_json(result))
    else:
        print("\n".join(f"{key}: {_plain(value)}" for key, value in result.items()))


def plain_scores(scores: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Scores as plain data."""
    return {name: asdict(score) for name, score in scores.items()}


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return "; ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)
