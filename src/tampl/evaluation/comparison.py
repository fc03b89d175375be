"""Choices compared: scores over training seeds, and differences to one choice, paired by seed.

    s^2 = 1 / (n - 1) sum_i (v_i - mean v)^2,        d_i = v_i - w_i,
    mean d +- t_{0.975, n-1} s_d / sqrt(n),

the last line being the 95 % interval of Student's t for the mean difference. Two runs that share a
seed start from the same encoder, so pairing takes out what that does to both. An interval that
holds zero is a tie.

A choice is a method or, in a sweep, the value of a setting. Baselines (the noise floor, closures,
the mean trajectory, persistence) do not depend on a training seed and have a single value.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from math import isfinite, nan, sqrt
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .health import Log, best_validation, find_collapse, latent_std
from .metrics import FLOOR, Score, excess
from .suite import MEAN_TRAJECTORY, PERSISTENCE

__all__ = [
    "ANCHOR",
    "Comparison",
    "Difference",
    "PairedScore",
    "ScoreRow",
    "Summary",
    "Trial",
    "Verdict",
    "compare_trials",
    "order_baselines",
    "paired_difference",
    "summarize",
    "summarize_known",
]

_UPPER = 0.975  # what leaves 5 % on both sides together


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation of some values; one value has no deviation."""

    mean: float
    std: float | None
    values: tuple[float, ...]


class Verdict(Enum):
    """What a difference of errors says of the first one."""

    BETTER = "better"
    WORSE = "worse"
    TIE = "tie"


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences with its 95 % interval; one pair has no interval."""

    mean: float
    low: float | None
    high: float | None
    values: tuple[float, ...]

    @property
    def verdict(self) -> Verdict | None:
        """What the interval says; None without one. Lower errors are better."""
        if self.low is None or self.high is None or not isfinite(self.mean):
            return None
        if self.low > 0:
            return Verdict.WORSE
        return Verdict.BETTER if self.high < 0 else Verdict.TIE


def summarize(values: Iterable[float]) -> Summary:
    """Mean and sample standard deviation of one value or more.

    Example:
        >>> summarize([1.0, 2.0, 6.0]).mean
        3.0
        >>> summarize([1.0]).std is None
        True
    """
    kept = tuple(float(value) for value in values)
    with np.errstate(invalid="ignore", over="ignore"):  # scores of forecasts that blew up
        std = float(np.std(kept, ddof=1)) if len(kept) > 1 else None
        return Summary(float(np.mean(kept)), std, kept)


def summarize_known(values: Iterable[float | None]) -> Summary | None:
    """The summary of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return summarize(known) if known else None


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Difference | None:
    """The difference ours - theirs over the seeds that both have; None where there are none.

    Arguments:
        ours: Values by seed.
        theirs: Values by seed.
    """
    values = [value - theirs[seed] for seed, value in ours.items() if seed in theirs]
    if not values:
        return None
    found = summarize(values)
    if found.std is None:
        return Difference(found.mean, None, None, found.values)
    half = float(stdtrit(len(values) - 1, _UPPER)) * found.std / sqrt(len(values))
    return Difference(found.mean, found.mean - half, found.mean + half, found.values)


ANCHOR = "tampl"
"""The method that all others are compared with."""


@dataclass(frozen=True)
class Trial:
    """One training run of a comparison: what it scored, or why it failed.

    Attributes:
        choice: What the run was trained with: the name of a method, or the value of a setting
            as text.
        seed: The training seed.
        score: The score on the test split; None for a run that was not scored there.
        validation: The lowest validation error; None where none was finite.
        latent_std: The latent scale of the best model.
        collapsed: Whether the latent scale had collapsed at the end.
        failure: Why the training failed; None for a run that ended well.
    """

    choice: str
    seed: int
    score: Score | None = None
    validation: float | None = None
    latent_std: float | None = None
    collapsed: bool = False
    failure: str | None = None

    @classmethod
    def of_log(cls, choice: str, seed: int, log: Log, score: Score | None = None) -> "Trial":
        """The trial of a training run, by its log and, where it has one, its test score."""
        return cls(
            choice=choice,
            seed=seed,
            score=score,
            validation=best_validation(log),
            latent_std=latent_std(log),
            collapsed=find_collapse(log) is not None,
        )


@dataclass(frozen=True)
class ScoreRow:
    """One row of a comparison: scores over seeds; None where nothing is known.

    Attributes:
        rmse: RMSE on the test split.
        mmd: Squared MMD on the test split; None also for a deterministic prediction.
        excess: Mean excess over the floor; None for the floor and without one.
        validation: Lowest validation errors.
        latent_std: Latent scales of the best models.
        seeds: The seeds of the runs, in the order of the values; a baseline has none.
        collapsed: The seeds whose latent scale collapsed.
    """

    rmse: Summary | None
    mmd: Summary | None
    excess: Score | None = None
    validation: Summary | None = None
    latent_std: Summary | None = None
    seeds: tuple[int, ...] = ()
    collapsed: tuple[int, ...] = ()

    @property
    def error(self) -> float:
        """The mean RMSE on the test split; NaN where the runs were not scored there."""
        return nan if self.rmse is None else self.rmse.mean


