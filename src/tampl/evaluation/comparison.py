"""Means over training seeds, and differences paired by seed.

    s^2 = 1 / (n - 1) sum_i (v_i - mean v)^2,        d_i = v_i - w_i,
    mean d +- t_{0.975, n-1} s_d / sqrt(n),

the last line being the 95 % interval of Student's t for the mean difference. Two methods that
share a seed start from the same encoder, so pairing takes out what that does to both. An interval
that holds zero is a tie.

Methods compared: every score over training seeds, and its difference to one of them by seed.

What does not depend on a training seed, the noise floor, the closures and the mean trajectory,
stands below the methods with a single value.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from math import isfinite, sqrt
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .metrics import FLOOR, Score, excess

__all__ = [
    "ANCHOR",
    "Comparison",
    "Difference",
    "FailedRun",
    "MethodScore",
    "PairedScore",
    "RunScore",
    "Summary",
    "Verdict",
    "compare_scores",
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
    """The summary of the values that there are; None where there are none."""
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
class RunScore:
    """What one run scored, its latent scale, and whether it ended collapsed."""

    method: str
    seed: int
    score: Score
    latent_std: float | None = None
    collapsed: bool = False


@dataclass(frozen=True)
class FailedRun:
    """A run that cannot be scored, and why."""

    method: str
    seed: int
    reason: str


@dataclass(frozen=True)
class MethodScore:
    """A row: scores over seeds.

    Attributes:
        rmse: RMSE over seeds.
        mmd: Squared MMD over seeds; None for a deterministic prediction.
        excess: Mean excess over the floor; None for the floor and where there is none.
        latent_std: Mean latent scale; None for what has no latent state.
        seeds: The seeds of the runs, in the order of the values; a baseline has none.
        collapsed: Those of them whose latent scale collapsed.
    """

    rmse: Summary
    mmd: Summary | None
    excess: Score | None = None
    latent_std: float | None = None
    seeds: tuple[int, ...] = ()
    collapsed: tuple[int, ...] = ()


@dataclass(frozen=True)
class PairedScore:
    """Differences to the anchor over the seeds that both have; no MMD without a distribution."""

    rmse: Difference
    mmd: Difference | None
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """What is known so far.

    Attributes:
        methods: The methods that are compared, in the order of the table.
        seeds: The seeds that each is to be trained with.
        scores: Rows by name: methods with one run at least, then floor, closures and mean
            trajectory.
        paired: Differences to the anchor, by method.
        failed: Runs that cannot be scored.
    """

    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    scores: Mapping[str, MethodScore]
    paired: Mapping[str, PairedScore]
    failed: tuple[FailedRun, ...] = ()

    @property
    def baselines(self) -> tuple[str, ...]:
        """The rows that are no methods."""
        return tuple(key for key in self.scores if key not in self.methods)

    @property
    def waiting(self) -> tuple[tuple[str, int], ...]:
        """Method and seed of the runs that are neither scored nor failed."""
        known = {(key, seed) for key, row in self.scores.items() for seed in row.seeds}
        known |= {(run.method, run.seed) for run in self.failed}
        wanted = [(method, seed) for seed in self.seeds for method in self.methods]
        return tuple(run for run in wanted if run not in known)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for a file."""
        return {
            "scores": {key: asdict(row) for key, row in self.scores.items()},
            "seeds": list(self.seeds),
            "paired": {key: _paired_dict(pair) for key, pair in self.paired.items()},
            "anchor": ANCHOR,
            "methods": list(self.methods),
            "failed": [asdict(run) for run in self.failed],
            "waiting": [{"method": method, "seed": seed} for method, seed in self.waiting],
        }


def compare_scores(
    runs: Sequence[RunScore],
    baselines: Mapping[str, Score],
    *,
    methods: Sequence[str],
    seeds: Sequence[int],
    failed: Sequence[FailedRun] = (),
) -> Comparison:
    """Compares the runs that there are.

    Arguments:
        runs: Scored runs, one for each method and seed at most.
        baselines: Scores of what is not trained; the floor among them gives the excess.
        methods: The methods to compare.
        seeds: The seeds to compare them over.
        failed: Runs that cannot be scored.
    """
    by_seed = {(run.method, run.seed): run for run in runs}
    own = {
        method: [by_seed[method, seed] for seed in seeds if (method, seed) in by_seed]
        for method in methods
    }
    trained = {method: found for method, found in own.items() if found}
    floor = baselines.get(FLOOR)
    rows = {method: _method_row(found, floor) for method, found in trained.items()}
    rows |= {key: _baseline_row(key, baselines[key], floor) for key in order_baselines(baselines)}
    return Comparison(tuple(methods), tuple(seeds), rows, _paired(trained), tuple(failed))


def order_baselines(keys: Mapping[str, Any]) -> list[str]:
    """Floor first, then closures as they come, the mean trajectory last.

    Example:
        >>> order_baselines({"mean_trajectory": 1, "pair": 2, "floor": 3})
        ['floor', 'pair', 'mean_trajectory']
    """
    return sorted(keys, key=lambda key: (key != FLOOR, key == "mean_trajectory"))


def _method_row(runs: Sequence[RunScore], floor: Score | None) -> MethodScore:
    scales = [run.latent_std for run in runs if run.latent_std is not None]
    return MethodScore(
        rmse=summarize(run.score.rmse for run in runs),
        mmd=summarize_known([run.score.mmd for run in runs]),
        excess=None if floor is None else _mean([excess(run.score, floor) for run in runs]),
        latent_std=summarize(scales).mean if scales else None,
        seeds=tuple(run.seed for run in runs),
        collapsed=tuple(run.seed for run in runs if run.collapsed),
    )


def _baseline_row(key: str, score: Score, floor: Score | None) -> MethodScore:
    above = None if floor is None or key == FLOOR else excess(score, floor)
    return MethodScore(summarize([score.rmse]), summarize_known([score.mmd]), above)


def _mean(scores: Sequence[Score]) -> Score:
    mmd = summarize_known([score.mmd for score in scores])
    return Score(summarize(score.rmse for score in scores).mean, mmd.mean if mmd else None)


def _paired(trained: Mapping[str, Sequence[RunScore]]) -> dict[str, PairedScore]:
    anchor = trained.get(ANCHOR, ())
    pairs = {method: _pair(runs, anchor) for method, runs in trained.items() if method != ANCHOR}
    return {method: pair for method, pair in pairs.items() if pair is not None}


def _pair(runs: Sequence[RunScore], anchor: Sequence[RunScore]) -> PairedScore | None:
    rmse = paired_difference(_rmse_by_seed(runs), _rmse_by_seed(anchor))
    if rmse is None:
        return None
    mmd = paired_difference(_mmd_by_seed(runs), _mmd_by_seed(anchor))
    common = {run.seed for run in anchor}
    return PairedScore(rmse, mmd, tuple(run.seed for run in runs if run.seed in common))


def _rmse_by_seed(runs: Sequence[RunScore]) -> dict[int, float]:
    return {run.seed: run.score.rmse for run in runs}


def _mmd_by_seed(runs: Sequence[RunScore]) -> dict[int, float]:
    return {run.seed: run.score.mmd for run in runs if run.score.mmd is not None}


def _paired_dict(pair: PairedScore) -> dict[str, Any]:
    differences = {"rmse": pair.rmse, "mmd": pair.mmd}
    plain = {key: _difference_dict(value) for key, value in differences.items()}
    return {**plain, "seeds": list(pair.seeds)}


def _difference_dict(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    verdict = difference.verdict
    return {**asdict(difference), "verdict": None if verdict is None else verdict.value}
