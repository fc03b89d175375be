"""How far predicted macrostates are from simulated ones: RMSE of ensemble means, marginal MMD.

For G initial microstates, N members each, T evaluation times (t = 0 excluded) and D features, all
standardised with the training statistics,

    RMSE^2 = mean_{g,t,j} (<y>_{g,t,j} - <y_ref>_{g,t,j})^2,
    MMD^2  = mean_{g,t,j} [ <k(y, y')> + <k(y_ref, y_ref')> - 2 <k(y, y_ref)> ],

where <.> is the mean over members, or over all ordered pairs of members, diagonals included (the
biased estimator), and k(a, b) = exp(-(a - b)^2 / 2). The squared MMD is reported as it is, without
a root. With kappa the mean of k over *distinct* members, <k(y, y')> = (1 + (N - 1) kappa) / N.

The *floor* is the score of a perfect model, when only the noise of finite ensembles remains. Two
independent ensembles of N members of the same process differ by chance. With s^2 the unbiased
variance over members,

    E[RMSE^2] = mean_{g,t,j} 2 s^2 / N,        E[MMD^2] = (2 / N) (1 - kappa),

both computed from the references alone; no second ensemble is simulated. The root of E[RMSE^2] is
given as RMSE: over many microstates, times and features the two differ by less than their noise.

The *excess* is what remains of a score when that noise is taken away. Squares add, so it is
sqrt(RMSE^2 - RMSE_floor^2) and MMD^2 - MMD^2_floor. A deterministic forecast meets only the
references' half of RMSE_floor^2, and has no MMD.

CRPS = <|y - y_ref|> - 1/2 <|y - y'|>, the last mean over distinct members, is what an ensemble is
worth against single trajectories.

Where frames are missing (NaN) in the reference, the means run over the frames that exist: a
marginal with N_gt reference members is compared with all N of the forecast, and its floor is
s^2 (1/N + 1/N_gt) instead of 2 s^2 / N. A marginal without reference does not count, and the CRPS
is the mean over all single trajectories and times.

References: the paper's appendix "Metric Definitions and Evaluation Details"; Gneiting and Raftery,
"Strictly proper scoring rules, prediction, and estimation", JASA 2007.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data.dataset import Normalization
from ..errors import InputError

__all__ = [
    "FLOOR",
    "Marginals",
    "Score",
    "crps",
    "distinct_kernel_mean",
    "excess",
    "floor",
    "leave_out_holes",
    "marginal_mmd2",
    "rmse",
    "score",
    "standardized_future",
]

# Differences held at once, 8 MB: 200 x 64 x 100 x 3 takes 1.6 s on two cores, against 4.2 s with
# 64 MB; 2 MB is no better, at four times the calls.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Score:
    """RMSE of the means and marginal MMD^2, in standardised units; no MMD without an ensemble."""

    rmse: float
    mmd: float | None

    @classmethod
    def from_dict(cls, plain: Mapping[str, float | None]) -> "Score":
        """The score in a file, which has null in place of an RMSE that is not finite."""
        rmse, mmd = plain["rmse"], plain["mmd"]
        return cls(nan if rmse is None else float(rmse), None if mmd is None else float(mmd))


def score(predicted: NDArray[Any], reference: NDArray[Any], normalization: Normalization) -> Score:
    """Scores a forecast against simulations from the same initial microstates.

    Arguments:
        predicted: An ensemble (G, N, F, m) or one deterministic trajectory for each initial
            microstate (G, F, m), in physical units, frame t = 0 included (it is not scored).
        reference: Simulated ensemble (G, N', F, m) in physical units, frame t = 0 included; NaN
            in frames that are missing.
        normalization: The training data's statistics.

    Returns:
        The score; `mmd` is None for a deterministic prediction. A forecast that is not finite
        scores NaN.
    """
    predicted, reference = np.asarray(predicted), np.asarray(reference)
    _check_forecast(predicted, reference)
    ours = standardized_future(predicted, normalization)
    truth = standardized_future(reference, normalization)
    ensembles = ours[:, None] if predicted.ndim == 3 else ours
    parts = leave_out_holes(ensembles, truth)
    error = sum(p.share * _mean_square(p.ours.mean(axis=1), p.truth.mean(axis=1)) for p in parts)
    root = float(np.sqrt(error))
    if predicted.ndim == 3:
        return Score(root, None)
    return Score(root, sum(p.share * marginal_mmd2(p.ours, p.truth) for p in parts))


def crps(predicted: NDArray[Any], reference: NDArray[Any], normalization: Normalization) -> float:
    """The continuous ranked probability score against each single trajectory, mean of all.

    Arguments:
        predicted: An ensemble (G, N, F, m) in physical units, frame t = 0 included (it is not
            scored). One member is a deterministic prediction.
        reference: Trajectories (G, N', F, m), likewise.
        normalization: The training data's statistics.
    """
    ours, truth = (standardized_future(y, normalization) for y in (predicted, reference))
    parts = leave_out_holes(ours, truth, single=True)
    return sum(p.share * _crps(_member_rows(p.ours), _member_rows(p.truth)) for p in parts)


def _crps(ours: Tensor, truth: Tensor) -> float:
    members, pairs = ours.shape[1], ours.shape[1] * truth.shape[1]
    parts = zip(_parts(ours, pairs, _BLOCK), _parts(truth, pairs, _BLOCK), strict=True)
    apart = sum((u[:, :, None] - v[:, None, :]).abs_().sum().item() for u, v in parts)
    error = apart / (len(ours) * pairs)
    if members == 1:
        return error
    # Of sorted members, |y - y'| over distinct pairs is a weighted sum.
    weights = 2.0 * torch.arange(members, dtype=torch.float64) - (members - 1)
    within = (ours.sort(dim=1).values @ weights).mean().item() * 2 / (members * (members - 1))
    return error - within / 2


def rmse(predicted_mean: NDArray[Any], reference_mean: NDArray[Any]) -> float:
    """Root mean square difference of standardised ensemble means, both (G, T, D)."""
    ours = np.asarray(predicted_mean, dtype=np.float64)
    truth = np.asarray(reference_mean, dtype=np.float64)
    if ours.ndim != 3 or ours.shape != truth.shape or not ours.size:
        raise InputError(
            f"`predicted_mean` has shape {ours.shape} and `reference_mean` {truth.shape}; both "
            "must be the same non-empty (G, T, D): microstates, times, features"
        )
    return float(np.sqrt(_mean_square(ours, truth)))


def _mean_square(ours: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.mean((ours - truth) ** 2))


@dataclass(frozen=True)
class Marginals:
    """Marginals of which all have the same number of reference members.

    Attributes:
        ours: The forecast's members, (G, N, T, D).
        truth: The references, (G, N', T, D), without missing frames.
        share: The weight of these marginals among all.
    """

    ours: NDArray[np.float64]
    truth: NDArray[np.float64]
    share: float


def leave_out_holes(
    ours: NDArray[np.float64], truth: NDArray[np.float64], *, least: int = 1, single: bool = False
) -> list[Marginals]:
    """Sorts marginals by the number of reference members that exist; shares add up to one.

    Arguments:
        ours: An ensemble (G, N, T, D).
        truth: References (G, N', T, D), NaN in missing frames.
        least: Marginals with fewer reference members do not count.
        single: Whether a marginal counts once for each of its reference members.
    """
    if not np.isnan(truth).any():
        return [Marginals(ours, truth, 1.0)]
    # One row for each microstate and time: (G, T, N, D).
    ours, truth = (each.swapaxes(1, 2) for each in (ours, truth))
    there = ~np.isnan(truth[..., 0])
    count = there.sum(axis=2)
    weight = np.where(count >= least, count if single else 1, 0)
    if not weight.any():
        raise InputError(
            f"`reference` has no time after t = 0 with {least} trajectories at least: nothing can "
            "be scored"
        )
    return [
        Marginals(
            ours[rows][:, :, None],
            truth[rows][there[rows]].reshape(-1, number, 1, truth.shape[-1]),
            float(weight[rows].sum() / weight.sum()),
        )
        for number in np.unique(count[weight > 0])
        for rows in [count == number]
    ]


def marginal_mmd2(
    predicted: NDArray[Any], reference: NDArray[Any], *, block: int = _BLOCK
) -> float:
    """Squared MMD of scalar marginals, averaged over microstates, times and features.

    Arguments:
        predicted: Standardised ensemble (G, N, T, D).
        reference: Standardised ensemble (G, N', T, D).
        block: How many differences are held in memory at once; the result does not depend on it.
    """
    _check_ensembles(np.shape(predicted), np.shape(reference))
    within = _own_kernel_mean(predicted, block) + _own_kernel_mean(reference, block)
    return within - 2.0 * _cross_kernel_mean(predicted, reference, block)


def distinct_kernel_mean(ensemble: NDArray[Any], *, block: int = _BLOCK) -> float:
    """Mean of k over distinct members, microstates, times and features of one (G, N, T, D)."""
    rows = _member_rows(ensemble)
    first, second = torch.triu_indices(rows.shape[1], rows.shape[1], offset=1)
    total = sum(
        _kernel_sum(part[:, first] - part[:, second]) for part in _parts(rows, len(first), block)
    )
    return total / max(rows.shape[0] * len(first), 1)


def standardized_future(y: NDArray[Any], normalization: Normalization) -> NDArray[np.float64]:
    """Macrostates (..., F, m) in standardised units without frame t = 0: (..., F - 1, m)."""
    future = np.asarray(y, dtype=np.float64)[..., 1:, :]
    return np.asarray(normalization.standardize(future), dtype=np.float64)


def _own_kernel_mean(ensemble: NDArray[Any], block: int) -> float:
    members = ensemble.shape[1]
    return (1.0 + (members - 1) * distinct_kernel_mean(ensemble, block=block)) / members


def _cross_kernel_mean(a: NDArray[Any], b: NDArray[Any], block: int) -> float:
    rows_a, rows_b = _member_rows(a), _member_rows(b)
    pairs = rows_a.shape[1] * rows_b.shape[1]
    parts = zip(_parts(rows_a, pairs, block), _parts(rows_b, pairs, block), strict=True)
    total = sum(_kernel_sum(u[:, :, None] - v[:, None, :]) for u, v in parts)
    return total / (rows_a.shape[0] * pairs)


def _member_rows(ensemble: NDArray[Any]) -> Tensor:
    """(G, N, T, D) to one row of members for each scalar marginal, (G T D, N)."""
    values = torch.from_numpy(np.array(ensemble, dtype=np.float64))
    return values.permute(0, 2, 3, 1).reshape(-1, values.shape[1])


def _parts(rows: Tensor, pairs: int, block: int) -> Iterator[Tensor]:
    return iter(rows.split(max(block // max(pairs, 1), 1)))


def _kernel_sum(difference: Tensor) -> float:
    """Sum of exp(-d^2 / 2); overwrites its argument, which nobody else holds."""
    return difference.square_().mul_(-0.5).exp_().sum().item()


def _check_ensembles(predicted: tuple[int, ...], reference: tuple[int, ...]) -> None:
    drop = lambda shape: (shape[0], *shape[2:])
    if (
        not len(predicted) == len(reference) == 4
        or drop(predicted) != drop(reference)
        or 0 in predicted + reference
    ):
        raise InputError(
            f"`predicted` has shape {predicted} and `reference` {reference}; both must be "
            "non-empty (G, N, T, D) that agree in microstates G, times T and features D"
        )


def _check_forecast(predicted: NDArray[Any], reference: NDArray[Any]) -> None:
    if reference.ndim != 4 or reference.shape[2] < 2:
        raise InputError(
            f"`reference` has shape {reference.shape}; it must be an ensemble (G, N, F, m) with "
            "the frame t = 0 and at least one more"
        )
    if predicted.ndim not in (3, 4):
        raise InputError(
            f"`predicted` has shape {predicted.shape}; it must be an ensemble (G, N, F, m) or a "
            "deterministic trajectory (G, F, m)"
        )
    ensemble = predicted if predicted.ndim == 4 else predicted[:, None]
    _check_ensembles(ensemble.shape, reference.shape)


FLOOR = "floor"
"""The key of the floor among scores: the one baseline that others exceed, and first of them."""


def floor(reference: NDArray[Any], normalization: Normalization) -> Score:
    """Expected score of a perfect model with as many members as the references.

    Arguments:
        reference: Simulated ensemble (G, N, F, m) in physical units, frame t = 0 included.
        normalization: The training data's statistics.
    """
    reference = np.asarray(reference)
    if reference.ndim != 4 or 0 in reference.shape or min(reference.shape[1:3]) < 2:
        raise InputError(
            f"`reference` has shape {reference.shape}; the floor needs an ensemble (G, N, F, m) "
            "of at least two members, with the frame t = 0 and at least one more"
        )
    members = reference.shape[1]
    truth = standardized_future(reference, normalization)
    variance = mmd = 0.0
    for part in leave_out_holes(truth, truth, least=2):
        # The noise of both ensembles, of which the references' may have fewer members.
        noise = part.share * (1.0 + members / part.truth.shape[1])
        variance += noise * part.truth.var(axis=1, ddof=1).mean()
        mmd += noise * (1.0 - distinct_kernel_mean(part.truth))
    return Score(float(np.sqrt(variance / members)), mmd / members)


def excess(score: Score, floor: Score) -> Score:
    """The excess of a score over the floor; an RMSE below the floor, which is chance, has none.

    Example:
        >>> excess(Score(0.5, 0.75), Score(0.3, 0.25))
        Score(rmse=0.4, mmd=0.5)
    """
    if score.mmd is None or floor.mmd is None:
        return Score(_subtract_noise(score.rmse, floor.rmse**2 / 2), None)
    return Score(_subtract_noise(score.rmse, floor.rmse**2), score.mmd - floor.mmd)


def _subtract_noise(rmse: float, noise: float) -> float:
    # In this order: the larger of 0 and NaN is 0, and a forecast that blew up is not perfect.
    return sqrt(max(rmse * rmse - noise, 0.0))