@dataclass(frozen=True)
class PairedScore:
    """Differences to the anchor over the seeds that both have; no MMD without a distribution."""

    rmse: Difference
    mmd: Difference | None
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """The choices that are compared, and the scores that are known so far.

    Attributes:
        choices: Names of methods or values of a setting, in the order of the table.
        seeds: The seeds that each choice is to be trained with.
        scores: Rows by choice, for choices with one finished run at least; then baselines by
            name.
        paired: Differences to the anchor, by choice.
        failed: The trials whose training failed.
    """

    choices: tuple[str, ...]
    seeds: tuple[int, ...]
    scores: Mapping[str, ScoreRow]
    paired: Mapping[str, PairedScore]
    failed: tuple[Trial, ...] = ()

    @property
    def baselines(self) -> tuple[str, ...]:
        """The rows that were not trained."""
        return tuple(key for key in self.scores if key not in self.choices)

    @property
    def waiting(self) -> tuple[tuple[str, int], ...]:
        """Choice and seed of the runs that have neither finished nor failed."""
        known = {(key, seed) for key, row in self.scores.items() for seed in row.seeds}
        known |= {(trial.choice, trial.seed) for trial in self.failed}
        wanted = [(choice, seed) for seed in self.seeds for choice in self.choices]
        return tuple(run for run in wanted if run not in known)

    def as_dict(self) -> dict[str, Any]:
        """A comparison of methods as plain data for a file."""
        return {
            "scores": {key: _dump_row(row) for key, row in self.scores.items()},
            "seeds": list(self.seeds),
            "paired": {key: _dump_pair(pair) for key, pair in self.paired.items()},
            "anchor": ANCHOR,
            "methods": list(self.choices),
            "failed": [
                {"method": trial.choice, "seed": trial.seed, "reason": trial.failure}
                for trial in self.failed
            ],
            "waiting": [{"method": method, "seed": seed} for method, seed in self.waiting],
        }


def compare_trials(
    trials: Iterable[Trial],
    baselines: Mapping[str, Score] | None = None,
    *,
    choices: Sequence[str],
    seeds: Sequence[int],
) -> Comparison:
    """Compares the runs that have finished.

    Arguments:
        trials: Finished and failed runs, one for each choice and seed at most.
        baselines: Scores of predictions that are not trained; the floor gives the excess.
        choices: The methods, or the values of a setting.
        seeds: The seeds to compare them over.
    """
    by_seed = {(trial.choice, trial.seed): trial for trial in trials}
    failed = tuple(trial for trial in by_seed.values() if trial.failure is not None)
    finished: dict[str, list[Trial]] = {}
    for choice in choices:
        found = [by_seed[choice, seed] for seed in seeds if (choice, seed) in by_seed]
        if ended := [trial for trial in found if trial.failure is None]:
            finished[choice] = ended
    baselines = baselines or {}
    floor = baselines.get(FLOOR)
    rows = {choice: _summarize_trials(found, floor) for choice, found in finished.items()}
    for key in order_baselines(baselines):
        score = baselines[key]
        above = None if floor is None or key == FLOOR else excess(score, floor)
        rows[key] = ScoreRow(summarize([score.rmse]), summarize_known([score.mmd]), above)
    anchor = finished.get(ANCHOR, [])
    pairs = {key: _pair(found, anchor) for key, found in finished.items() if key != ANCHOR}
    paired = {key: pair for key, pair in pairs.items() if pair is not None}
    return Comparison(tuple(choices), tuple(seeds), rows, paired, failed)


def order_baselines(keys: Iterable[str]) -> list[str]:
    """Floor first, then closures as they come, mean trajectory and persistence last.

    Example:
        >>> order_baselines(["persistence", "mean_trajectory", "pair", "floor"])
        ['floor', 'pair', 'mean_trajectory', 'persistence']
    """
    last = (MEAN_TRAJECTORY, PERSISTENCE)
    return sorted(keys, key=lambda key: (key != FLOOR, last.index(key) + 1 if key in last else 0))


def _summarize_trials(trials: Sequence[Trial], floor: Score | None) -> ScoreRow:
    scores = [trial.score for trial in trials if trial.score is not None]
    above = None
    if floor is not None and scores:
        excesses = [excess(score, floor) for score in scores]
        mmd = summarize_known(score.mmd for score in excesses)
        above = Score(summarize(score.rmse for score in excesses).mean, mmd.mean if mmd else None)
    return ScoreRow(
        rmse=summarize_known(score.rmse for score in scores),
        mmd=summarize_known(score.mmd for score in scores),
        excess=above,
        validation=summarize_known(trial.validation for trial in trials),
        latent_std=summarize_known(trial.latent_std for trial in trials),
        seeds=tuple(trial.seed for trial in trials),
        collapsed=tuple(trial.seed for trial in trials if trial.collapsed),
    )


def _pair(trials: Sequence[Trial], anchor: Sequence[Trial]) -> PairedScore | None:
    rmse, mmd = (
        paired_difference(_collect_scores(trials, metric), _collect_scores(anchor, metric))
        for metric in ("rmse", "mmd")
    )
    if rmse is None:
        return None
    common = {trial.seed for trial in anchor}
    return PairedScore(rmse, mmd, tuple(t.seed for t in trials if t.seed in common))


def _collect_scores(trials: Sequence[Trial], metric: str) -> dict[int, float]:
    """The values of a metric by seed, where there are any."""
    values = {trial.seed: getattr(trial.score, metric, None) for trial in trials}
    return {seed: value for seed, value in values.items() if value is not None}


def _dump_row(row: ScoreRow) -> dict[str, Any]:
    # Readers of the files expect the mean latent scale alone.
    return {**asdict(row), "latent_std": None if row.latent_std is None else row.latent_std.mean}


def _dump_pair(pair: PairedScore) -> dict[str, Any]:
    return {
        "rmse": _dump_difference(pair.rmse),
        "mmd": None if pair.mmd is None else _dump_difference(pair.mmd),
        "seeds": list(pair.seeds),
    }


def _dump_difference(difference: Difference) -> dict[str, Any]:
    verdict = difference.verdict
    return {**asdict(difference), "verdict": None if verdict is None else verdict.value}
