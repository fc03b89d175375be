"""Every score of a model on a data set, with the references that give it meaning.

Beside the model stand the mean training trajectory (a forecast that ignores the microstate),
persistence (a forecast that stays at y_0), the closures of a system, and the floor: what a perfect
model would score, ensembles being finite. Where an initial microstate has a single trajectory, the
mean of the forecast is compared with that trajectory, and there is neither an MMD nor a floor.
Forecasts cover all times; frames that are missing in the data are not scored. A model that was
trained with a lag is compared with every frame of the data that it forecasts.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration import Calibration, calibrate
from ..data.dataset import Dataset, Normalization, References, average_present
from ..description import match_interval
from ..errors import ForecastWarning, InputError
from ..forecast import Forecast
from ..models import Ensemble, MacroModel
from ..system import Closure
from .cases import Case, Cases, choose_cases, curve
from .claims import Peaks, peaks, spread_ratios
from .metrics import FLOOR, Score, crps, floor, score

__all__ = [
    "MEAN_TRAJECTORY",
    "PERSISTENCE",
    "Evaluation",
    "evaluate",
]

MEAN_TRAJECTORY, PERSISTENCE = "mean_trajectory", "persistence"
"""Keys of these forecasts among scores."""

_MEMBERS = 64
"""Members of a forecast where the data do not say how many to compare with."""


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model and of what it is compared with.

    Attributes:
        rmse: RMSE of the forecast mean, in standardised units.
        mmd: Squared MMD of the marginals; None for a deterministic model, and where initial
            microstates have one trajectory each.
        floor: What a perfect model would score; None where initial microstates have one
            trajectory each.
        mean_trajectory: Score of the mean training trajectory; None where it is not known for
            all times.
        persistence: Score of staying at y_0.
        crps: Continuous ranked probability score against single trajectories, in standardised
            units; for a deterministic model the mean absolute error.
        held: The fraction of members and times that were held inside the envelope; None where
            nothing was held because there was no envelope.
        calibration: Coverage, ranks and spread against error; None for a deterministic model.
        warnings: Why some of the forecasts are not to be trusted, one line each.
        scores: All of these and the closures by name, the model's own first.
        cases: A few initial microstates with their futures, for figures; None where there is one
            initial microstate only.
        peaks: Peaks of every observable, by name and by symbol; `reference` among the names.
        spread: The model's spread over the true one, by symbol, where both have one.
    """

    rmse: float
    mmd: float | None
    floor: Score | None
    mean_trajectory: Score | None
    persistence: Score
    crps: float
    held: float | None
    calibration: Calibration | None = field(repr=False)
    warnings: tuple[str, ...]
    scores: Mapping[str, Score] = field(repr=False)
    cases: Cases | None = field(repr=False)
    peaks: Peaks = field(repr=False)
    spread: Mapping[str, float] = field(repr=False)

    def __str__(self) -> str:
        """The scores in a sentence, in units of the training set's standard deviation."""
        others = {"floor": self.floor, "mean training trajectory": self.mean_trajectory}
        beside = [f"{name} {s.rmse:.3f}" for name, s in others.items() if s is not None]
        beside.append(f"persistence {self.persistence.rmse:.3f}")
        mmd = "" if self.mmd is None else f", MMD² {self.mmd:.4f}"
        text = f"RMSE {self.rmse:.3f} ({', '.join(beside)}){mmd}, CRPS {self.crps:.3f}"
        return text if self.calibration is None else f"{text}; {self.calibration}"


