"""Forecasts of macroscopic observables from one microstate, without reconstructing microstates.

    data = tampl.Dataset(x, y, interval=0.5, observables=["S", "I", "R"])
    train, valid, test = data.split(0.8, 0.1, 0.1, seed=0)
    model = tampl.TamplPlus().fit(train, valid=valid)
    ahead = model.forecast(test.x[:, 0], y0=test.y[:, 0], horizon=40, members=64)

Names load when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .advice import Advice, advise
    from .data.dataset import Dataset, References
    from .description import Observable, Total
    from .errors import ForecastWarning, InputError
    from .evaluation import Evaluation, evaluate
    from .forecast import Forecast, Moments
    from .methods import (
        Jld,
        JldRecon,
        JldSig,
        JldVic,
        MacroOnly,
        NextMacro,
        Tampl,
        TamplPlus,
        TwoStageRecon,
        Vamp,
    )
    from .microstates import Chain, Image, Lattice, Particles, Vector
    from .models import Ensemble, MacroModel, load
    from .observables import observe
    from .training import OptimiserSpec, TrainingSpec

__all__ = [
    "Advice",
    "Chain",
    "Dataset",
    "Ensemble",
    "Evaluation",
    "Forecast",
    "ForecastWarning",
    "Image",
    "InputError",
    "Jld",
    "JldRecon",
    "JldSig",
    "JldVic",
    "Lattice",
    "MacroModel",
    "MacroOnly",
    "Moments",
    "NextMacro",
    "Observable",
    "OptimiserSpec",
    "Particles",
    "References",
    "Tampl",
    "TamplPlus",
    "Total",
    "TrainingSpec",
    "TwoStageRecon",
    "Vamp",
    "Vector",
    "__version__",
    "advise",
    "evaluate",
    "load",
    "observe",
]

_HOMES = {
    "advice": ("Advice", "advise"),
    "data.dataset": ("Dataset", "References"),
    "description": ("Observable", "Total"),
    "errors": ("ForecastWarning", "InputError"),
    "evaluation": ("Evaluation", "evaluate"),
    "forecast": ("Forecast", "Moments"),
    "methods": (
        *("Tampl", "TamplPlus", "Jld", "JldSig", "JldVic", "Vamp"),
        *("JldRecon", "TwoStageRecon", "MacroOnly", "NextMacro"),
    ),
    "microstates": ("Chain", "Image", "Lattice", "Particles", "Vector"),
    "models": ("Ensemble", "MacroModel", "load"),
    "observables": ("observe",),
    "training": ("OptimiserSpec", "TrainingSpec"),
}
_PLACES = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
