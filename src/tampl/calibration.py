r"""Calibration: whether an ensemble is as wide as the truth is uncertain.

A forecast is calibrated where the truth cannot be told from one more member. Of N members, the
central band of level L reaches from the quantile (1 - L) / 2 to the quantile (1 + L) / 2, with the
quantile p at the place p (N + 1) among the sorted members, so that a calibrated ensemble covers
the fraction L of the trajectories whatever its size, but for fewer than 2 / (1 - L) - 1 members,
whose whole range covers less. The *rank* of a trajectory among the members,

    u = (number of members below + (number equal + 1) U) / (N + 1),        U uniform on [0, 1],

is uniform then. Spread and error are root mean squares over initial states of the ensemble's
standard deviation and of the distance of a trajectory from the ensemble's mean, the latter times
sqrt(N / (N + 1)), which makes them equal for a calibrated ensemble.

CRPS = <|y - y_ref|> - 1/2 <|y - y'|>, the last mean over distinct members, is the price of both
errors of the mean and a wrong spread; it is in units of `scale`.

References: Gneiting, Balabdaoui and Raftery, "Probabilistic forecasts, calibration and sharpness",
JRSS B 2007; Fortin et al., "Why should ensemble spread match the RMSE of the ensemble mean?",
J. Hydrometeorology 2014.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LEVELS", "Calibration", "calibrate", "central_band"]

LEVELS = (0.5, 0.8, 0.95)
BINS = 10

_CONSTANT = 1e-12
"""An observable whose trajectories vary less than this, relative to its scale, is a constant."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """How well the spread of ensembles fits the truth, at T times after t = 0.

    Attributes:
        times: The times, (T,).
        symbols: Symbols of the m observables.
        levels: Levels of the central bands.
        coverage: Fraction of the trajectories inside each band, (levels, T, m).
        ranks: Fraction of the trajectories in each of ten equal parts of the ranks, (m, 10).
        spread: Spread of the ensembles in units of the scale, (T, m).
        error: Distance of trajectories from the ensembles' means in these units, (T, m).
        crps: Continuous ranked probability score in these units, (T, m).
        varies: Which observables vary in time; the means below leave out the others.
    """

    times: NDArray[np.float64]
    symbols: tuple[str, ...]
    levels: tuple[float, ...]
    coverage: NDArray[np.float64]
    ranks: NDArray[np.float64]
    spread: NDArray[np.float64]
    error: NDArray[np.float64]
    crps: NDArray[np.float64]
    varies: NDArray[np.bool_]

    def __str__(self) -> str:
        """Coverage and spread in a sentence."""
        covered = ", ".join(
            f"{level:.0%} band covers {self.mean_coverage(level):.0%}" for level in self.levels
        )
        return f"{covered}; spread / error {self.spread_to_error:.2f}"

    def mean_coverage(self, level: float = 0.8) -> float:
        """The fraction of all trajectories and times that the band of a level covers."""
        return float(np.nanmean(self._select_level(level)[:, self.varies]))

    def coverage_by_observable(self, level: float = 0.8) -> dict[str, float]:
        """The coverage of each observable that varies, by its symbol."""
        covered = np.nanmean(self._select_level(level), axis=0)
        kept = zip(self.symbols, covered.tolist(), self.varies, strict=True)
        return {symbol: value for symbol, value, varies in kept if varies}

    @property
    def spread_to_error(self) -> float:
        """Root mean square of the spread over that of the error; one for a calibrated ensemble."""
        # A model whose rollouts run away may have a spread whose square is beyond all numbers.
        with np.errstate(over="ignore", invalid="ignore"):
            spread, error = (np.nanmean(v[:, self.varies] ** 2) for v in (self.spread, self.error))
            return float(np.sqrt(spread / error)) if error > 0 else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {
            "times": self.times.tolist(),
            "symbols": list(self.symbols),
            "levels": list(self.levels),
            **{name: _to_plain(getattr(self, name)) for name in _CURVES},
            "varies": self.varies.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Calibration":
        """The calibration that `as_dict` turned into plain data."""
        made = cls(
            times=np.array(plain["times"], dtype=np.float64),
            symbols=tuple(map(str, plain["symbols"])),
            levels=tuple(map(float, plain["levels"])),
            varies=np.array(plain["varies"], dtype=np.bool_),
            **{name: np.array(plain[name], dtype=np.float64) for name in _CURVES},
        )
        shape = (len(made.times), len(made.symbols))
        wanted = [(len(made.levels), *shape), (shape[1], BINS), *[shape] * 3]
        found = [getattr(made, name).shape for name in _CURVES]
        if found != wanted or made.varies.shape != shape[1:]:
            raise ValueError(f"the calibration has arrays of shapes {found} in place of {wanted}")
        return made

    def plot(self, *, time_unit: str = "") -> "Figure":
        """Draws coverage and spread over time and the histogram of ranks, a column each.

        Arguments:
            time_unit: Unit of the times.
        """
        from matplotlib.figure import Figure

        rows = max(1, int(np.count_nonzero(self.varies)))
        figure = Figure(figsize=(8.2, 0.7 + 1.75 * rows), layout="constrained")
        axes = figure.subplots(rows, 3, squeeze=False)
        for row, number in zip(axes, np.flatnonzero(self.varies), strict=False):
            self._draw_row(row, int(number))
        for axis, title in zip(axes[0], ("coverage", "spread and error", "ranks"), strict=True):
            axis.set_title(title)
        unit = f"time / {time_unit}" if time_unit else "time"
        for axis, label in zip(axes[-1], (unit, unit, "rank of the truth"), strict=True):
            axis.set_xlabel(label, parse_math=False)
        for axis in axes.flat:
            axis.spines[["top", "right"]].set_visible(False)
        return figure

    def _draw_row(self, row: Sequence[Any], number: int) -> None:
        """Draws the three panels of an observable."""
        covered, widths, ranks = row
        for place, level in enumerate(self.levels):
            line = covered.plot(self.times, self.coverage[place, :, number], color=f"C{place}")
            covered.axhline(level, color=line[0].get_color(), linewidth=0.8, linestyle=":")
            covered.annotate(
                f"{level:.0%}",
                (1.01, level),
                xycoords=("axes fraction", "data"),
                color=line[0].get_color(),
                fontsize="small",
                va="center",
            )
        covered.set(ylim=(0, 1.02), ylabel=self.symbols[number])
        widths.plot(self.times, self.spread[:, number], color="C0", label="spread")
        widths.plot(self.times, self.error[:, number], color="0.35", ls="--", label="error")
        widths.set_ylim(bottom=0)
        widths.legend(frameon=False, fontsize="small")
        edges = np.linspace(0, 1, BINS + 1)
        ranks.stairs(BINS * self.ranks[number], edges, fill=True, color="C0", alpha=0.45)
        ranks.axhline(1.0, color="0.35", linewidth=0.8, linestyle=":")
        ranks.set(xlim=(0, 1), ylim=(0, None))

    def _select_level(self, level: float) -> NDArray[np.float64]:
        if level not in self.levels:
            raise InputError(f"`level` is {level}; levels are {list(self.levels)}")
        return self.coverage[self.levels.index(level)]


_CURVES = ("coverage", "ranks", "spread", "error", "crps")


def central_band(
    samples: NDArray[np.float64], level: float, *, axis: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper edge of the central band of an ensemble.

    Arguments:
        samples: Members along an axis.
        level: The fraction of the truth that a calibrated band covers.
        axis: The axis of the members.
    """
    edges = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(samples, edges, axis=axis, method="weibull")
    return low, high


