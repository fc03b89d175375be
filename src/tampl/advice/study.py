r"""What short trainings say of data: is the microstate needed, how large is z, what is missing.

Every training is one of TAMPL+ with default parts and the same number of descent steps, which
fits the time that is allowed; one more is of the transition on y alone (macro-only). Their errors
are those of the mean of forecasts against the trajectories of the validation set, in standard
deviations of the training set, t = 0 excluded.

    microstate      The difference of the squared errors without and with it, trajectory by
                    trajectory, with its standard error: y alone is nearly sufficient where the
                    difference is less than two of those.
    latent state    The smallest z whose squared error is within a standard error of the best.
    trajectories    A fit of RMSE^2(n) = a + b n^(-c) to trainings on n, n / 2, n / 4 and n / 8
                    trajectories, a, b >= 0 and 0.1 <= c <= 2. The n that a given error needs
                    follows from it.

The trainings are short and each has one seed, so that errors are comparable with each other and
are not what a whole training reaches.
"""

import warnings
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from time import monotonic
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar, nnls

from ..data.dataset import Dataset, Normalization
from ..errors import ForecastWarning, InputError
from ..methods import MacroOnly, TamplPlus
from ..methods.base import Method
from ..methods.defaults import complete_architecture, default_training
from ..methods.tampl import MapFit, Refit
from ..models import MacroModel
from ..progress import bar, quiet
from ..training import TrainingSpec

__all__ = ["LearningCurve", "Study", "Training", "fit_learning_curve", "study"]

STEPS = (200, 4500)
"""Descent steps of each stage of a training: fewer say nothing, more than the default are not
needed."""

PAIRS = 20_000
"""Pairs of frames of the largest training set, which bound the time of an epoch."""

PARTS = (1 / 8, 1 / 4, 1 / 2)
MEMBERS = 16
EPOCHS = 8
_PILOT = 24
_FEWEST = 4
_SUFFICIENT, _GAIN = 2.0, 0.1
_FAR = 100.0

Line = tuple[str, Literal["good", "note", "warning"], str]


@dataclass(frozen=True)
class Training:
    """One training of a study.

    Attributes:
        method: "tampl+" or "macro-only".
        latent_dim: Size of z.
        trajectories: Trajectories trained on.
        rmse: Error on the validation set, in standard deviations.
        seconds: Time that it took.
        squares: Squared error of each validation trajectory.
    """

    method: str
    latent_dim: int
    trajectories: int
    rmse: float
    seconds: float
    squares: tuple[float, ...]


@dataclass(frozen=True)
class LearningCurve:
    """RMSE^2(n) = a + b n^(-c).

    Attributes:
        a: What more trajectories do not take away.
        b: Squared error that they do, of one trajectory.
        c: How fast.
    """

    a: float
    b: float
    c: float

    def rmse(self, trajectories: float) -> float:
        """The error with so many trajectories."""
        return sqrt(self.a + self.b * trajectories**-self.c)

    def needed(self, rmse: float) -> float:
        """The trajectories that an error needs; infinite where no number reaches it."""
        rest = rmse**2 - self.a
        if rest <= 0:
            return inf
        return (self.b / rest) ** (1 / self.c) if self.b else 1.0


@dataclass(frozen=True)
class Study:
    """What trainings on a data set have shown.

    Attributes:
        steps: Descent steps of each stage of each training.
        trainings: The trainings, in the order in which they were done.
        mean_trajectory: Error of the mean training trajectory, which ignores the microstate.
        persistence: Error of staying at y_0.
        latent_dim: The smallest sufficient size of z; None where that was not tried.
        curve: The learning curve; None where it was not tried.
        target: The error that trajectories are counted for.
        needed: The trajectories that it needs; None without a curve or where none suffice.
        remarks: The advice, as topic, level and words.
    """

    steps: int
    trainings: tuple[Training, ...]
    mean_trajectory: float
    persistence: float
    latent_dim: int | None
    curve: LearningCurve | None
    target: float | None
    needed: float | None
    remarks: tuple[Line, ...]


