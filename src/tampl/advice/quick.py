"""What data say about themselves, without any training: memory, lags, repeats, numbers.

Every observable is looked at by its time series (`series`). A *lag* is long enough once the
change over it stands out: beside what is new in every frame by chance, the observable has then
changed by a tenth of its spread (root mean square). A lag beyond the correlation time leaves
little to be forecast from frame to frame.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.dataset import Dataset
from ..description import Observable
from ..errors import InputError
from .series import (
    autocorrelation,
    choose_lags,
    correlation_time,
    find_noise,
    variogram,
)
from .study import Study, study

__all__ = ["Advice", "Remark", "SeriesFacts", "advise"]

CHANGE = 0.1
"""Of the spread: the change over a lag that is to be seen."""

FEW_STATES = 50
"""Initial states below which a validation set is hardly one: the packaged recipes have 80 to
1,600."""

_NOISY = 0.2
_UNLIKE = 0.5


@dataclass(frozen=True)
class SeriesFacts:
    """What is found of one observable.

    Attributes:
        symbol: Its symbol.
        unit: Its unit.
        mean: Its mean over all trajectories and times.
        std: Its standard deviation over all trajectories and times, the spread.
        between: Share of the variance that lies between the means of trajectories.
        constant: Whether it never varies at all.
        conserved: Whether it never varies along a trajectory.
        memory: Integrated autocorrelation time, or the least that it can be; None if constant.
        resolved: Whether trajectories are long enough to tell the memory.
        change: Root mean square change from frame to frame, in units of the spread.
        noise: Share of the variance that is new in every frame.
        lag: Frames after which a change of a tenth of the spread stands out; None where none does
            within half of a trajectory.
        lags: Lags of the curves, in frames, (K,).
        variogram: D at these lags, (K,).
        autocorrelation: rho at these lags, (K,).
    """

    symbol: str
    unit: str
    mean: float
    std: float
    between: float = 0.0
    constant: bool = False
    conserved: bool = False
    memory: float | None = None
    resolved: bool = False
    change: float = 0.0
    noise: float = 0.0
    lag: int | None = None
    lags: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    variogram: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    autocorrelation: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def moves(self) -> bool:
        """Whether there is anything to be forecast."""
        return not (self.constant or self.conserved)


@dataclass(frozen=True)
class Remark:
    """One piece of advice.

    Attributes:
        topic: What it is about.
        level: "good", "note", or "warning" where the data or the settings should be changed.
        words: The number and what to do, in one or two sentences.
    """

    topic: str
    level: Literal["good", "note", "warning"]
    words: str


@dataclass(frozen=True)
class Advice:
    """What to know of a data set before training on it.

    Attributes:
        trajectories: Number of trajectories.
        initial_states: Number of different initial states.
        frames: Frames of a trajectory, of the longest one.
        interval: Time between frames.
        time_unit: Unit of times.
        lag: The lag to train with, in frames.
        series: The facts about each observable.
        remarks: The advice in words.
        study: What trainings have shown; None without them.
    """

    trajectories: int
    initial_states: int
    frames: int
    interval: float
    time_unit: str
    lag: int
    series: tuple[SeriesFacts, ...]
    remarks: tuple[Remark, ...]
    study: Study | None = None

    def __str__(self) -> str:
        """The remarks, one line each, with what should be changed marked."""
        marks = {"good": " ", "note": " ", "warning": "!"}
        return "\n".join(f"{marks[f.level]} {f.topic}: {f.words}" for f in self.remarks)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return _make_plain(asdict(self))


def advise(
    data: Dataset,
    *,
    valid: Dataset | None = None,
    full: bool = False,
    error: float | None = None,
    budget_s: float = 600.0,
    seed: int = 42,
    device: str = "auto",
    progress: bool = True,
) -> Advice:
    """Says what to know of a data set before training on it.

    Arguments:
        data: The data set, or its training set.
        valid: The validation set that trainings are judged by; by default a fifth of the initial
            states of `data`.
        full: Whether to train, too, to find out if the microstate is needed, how large the latent
            state should be, and how many trajectories are missing.
        error: The RMSE, in standard deviations, that the number of missing trajectories is for; by
            default a tenth below the present one.
        budget_s: Seconds that the trainings may take, about.
        seed: Governs the trainings.
        device: Where to train.
        progress: Whether to show a bar.

    Example:
        >>> print(tampl.advise(data))  # doctest: +SKIP
    """
    if not isinstance(data, Dataset):
        raise InputError(f"`data` is a {type(data).__name__}; give a tampl.Dataset(x, y, ...)")
    observables = data.description.observables
    series = tuple(_look_at(o, data.y[..., j]) for j, o in enumerate(observables))
    lag = _choose_lag(series, data)
    states = data.count_initial_states()
    found = [
        *_find_constants(series),
        *_judge_length(series, data),
        *_judge_lag(series, data, lag),
        *_judge_states(data, states),
    ]
    trained = None
    if full:
        if error is not None and not error > 0:
            raise InputError(f"`error` is {error}; it must be a positive number")
        trained = study(
            data,
            valid,
            target=error,
            budget_s=budget_s,
            seed=seed,
            device=device,
            progress=progress,
        )
        found += [Remark(*line) for line in trained.remarks]
    return Advice(
        trajectories=len(data),
        initial_states=states,
        frames=data.y.shape[1],
        interval=data.description.interval,
        time_unit=data.description.time_unit,
        lag=lag,
        series=series,
        remarks=tuple(found),
        study=trained,
    )


def _look_at(observable: Observable, y: NDArray[np.float64]) -> SeriesFacts:
    """The facts about one observable, (n, F)."""
    names: dict[str, Any] = {"symbol": observable.symbol, "unit": observable.unit}
    low, high = np.nanmin(y, axis=1), np.nanmax(y, axis=1)
    mean, variance = float(np.nanmean(y)), float(np.nanvar(y))
    if low.min() == high.max():
        return SeriesFacts(**names, mean=mean, std=0.0, between=0.0, constant=True)
    std = float(np.sqrt(variance))
    between = min(1.0, float(np.nanmean(y, axis=1).var()) / variance)
    if (low == high).all():
        return SeriesFacts(**names, mean=mean, std=std, between=1.0, conserved=True)
    rho, lags = autocorrelation(y), choose_lags(y.shape[1])
    memory, d = correlation_time(rho), variogram(y, lags)
    noise = find_noise(d)
    # A root mean square change of a tenth of the spread is D = 0.1^2 / 2.
    seen = d - noise >= CHANGE**2 / 2
    return SeriesFacts(
        **names,
        mean=mean,
        std=std,
        between=between,
        memory=memory.frames,
        resolved=memory.resolved,
        change=float(np.sqrt(2 * d[0])),
        noise=noise,
        lag=int(lags[seen.argmax()]) if seen.any() else None,
        lags=lags,
        variogram=d,
        autocorrelation=rho[lags],
    )


def _choose_lag(series: tuple[SeriesFacts, ...], data: Dataset) -> int:
    """The longest of the lags that observables ask for, within the shortest memory."""
    asked = [facts.lag for facts in series if facts.moves and facts.lag is not None]
    memories = [f.memory for f in series if f.memory is not None and f.resolved]
    if not asked:
        return 1
    longest = int(min([*memories, (data.y.shape[1] - 1) / 2]))
    return max(1, min(max(asked), longest))


def _find_constants(series: tuple[SeriesFacts, ...]) -> list[Remark]:
    found = []
    for facts in series:
        if facts.constant:
            words = (
                f"{facts.symbol} is {facts.mean:g} everywhere: leave it out, or use data in which "
                "it varies; no model can be trained on it"
            )
            found.append(Remark("Constant observable", "warning", words))
        elif facts.conserved:
            words = (
                f"{facts.symbol} never changes along a trajectory, only between them. Forecasts "
                "keep its initial value; it tells a model nothing but where it is"
            )
            found.append(Remark("Conserved observable", "note", words))
    return found


def _judge_length(series: tuple[SeriesFacts, ...], data: Dataset) -> list[Remark]:
    found, duration = [], data.y.shape[1] - 1
    for facts in series:
        if not facts.moves or facts.memory is None:
            continue
        time = _write_time(facts.memory * data.description.interval, data)
        if not facts.resolved:
            words = (
                f"{facts.symbol} remembers for longer than {time}, a fifth of a trajectory: "
                "trajectories show a relaxation, or levels of their own, and not its statistics. "
                "A forecast within their length is still possible; vary the initial states"
            )
            found.append(Remark("Memory", "note", words))
            continue
        count = duration / facts.memory
        words = (
            f"{facts.symbol} has a correlation time of {time}, and a trajectory is "
            f"{count:.3g} of them long"
        )
        if facts.memory <= 1.0:
            words += ": frames are as good as independent. Store frames more often"
        found.append(Remark("Memory", "warning" if facts.memory <= 1.0 else "good", words))
    return found


def _judge_lag(series: tuple[SeriesFacts, ...], data: Dataset, lag: int) -> list[Remark]:
    found: list[Remark] = []
    moving = [facts for facts in series if facts.moves]
    for facts in moving:
        if facts.noise > _NOISY:
            words = (
                f"{100 * facts.noise:.0f} % of the variance of {facts.symbol} is new in every "
                "frame: noise of the measurement, or motion too fast for the frames. No forecast "
                "can tell it in advance"
            )
            found.append(Remark("Noise", "note", words))
    if not moving:
        return found
    changes = ", ".join(f"{facts.symbol} by {100 * facts.change:.2g} %" for facts in moving)
    words = f"from frame to frame {changes} of the spread (root mean square)"
    time = _write_time(lag * data.description.interval, data)
    if lag > 1:
        words = (
            f"{words}. After {lag} frames, {time}, the change stands out: train with a lag of "
            f"{lag}, or keep one frame of {lag}"
        )
        return [*found, Remark("Lag", "warning", words)]
    if min(facts.change for facts in moving) > np.sqrt(2 * _UNLIKE):
        words = f"{words}: more than half of what is seen is lost between two frames"
        return [*found, Remark("Lag", "note", words)]
    return [*found, Remark("Lag", "good", f"{words}: a lag of one frame shows the dynamics")]


def _judge_states(data: Dataset, states: int) -> list[Remark]:
    count = len(data)
    if states < count:
        words = (
            f"{count} trajectories start from {states} different states, {count / states:.3g} "
            "from each on average: ensembles can be compared, and there is a noise floor"
        )
        found = [Remark("Initial states", "good", words)]
    else:
        words = (
            f"all {count} trajectories start from different states: in a test set like this, "
            "forecasts are compared with single trajectories, and there is no noise floor"
        )
        found = [Remark("Initial states", "note", words)]
    if states < FEW_STATES:
        words = (
            f"{states} initial states are few to learn from and to validate on; {FEW_STATES} or "
            "more make errors comparable"
        )
        found.append(Remark("Number of trajectories", "warning", words))
    if data.present is not None:
        missing = 100 * (1 - data.present.mean())
        words = f"{missing:.2g} % of the frames of the longest trajectories are absent"
        found.append(Remark("Absent frames", "note", words))
    return found


def _write_time(time: float, data: Dataset) -> str:
    unit = data.description.time_unit
    return f"{time:.3g} {unit}" if unit else f"{time:.3g}"


def _make_plain(value: Any) -> Any:  # noqa: ANN401
    """Plain data of arrays, records and tuples."""
    if isinstance(value, dict):
        return {key: _make_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray) else value
