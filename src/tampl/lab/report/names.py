"""What a reader calls things: the names behind the keys of scores and predictions."""

from collections.abc import Iterable

__all__ = ["in_reading_order", "name_of"]

_NAMES = {
    "reference": "Simulation",
    "tampl": "TAMPL",
    "tampl+": "TAMPL+",
    "jld": "JLD",
    "jld-sig": "JLD-SIG",
    "jld-vic": "JLD-VIC",
    "jld-recon": "JLD-Recon",
    "two-stage-recon": "TwoStage-Recon",
    "vamp": "VAMP",
    "macro-only": "Macro-only",
    "next-macro": "Next-macro",
    "floor": "Simulation noise floor",
    "mean_field": "Mean field",
    "pair": "Pair approximation",
    "mean_trajectory": "Mean training trajectory",
}


def name_of(key: str) -> str:
    """The name a reader sees: "pair" is "Pair approximation"; an unknown key is itself."""
    return _NAMES.get(key, key)


def in_reading_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order in which a table has them, those without a name last.

    Example:
        >>> in_reading_order({"own", "vamp", "tampl"})
        ['tampl', 'vamp', 'own']
    """
    places = {key: place for place, key in enumerate(_NAMES)}
    return sorted(keys, key=lambda key: (places.get(key, len(places)), key))