def study(
    data: Dataset,
    valid: Dataset | None = None,
    *,
    target: float | None = None,
    budget_s: float = 600.0,
    seed: int = 42,
    device: str = "auto",
    progress: bool = True,
) -> Study:
    """Trains briefly, in several ways, and compares.

    Arguments:
        data: The training set.
        valid: The validation set; by default a fifth of the initial states of `data`.
        target: RMSE to count missing trajectories for; by default a tenth below the present one.
        budget_s: Seconds that the trainings may take, about; those that do not fit are left out.
        seed: Governs the trainings.
        device: Where to train.
        progress: Whether to show a bar.
    """
    states = data.count_initial_states()
    if states < _FEWEST or (valid is None and states < _FEWEST + 1):
        raise InputError(
            f"`full` needs {_FEWEST + 1} initial states at least, and there are {states}: leave "
            "it out, or use more trajectories"
        )
    train, held = (data, valid) if valid is not None else data.split(0.8, 0.2, seed=0)
    share = PAIRS / max(1, train.count_pairs())
    if share < 1 and share * train.count_initial_states() >= _FEWEST:
        (train,) = train.split(share, seed=0)
    trainer = _Trainer(train, held, seed=seed, device=device)
    plan = _plan(train)
    end = monotonic() + budget_s
    trainer.measure_steps(budget_s / len(plan))
    with bar("training", len(plan), visible=progress) as advance:
        for part, latent_dim, method in plan:
            # A training that would end late is left out, but for the two that come first.
            longest = max((done.seconds for done in trainer.done), default=0.0)
            if len(trainer.done) < 2 or monotonic() + longest < end:
                trainer.train(part, latent_dim, method)
            advance("")
    return trainer.conclude(target, left_out=len(plan) - len(trainer.done))


def fit_learning_curve(
    trajectories: NDArray[np.floating] | list[float], squares: NDArray[np.floating] | list[float]
) -> LearningCurve:
    """Fits RMSE^2(n) = a + b n^(-c) by least squares of relative errors.

    Arguments:
        trajectories: Numbers n, three at least.
        squares: Squared errors.

    Example:
        >>> n = [20.0, 40.0, 80.0, 160.0]
        >>> curve = fit_learning_curve(n, [0.04 + 3 / k for k in n])
        >>> round(curve.a, 4), round(curve.b, 2), round(curve.c, 3)
        (0.04, 3.0, 1.0)
    """
    n, values = np.asarray(trajectories, float), np.asarray(squares, float)

    def solve(c: float) -> tuple[NDArray[np.float64], float]:
        # Relative to the smallest n, so that both columns are of one size.
        columns = np.stack([np.ones_like(n), (n / n.min()) ** -c], axis=1)
        return nnls(columns / values[:, None], np.ones_like(values))

    best = minimize_scalar(lambda c: solve(c)[1], bounds=(0.1, 2.0), method="bounded")
    # A bounded search may stop in a side valley: the ends and a grid are looked at too.
    c = min([float(best.x), *np.linspace(0.1, 2.0, 20)], key=lambda c: solve(c)[1])
    if c != best.x:
        near = (max(0.1, c - 0.1), min(2.0, c + 0.1))
        finer = minimize_scalar(lambda c: solve(c)[1], bounds=near, method="bounded")
        c = min([c, float(finer.x)], key=lambda c: solve(c)[1])
    (a, b), _ = solve(c)
    return LearningCurve(float(a), float(b * n.min() ** c), float(c))


