"""What a reader calls things: the names behind the keys of scores and predictions."""

__all__ = ["BASELINES", "name_of"]

_NAMES = {
    "reference": "Simulation",
    "tampl": "TAMPL",
    "jld": "JLD",
    "jld-sig": "JLD-SIG",
    "jld-vic": "JLD-VIC",
    "floor": "Simulation noise floor",
    "mean_field": "Mean field",
    "pair": "Pair approximation",
    "mean_trajectory": "Mean training trajectory",
}

BASELINES = ("floor", "mean_field", "pair", "mean_trajectory")
"""What is no learned method, in the order in which it closes a table."""


def name_of(key: str) -> str:
    """The name a reader sees: "pair" is "Pair approximation"; an unknown key is itself."""
    return _NAMES.get(key, key)