def evaluate(
    model: MacroModel | Ensemble,
    data: Dataset | References,
    *,
    closures: Mapping[str, Closure] | None = None,
    name: str = "model",
    seed: int = 0,
    limits: bool = True,
    progress: bool = True,
) -> Evaluation:
    """Scores a model on data that it was not trained on.

    Trajectories that share their initial microstate are taken as an ensemble.

    Arguments:
        model: The model, or several models as an ensemble.
        data: A data set, or initial microstates with the macrostates of several trajectories each.
        closures: Textbook equations to compare with, by name.
        name: What the scores call the model.
        seed: Governs the forecast.
        limits: Whether forecasts are held inside envelope and limits, as `MacroModel.forecast`
            says; without, the scores are those of the paper's algorithm.
        progress: Whether to show a bar.
    """
    if not isinstance(model, MacroModel | Ensemble) or not isinstance(data, Dataset | References):
        raise InputError(
            f"`model` is a {type(model).__name__} and `data` is a {type(data).__name__}; give a "
            "model and a tampl.Dataset(x, y, ...)"
        )
    truth = data.references if isinstance(data, Dataset) else data
    every = match_interval(model.description, truth.description, whose="the model")
    if truth.y.shape[2] <= every:
        raise InputError(
            f"`data` has trajectories of {truth.y.shape[2]} frames, and a step of the model is "
            f"{every} of them; give longer trajectories"
        )
    truth = truth.thin(every)
    members, frames = truth.y.shape[1:3]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ForecastWarning)
        ours = model.forecast(
            truth.x,
            y0=truth.y[:, 0, 0],
            horizon=frames - 1,
            members=members if members > 1 else _MEMBERS,
            seed=seed,
            limits=limits,
            progress=progress,
        )
    for warning in said:  # of the line that called for the evaluation, not of one in here
        warnings.warn(str(warning.message), warning.category, stacklevel=2)
    # One trajectory is no distribution to compare with.
    ensemble = model.stochastic and members > 1
    predictions = {name: ours.samples if ensemble else ours.mean}
    predictions |= {k: closure(truth.x)[:, ::every] for k, closure in (closures or {}).items()}
    statistics = model.normalization
    shown = dict(predictions)
    predictions |= _constant_forecasts(model, truth)
    scores = {key: score(y, truth.y, statistics) for key, y in predictions.items()}
    if members > 1:
        scores[FLOOR] = floor(truth.y, statistics)
    ratios = spread_ratios(ours.samples, truth.y) if ensemble else []
    calibration = None
    if model.stochastic:
        scale = statistics.std
        calibration = calibrate(ours.samples, truth.y, ours.times, ours.symbols, scale=scale)
    return Evaluation(
        rmse=scores[name].rmse,
        mmd=scores[name].mmd,
        floor=scores.get(FLOOR),
        mean_trajectory=scores.get(MEAN_TRAJECTORY),
        persistence=scores[PERSISTENCE],
        crps=crps(ours.samples, truth.y, statistics),
        held=ours.held,
        calibration=calibration,
        warnings=ours.warnings,
        scores=scores,
        cases=_keep_cases(ours, truth, shown, statistics) if len(truth) > 1 else None,
        peaks={
            key: dict(zip(ours.symbols, peaks(y, ours.times), strict=True))
            for key, y in {"reference": _mean_known(truth.y), **shown}.items()
        },
        spread={symbol: r for symbol, r in zip(ours.symbols, ratios, strict=False) if r == r},
    )


def _mean_known(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean trajectories (G, F, m), which have no peak where no trajectory is known."""
    mean = average_present(y, axis=1)
    return np.where(np.isnan(mean), -np.inf, mean)


def _constant_forecasts(
    model: MacroModel | Ensemble, truth: References
) -> dict[str, NDArray[np.float64]]:
    """Forecasts that need no model, (G, F, m) each."""
    shape = (len(truth), *truth.y.shape[2:])
    found = {PERSISTENCE: np.broadcast_to(truth.y[:, 0, :1], shape)}
    known = model.mean_trajectory
    if known is not None and len(known) >= shape[1]:
        mean = known[: shape[1]].cpu().numpy()
        found = {MEAN_TRAJECTORY: np.broadcast_to(mean, shape), **found}
    return found


def _keep_cases(
    ours: Forecast,
    truth: References,
    predictions: Mapping[str, NDArray[Any]],
    statistics: Normalization,
) -> Cases:
    first, twins = choose_cases(truth.labels.tolist(), truth.y, statistics)
    chosen = [
        Case(
            index=index,
            label=str(truth.labels[index]),
            microstate=truth.x[index],
            reference=curve(truth.y[index], holes=True),
            predictions={key: curve(y[index]) for key, y in predictions.items()},
        )
        for index in dict.fromkeys([*first, *twins])
    ]
    return Cases(ours.times, ours.symbols, tuple(chosen), twins)