class _Trainer:
    """Trains on parts of a data set, all with the same steps and the same validation set."""

    def __init__(self, train: Dataset, valid: Dataset, *, seed: int, device: str) -> None:
        self.train_set, self.valid = train, valid
        self.seed, self.device = seed, device
        self.statistics = train.statistics
        self.steps = STEPS[1]
        self.done: list[Training] = []

    def measure_steps(self, seconds: float) -> None:
        """Takes as many steps as fit into the time of one training."""
        few, many = (_PILOT // 4, _PILOT)
        times = []
        for steps in (few, few, many):  # the first one warms up
            start = monotonic()
            self._fit(self.train_set, _base_dim(self.train_set), "tampl+", steps=steps, epochs=1)
            times.append(monotonic() - start)
        each = max(1e-6, (times[2] - times[1]) / (many - few))
        # What an epoch takes however few its steps: all frames are encoded, rollouts validate.
        fixed = max(0.0, times[1] - few * each) * EPOCHS / 2
        self.steps = int(np.clip((seconds - fixed) / each, *STEPS))

    def train(self, part: float, latent_dim: int, method: str) -> None:
        """Trains on a part of the trajectories and keeps the error."""
        start = monotonic()
        train = self.train_set if part == 1 else self.train_set.split(part, seed=0)[0]
        model = self._fit(train, latent_dim, method, steps=self.steps, epochs=EPOCHS)
        squares = self._score(model)
        self.done.append(
            Training(
                method=method,
                latent_dim=latent_dim,
                trajectories=len(train),
                rmse=float(np.sqrt(squares.mean())),
                seconds=monotonic() - start,
                squares=tuple(squares.tolist()),
            )
        )

    def _fit(
        self, train: Dataset, latent_dim: int, method: str, *, steps: int, epochs: int
    ) -> MacroModel:
        training = _shorten(default_training(train), train, steps, epochs).model_copy(
            update={"seed": self.seed}
        )
        chosen: Method = MacroOnly()
        dim: int | None = None
        if method == "tampl+":
            refit = Refit(steps=max(1, steps // training.epochs), solver_steps=4)
            chosen, dim = TamplPlus(refit=refit, map=MapFit(steps=0)), latent_dim
        with quiet():  # what is said of one short training means nothing
            found = chosen.fit(
                train,
                self.valid,
                architecture=complete_architecture(train, latent_dim=dim),
                training=training,
                device=self.device,
                progress=False,
            )
        assert isinstance(found, MacroModel)
        return found

    def _score(self, model: MacroModel) -> NDArray[np.float64]:
        """Squared error of the mean forecast of each validation trajectory, (n,)."""
        with warnings.catch_warnings():
            # Models of a few steps run out of the data, which is no news to the user.
            warnings.simplefilter("ignore", ForecastWarning)
            ahead = model.forecast(
                self.valid.x[:, 0],
                y0=self.valid.y[:, 0],
                horizon=self.valid.y.shape[1] - 1,
                members=MEMBERS,
                progress=False,
            )
        return _squared_errors(ahead.mean, self.valid.y, self.statistics.y)

    def conclude(self, target: float | None, *, left_out: int) -> Study:
        """What the trainings show, in words."""
        y = self.valid.y
        scale = self.statistics.y
        mean = self.statistics.mean_trajectory
        baselines = {"persistence": np.broadcast_to(y[:, :1], y.shape)}
        if mean is not None and len(mean) >= y.shape[1]:
            baselines["mean_trajectory"] = np.broadcast_to(mean[: y.shape[1]], y.shape)
        errors = {
            key: sqrt(_squared_errors(found, y, scale).mean()) for key, found in baselines.items()
        }
        base, macro = self.done[0], self.done[1]
        dims = sorted(
            (t for t in self.done if t.method == "tampl+" and t.trajectories == base.trajectories),
            key=lambda t: t.latent_dim,
        )
        sizes = sorted(
            (t for t in self.done if t.method == "tampl+" and t.latent_dim == base.latent_dim),
            key=lambda t: t.trajectories,
        )
        chosen = _choose_dim(dims) if len(dims) > 2 else None
        curve = _fit_curve(sizes)
        wanted = target if target is not None else (1 - _GAIN) * base.rmse
        needed = None if curve is None else curve.needed(wanted)
        enough = needed is not None and isfinite(needed)
        found = Study(
            steps=self.steps,
            trainings=tuple(self.done),
            mean_trajectory=errors.get("mean_trajectory", np.nan),
            persistence=errors["persistence"],
            latent_dim=None if chosen is None else chosen.latent_dim,
            curve=curve,
            target=None if curve is None else wanted,
            needed=needed if enough else None,
            remarks=(),
        )
        useful = base.rmse < min(errors.values())
        lines = [_judge_microstate(base, macro, found, useful=useful)]
        # Of models that tell nothing, neither size nor number of trajectories says anything.
        if chosen is not None and useful:
            lines.append(_judge_dims(dims, chosen, found.steps))
        if curve is not None and useful:
            lines.append(_judge_size(base, curve, wanted, needed))
        if left_out:
            words = f"{left_out} trainings did not fit into the time: allow more for all answers"
            lines.append(("Time", "note", words))
        return replace(found, remarks=tuple(lines))


def _plan(train: Dataset) -> list[tuple[float, int, str]]:
    """The trainings: share of the trajectories, size of z, method; the most telling first."""
    base = _base_dim(train)
    dims = [base // 8, base // 2, base // 4, 2 * base]
    states = train.count_initial_states()
    parts = [part for part in PARTS[::-1] if part * states >= _FEWEST]
    return [
        (1.0, base, "tampl+"),
        (1.0, len(train.description.observables), "macro-only"),
        *((part, base, "tampl+") for part in parts),
        *((1.0, dim, "tampl+") for dim in dims if dim >= 1),
    ]


def _base_dim(train: Dataset) -> int:
    return complete_architecture(train).latent_dim


def _shorten(training: TrainingSpec, train: Dataset, steps: int, epochs: int) -> TrainingSpec:
    """A default training of so many steps of each stage, in some epochs of a part of the data."""
    every = max(1, -(-train.count_pairs() // training.batch_size))
    # Epochs as long as the data have, or shorter ones of which there are then enough.
    count = max(epochs, round(steps / every))
    fraction = min(1.0, steps / (count * every))
    decay = min(0.999, max(0.9, 1 - 10 / steps))
    return training.model_copy(
        update={
            "epochs": count,
            "fraction": fraction,
            "validate_every": max(1, count // 4),
            "transition": training.transition.model_copy(update={"average": decay}),
        }
    )


def _squared_errors(
    mean: NDArray[np.float64], y: NDArray[np.float64], scale: Normalization
) -> NDArray[np.float64]:
    """Squared errors of each trajectory, (n,), t = 0 and absent frames left out."""
    apart = np.square(scale.standardize(mean[:, 1:]) - scale.standardize(y[:, 1:]))
    # A forecast that runs away is as bad as can be, and not a reason to stop.
    apart = np.where(np.isnan(y[:, 1:]), np.nan, np.nan_to_num(apart, nan=1e6, posinf=1e6))
    known = ~np.isnan(apart).all(axis=(1, 2))
    return np.nanmean(apart[known], axis=(1, 2))


def _choose_dim(dims: list[Training]) -> Training:
    """The smallest z whose squared error is within a standard error of the best."""
    best = min(dims, key=lambda training: training.rmse)

    def is_close(training: Training) -> bool:
        mean, error = _compare(training, best)
        return mean <= max(error, 0.02 * best.rmse**2)

    return next(training for training in dims if is_close(training))


def _compare(first: Training, second: Training) -> tuple[float, float]:
    """By how much the squared error of the first is larger, and the standard error of that."""
    apart = np.subtract(first.squares, second.squares)
    error = apart.std(ddof=1) / sqrt(len(apart)) if len(apart) > 1 else inf
    return float(apart.mean()), float(error)


def _fit_curve(sizes: list[Training]) -> LearningCurve | None:
    if len({training.trajectories for training in sizes}) < 3:
        return None
    return fit_learning_curve([float(t.trajectories) for t in sizes], [t.rmse**2 for t in sizes])


def _judge_microstate(base: Training, macro: Training, found: Study, *, useful: bool) -> Line:
    gain, error = _compare(macro, base)
    words = (
        f"with the microstate the error is {base.rmse:.3g} standard deviations, from y alone "
        f"{macro.rmse:.3g} (mean trajectory {found.mean_trajectory:.3g}, persistence "
        f"{found.persistence:.3g})"
    )
    if not useful:
        words += (
            f": {found.steps} steps of training do not beat a forecast without a model. Allow "
            "more time, more trajectories, or a longer lag"
        )
        return "Microstate", "warning", words
    if gain > _SUFFICIENT * error:
        share = 100 * (1 - base.rmse / macro.rmse)
        words += (
            f": y alone is not sufficient, and the microstate lowers the error by {share:.0f} %"
        )
        return "Microstate", "good", words
    words += (
        ": the difference is less than twice its standard error, so that y alone is nearly "
        "sufficient; macro-only may be all that is needed"
    )
    return "Microstate", "note", words


def _judge_dims(dims: list[Training], chosen: Training, steps: int) -> Line:
    listed = ", ".join(f"{t.latent_dim}: {t.rmse:.3g}" for t in dims)
    words = (
        f"the validation error by size of z is {listed}, and levels off at {chosen.latent_dim} "
        f"(one training of {steps} steps each)"
    )
    return "Latent dimension", "good", words


def _judge_size(base: Training, curve: LearningCurve, target: float, needed: float | None) -> Line:
    n = base.trajectories
    words = f"{n} trajectories give {base.rmse:.3g}; without end {sqrt(curve.a):.3g}"
    if needed is None or not isfinite(needed):
        words += (
            f". An error of {target:.3g} is not reached by more of them: the rest is chance, or "
            "a matter of the training"
        )
        return "Missing trajectories", "note", words
    if needed <= n:
        return "Missing trajectories", "good", f"{words}. An error of {target:.3g} is reached"
    if needed > _FAR * n:
        words += f". An error of {target:.3g} is further away than can be extrapolated"
        return "Missing trajectories", "note", words
    words += (
        f". An error of {target:.3g} needs about {needed:.2g}, that is {needed - n:.2g} more "
        "(extrapolated from short trainings)"
    )
    return "Missing trajectories", "note", words