def calibrate(
    samples: NDArray[Any],
    truth: NDArray[Any],
    times: NDArray[np.float64],
    symbols: Sequence[str],
    *,
    scale: NDArray[np.float64] | None = None,
) -> Calibration:
    """Compares ensembles with what really happened.

    Arguments:
        samples: Ensembles, (G, N, T + 1, m), N of two at least.
        truth: Trajectories from the same initial states, (G, N', T + 1, m); NaN where a frame is
            missing.
        times: Times of the frames, (T + 1,), of which the first, t = 0, is left out.
        symbols: Symbols of the observables.
        scale: What spread, error and CRPS are divided by, (m,); one by default.
    """
    ours, theirs = (np.asarray(y, dtype=np.float64)[:, :, 1:] for y in (samples, truth))
    if ours.shape[1] < 2 or ours.shape[::2] != theirs.shape[::2] or not ours.size:
        raise InputError(
            f"`samples` has shape {np.shape(samples)} and `truth` {np.shape(truth)}; both must be "
            "(states, members, frames, observables) with two members and two frames at least"
        )
    scale = np.ones(ours.shape[-1]) if scale is None else scale
    members, sums = ours.shape[1], _Sums(ours.shape[2:])
    uniform = np.random.default_rng(0)
    for one, paths in zip(ours / scale, theirs / scale, strict=True):
        sums.add(one, paths, uniform.random(paths.shape))
    known = np.maximum(sums.count, 1)
    empty = np.where(sums.count > 0, 1.0, np.nan)
    known_frames = np.isfinite(theirs)
    highest = np.where(known_frames, theirs, -np.inf).max(axis=2)
    reach = highest - np.where(known_frames, theirs, np.inf).min(axis=2)
    ranks = sums.ranks / np.maximum(sums.ranks.sum(axis=1, keepdims=True), 1)
    return Calibration(
        times=np.asarray(times[1:], dtype=np.float64),
        symbols=tuple(symbols),
        levels=LEVELS,
        coverage=empty * sums.covered / known,
        ranks=ranks,
        spread=empty * np.sqrt(sums.variance / known),
        error=empty * np.sqrt(sums.squares / known * members / (members + 1)),
        crps=empty * sums.crps / known,
        varies=np.asarray((reach / scale).max(axis=(0, 1)) > _CONSTANT),
    )


