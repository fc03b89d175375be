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
from ..data.manifest import first_difference
from ..description import Description
from ..errors import InputError
from ..forecast import Forecast, forecast
from ..models import MacroModel
from ..system import System
from .cases import Case, Cases, choose_cases, curve
from .claims import Peaks, peaks, spread_ratios
from .metrics import FLOOR, Score, floor, rmse, score, standardized_future

__all__ = ["Evaluation", "evaluate_model", "refuse_other_system", "rollout_rmse"]


@dataclass(frozen=True)
class Evaluation:
    """Scores by name, the model's own under the name it was given, and the cases to look at.

    Attributes:
        scores: Scores of the model, of what it is compared with, and the floor.
        cases: The cases.
        peaks: Peaks of every observable, by name and by symbol; `reference` among the names.
        spread: The model's spread over the true one, by symbol; empty for a deterministic model.
    """

    scores: Mapping[str, Score]
    cases: Cases
    peaks: Peaks
    spread: Mapping[str, float]


def rollout_rmse(model: MacroModel, trajectories: Trajectories, *, members: int) -> float:
    """RMSE of the mean of rollouts against single trajectories, the measure of validation."""
    frames = trajectories.macrostates.shape[1]
    predicted = forecast(
        model,
        trajectories.microstates[:, 0],
        macrostates=trajectories.macrostates[:, 0],
        horizon=frames - 1,
        members=members,
        progress=False,
    )
    return rmse(
        standardized_future(predicted.mean, model.normalization),
        standardized_future(trajectories.macrostates, model.normalization),
    )


def evaluate_model(
    model: MacroModel,
    name: str,
    *,
    train: NDArray[np.float64],
    test: References,
    system: System | None = None,
    seed: int = 0,
) -> Evaluation:
    """Scores a model against the reference ensembles of a test split.

    Arguments:
        model: The model.
        name: What the scores call it.
        train: Macrostates of the training trajectories, (n, F, m), for their mean.
        test: Initial microstates and reference ensembles, (G, N, F, m).
        system: The data's system, for its closures; None if it is not known.
        seed: Governs the forecast.
    """
    members, frames = test.macrostates.shape[1:3]
    ours = forecast(
        model,
        test.microstates,
        macrostates=test.macrostates[:, 0, 0],  # the same for all members
        horizon=frames - 1,
        members=members,
        seed=seed,
    )
    predictions = {name: ours.samples if model.stochastic else ours.samples[:, 0]}
    if system is not None:
        closures = system.closures().items()
        predictions |= {key: closure(test.microstates) for key, closure in closures}
    statistics = model.normalization
    scores = {key: score(y, test.macrostates, statistics) for key, y in predictions.items()}
    mean_trajectory = train.mean(axis=0)
    everywhere = np.broadcast_to(mean_trajectory, (len(test.microstates), *mean_trajectory.shape))
    scores["mean_trajectory"] = score(everywhere, test.macrostates, statistics)
    scores[FLOOR] = floor(test.macrostates, statistics)
    curves = {"reference": test.macrostates, **predictions}
    ratios = spread_ratios(ours.samples, test.macrostates) if model.stochastic else []
    return Evaluation(
        scores,
        _cases(ours, test, predictions, statistics),
        peaks={
            key: dict(zip(ours.symbols, peaks(y, ours.times), strict=True))
            for key, y in curves.items()
        },
        spread=dict(zip(ours.symbols, ratios, strict=bool(ratios))),
    )


def _cases(
    ours: Forecast,
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
    return Cases(ours.times, ours.symbols, tuple(chosen), twins)


def refuse_other_system(ours: Description, data: Description, *, whose: str) -> None:
    """Refuses data of another system than ours; trajectories may have other lengths.

    Arguments:
        ours: What a model or a recipe speaks of.
        data: What a store holds.
        whose: What the message calls ours, e.g. "the model".
    """
    for key in ("system", "microstate", "observables", "interval", "parameters"):
        here, there = (record.model_dump(mode="json")[key] for record in (ours, data))
        if key == "parameters":
            here, there = ({**parameters, "frames": None} for parameters in (here, there))
        difference = first_difference({key: here}, {key: there})
        if difference is not None:
            where, mine, theirs = difference
            raise InputError(
                f"{whose} and the data are of different systems: `{where}` is {mine} in {whose}, "
                f"{theirs} in the data; give data that the same recipe made"
            )
