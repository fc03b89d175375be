"""Every score of one model on one store, with the references that give it meaning.

Beside the model stand the system's closures, the mean training trajectory (a forecast that ignores
the microstate) and the floor (what a perfect model would score, ensembles being finite).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Normalization, References, Trajectories
from ..errors import InputError
from ..forecast import forecast
from ..models import MacroModel
from ..systems.base import Closure, Description
from .cases import Case, Cases, choose_cases, curve
from .floor import floor
from .metrics import Score, rmse, score, standardized_future

__all__ = ["Evaluation", "evaluate_model", "refuse_other_system", "rollout_rmse"]


@dataclass(frozen=True)
class Evaluation:
    """Scores by name, the model's own under the name it was given, and the cases to look at."""

    scores: Mapping[str, Score]
    cases: Cases


def rollout_rmse(model: MacroModel, trajectories: Trajectories, *, members: int) -> float:
    """RMSE of the mean of rollouts against single trajectories, the measure of validation."""
    frames = trajectories.macrostates.shape[1]
    initial = trajectories.microstates[:, 0]
    predicted = forecast(model, initial, horizon=frames - 1, members=members, progress=False)
    return rmse(
        standardized_future(predicted.mean, model.normalization),
        standardized_future(trajectories.macrostates, model.normalization),
    )


def evaluate_model(
    model: MacroModel,
    name: str,
    *,
    train: Trajectories,
    test: References,
    closures: Mapping[str, Closure],
    seed: int = 0,
) -> Evaluation:
    """Scores a model against the reference ensembles of a test split.

    Arguments:
        model: The model.
        name: What the scores call it.
        train: The training trajectories, for their mean.
        test: Initial microstates and reference ensembles, (G, N, F, m).
        closures: The system's closures by name.
        seed: Governs the forecast.
    """
    members, frames = test.macrostates.shape[1:3]
    ours = forecast(model, test.microstates, horizon=frames - 1, members=members, seed=seed)
    predictions = {name: ours.samples if model.stochastic else ours.samples[:, 0]}
    predictions |= {key: closure(test.microstates) for key, closure in closures.items()}
    statistics = model.normalization
    scores = {key: score(y, test.macrostates, statistics) for key, y in predictions.items()}
    mean_trajectory = train.macrostates.mean(axis=0)
    everywhere = np.broadcast_to(mean_trajectory, (len(test.microstates), *mean_trajectory.shape))
    scores["mean_trajectory"] = score(everywhere, test.macrostates, statistics)
    scores["floor"] = floor(test.macrostates, statistics)
    return Evaluation(scores, _cases(model.description, test, predictions, statistics))


def _cases(
    description: Description,
    test: References,
    predictions: Mapping[str, NDArray[Any]],
    statistics: Normalization,
) -> Cases:
    first, twins = choose_cases(test.labels.tolist(), test.macrostates, statistics)
    chosen = [
        Case(
            index=index,
            label=str(test.labels[index]),
            microstate=test.microstates[index],
            reference=curve(test.macrostates[index]),
            predictions={key: curve(y[index]) for key, y in predictions.items()},
        )
        for index in dict.fromkeys([*first, *twins])
    ]
    symbols = tuple(observable.symbol for observable in description.observables)
    return Cases(description.times, symbols, tuple(chosen), twins)


def refuse_other_system(model: Description, data: Description) -> None:
    """Refuses a model and data that do not speak of the same system; lengths may differ."""
    for key in ("system", "microstate", "observables", "interval", "parameters"):
        ours, theirs = getattr(model, key), getattr(data, key)
        if key == "parameters":
            ours, theirs = ({**p, "frames": None} for p in (ours, theirs))
        if ours != theirs:
            raise InputError(
                f"the model was trained on another system: its `{key}` is {_show(ours)}, the "
                f"data's is {_show(theirs)}; give data made by the recipe of the run"
            )


def _show(value: Any) -> str:  # noqa: ANN401
    return repr(value.model_dump() if hasattr(value, "model_dump") else value)