class _Sums:
    """Sums over initial states and trajectories at every time, of one initial state at a time."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count, self.variance, self.squares, self.crps = (np.zeros(shape) for _ in range(4))
        self.covered = np.zeros((len(LEVELS), *shape))
        self.ranks = np.zeros((shape[-1], BINS))

    def add(
        self, members: NDArray[np.float64], paths: NDArray[np.float64], u: NDArray[np.float64]
    ) -> None:
        """Adds ensemble (N, T, m) and trajectories (N', T, m); u breaks ties of ranks."""
        known = np.isfinite(paths)
        count, total = known.sum(axis=0), len(members)
        paths = np.where(known, paths, 0.0)
        self.count += count
        self.variance += count * members.var(axis=0, ddof=1)
        self.squares += (known * (paths - members.mean(axis=0)) ** 2).sum(axis=0)
        for place, level in enumerate(LEVELS):
            low, high = central_band(members, level, axis=0)
            self.covered[place] += (known & (paths >= low) & (paths <= high)).sum(axis=0)
        apart = members[:, None] - paths
        self.crps += (known * np.abs(apart).mean(axis=0)).sum(axis=0)
        # Of sorted members, |y - y'| over distinct pairs is a weighted sum.
        weights = 2.0 * np.arange(total) - (total - 1)
        pairs = np.tensordot(weights, np.sort(members, axis=0), axes=1)
        self.crps -= count * pairs / (total * (total - 1))
        rank = ((apart < 0).sum(axis=0) + ((apart == 0).sum(axis=0) + 1) * u) / (total + 1)
        place = np.minimum((rank * BINS).astype(int), BINS - 1)
        for number in range(self.ranks.shape[0]):
            own = place[..., number][known[..., number]]
            self.ranks[number] += np.bincount(own, minlength=BINS)


def _to_plain(values: NDArray[np.float64]) -> list[Any]:
    """Nested lists, with None for what is not known."""
    rounded = np.round(values, 6).astype(object)
    rounded[~np.isfinite(values)] = None
    return rounded.tolist()
