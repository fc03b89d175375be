"""Forecasts: ensembles of macroscopic trajectories from initial microstates, or their moments."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .calibration import Calibration, calibrate, central_band
from .errors import InputError
from .files import read_arrays, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Forecast", "Moments"]

MANY_HELD = 0.05
"""A forecast of which more members and times than this are held is warned of."""

DISAGREEMENT = 0.25
"""Models whose means are farther apart than this, in units of the training set's standard
deviation, are warned of."""

_QUANTILES = (0.05, 0.5, 0.95)
_BAND = 0.8


@dataclass(frozen=True, eq=False)
class Forecast:
    """An ensemble of macroscopic trajectories for each initial microstate.

    Attributes:
        samples: Macrostates in physical units, (G, N, H + 1, m), the first at t = 0.
        times: Times of the frames, (H + 1,).
        symbols: Symbols of the m observables.
        units: Their units.
        time_unit: Unit of the times.
        inside: Which members were inside the envelope of the training data at each time, before
            they were held there, (G, N, H + 1); at t = 0 whether the initial state is. None
            where there was no envelope.
        observed: Whether the forecast starts from observed macrostates; else R(E(x_0)) stands in.
        disagreement: For forecasts of several models, how far apart their means are by initial
            state, (G,), in units of the training set's standard deviation; None for one model.
    """

    samples: NDArray[np.float64]
    times: NDArray[np.float64]
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    time_unit: str = ""
    inside: NDArray[np.bool_] | None = None
    observed: bool = False
    disagreement: NDArray[np.float64] | None = None

    @property
    def members(self) -> int:
        """The number N of members."""
        return self.samples.shape[1]

    @property
    def held(self) -> float | None:
        """The fraction of members and times after t = 0 that were held inside the envelope.

        None where nothing was held because there was no envelope.
        """
        return None if self.inside is None else float(1 - self.inside[:, :, 1:].mean())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the forecast is not to be trusted, one line each; none for a sound one."""
        free = None if self.inside is None else self.inside.mean(axis=1)
        return _find_doubts(free, self.disagreement)

    def __repr__(self) -> str:
        states, members, frames = self.samples.shape[:3]
        return (
            f"Forecast({states} initial states, {members} members, {frames - 1} frames ahead to "
            f"t = {self.times[-1]:g}; observables: {', '.join(self.symbols)})"
        )

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean over the ensemble, (G, H + 1, m)."""
        return self.samples.mean(axis=1)

    @property
    def std(self) -> NDArray[np.float64]:
        """Sample standard deviation over the ensemble, (G, H + 1, m); zero for one member."""
        if self.samples.shape[1] == 1:
            return np.zeros_like(self.samples[:, 0])
        return self.samples.std(axis=1, ddof=1)

    def pool(self, others: Sequence["Forecast"], disagreement: NDArray[np.float64]) -> "Forecast":
        """All members of this forecast and of others of the same initial states together.

        Arguments:
            others: Forecasts of other models.
            disagreement: How far apart the models are, (G,).
        """
        pooled = [self, *others]
        known = [each.inside for each in pooled if each.inside is not None]
        return replace(
            self,
            samples=np.concatenate([each.samples for each in pooled], axis=1),
            inside=np.concatenate(known, axis=1) if len(known) == len(pooled) else None,
            disagreement=disagreement,
        )

    def quantiles(self, q: Sequence[float] = _QUANTILES) -> NDArray[np.float64]:
        """Quantiles over the ensemble, (len(q), G, H + 1, m)."""
        return np.quantile(self.samples, q, axis=1)

    def calibrate(self, truth: ArrayLike) -> Calibration:
        """Compares spread and quantiles with what really happened, in units of the observables.

        Arguments:
            truth: One trajectory for each initial state, (G, F, m), or several, (G, N, F, m).

        Example:
            >>> print(forecast.calibrate(test.y))  # doctest: +SKIP
        """
        paths = self._check_truth(np.asarray(truth))
        frames = paths.shape[2]
        return calibrate(self.samples[:, :, :frames], paths, self.times[:frames], self.symbols)

    def plot(self, truth: ArrayLike | None = None, *, states: int = 3) -> "Figure":
        """Draws the mean and the central band that should cover 80 % of every observable.

        Arguments:
            truth: What really happened, to be drawn beside: one trajectory for each initial state,
                (G, F, m), or several, (G, N, F, m).
            states: How many of the initial states to show, one row each.

        Returns:
            A Matplotlib figure, which a notebook shows by itself; `figure.savefig(path)` keeps it.
        """
        paths = None if truth is None else self._check_truth(np.asarray(truth))
        return _draw(
            self,
            central_band(self.samples, _BAND),
            "80 % band",
            paths,
            min(states, len(self.samples)),
        )

    def to_xarray(self) -> Any:  # noqa: ANN401
        """The ensemble as an `xarray.DataArray` with named axes; needs `tampl[xarray]`."""
        try:
            import xarray
        except ImportError as error:
            raise InputError("`to_xarray` needs xarray: pip install 'tampl[xarray]'") from error
        return xarray.DataArray(
            self.samples,
            dims=("state", "member", "time", "observable"),
            coords={
                "time": ("time", self.times, {"units": self.time_unit}),
                "observable": list(self.symbols),
                "unit": ("observable", list(self.units)),
            },
            name="forecast",
        )

    def save(self, path: str | Path) -> None:
        """Writes samples, mean, std, quantiles and labels to an .npz file, whole or not at all."""
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez(
                file,
                samples=self.samples,
                mean=self.mean,
                std=self.std,
                quantile_levels=np.array(_QUANTILES),
                quantiles=self.quantiles(_QUANTILES),
                times=self.times,
                symbols=np.array(self.symbols),
                units=np.array(self.units),
                time_unit=np.array(self.time_unit),
                observed=np.array(self.observed),
                inside=np.zeros(0, np.bool_) if self.inside is None else self.inside,
                disagreement=np.zeros(0) if self.disagreement is None else self.disagreement,
            )

    @classmethod
    def load(cls, path: str | Path) -> "Forecast":
        """Reads what `save` wrote."""
        file = read_arrays(Path(path), "forecast again")
        try:
            apart = file["disagreement"] if "disagreement" in file else np.zeros(0)
            return cls(
                samples=file["samples"],
                times=file["times"],
                symbols=tuple(file["symbols"].tolist()),
                units=tuple(file["units"].tolist()),
                time_unit=str(file["time_unit"]) if "time_unit" in file else "",
                inside=file["inside"] if "inside" in file and file["inside"].size else None,
                observed=bool(file["observed"]) if "observed" in file else False,
                disagreement=apart if apart.size else None,
            )
        except KeyError as error:
            raise InputError(f"{path} is no forecast: it lacks {error}; forecast again") from error
        # Arrays of other shapes and types than those that are saved.
        except (TypeError, ValueError) as error:
            raise InputError(f"{path} is damaged ({error}); forecast again") from error

    def _check_truth(self, truth: NDArray[Any]) -> NDArray[np.float64]:
        """Trajectories (G, N, F, m) with F at most the forecast's number of frames."""
        states, _, frames, features = self.samples.shape
        paths = truth[:, None] if truth.ndim == 3 else truth
        if paths.ndim != 4 or len(paths) != states or paths.shape[-1] != features:
            raise InputError(
                f"`truth` has shape {truth.shape}; give ({states}, F, {features}), or "
                f"({states}, N, F, {features}) for several trajectories of each initial state"
            )
        return np.asarray(paths[:, :, :frames], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and standard deviation of an ensemble whose members were not kept.

    Attributes:
        mean: Mean over the ensemble in physical units, (G, H + 1, m).
        std: Sample standard deviation over the ensemble, likewise; zero for one member.
        members: Number of members.
        times: Times of the frames, (H + 1,).
        symbols: Symbols of the m observables.
        units: Their units.
        time_unit: Unit of the times.
        free: The fraction of the members that were inside the envelope at each time, before they
            were held there, (G, H + 1); None where there was no envelope.
        observed: Whether the forecast starts from observed macrostates.
        disagreement: As that of a `Forecast`.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    members: int
    times: NDArray[np.float64]
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    time_unit: str = ""
    free: NDArray[np.float64] | None = None
    observed: bool = False
    disagreement: NDArray[np.float64] | None = None

    @property
    def held(self) -> float | None:
        """The fraction of members and times after t = 0 that were held inside the envelope."""
        return None if self.free is None else float(1 - self.free[:, 1:].mean())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the forecast is not to be trusted, one line each; none for a sound one."""
        return _find_doubts(self.free, self.disagreement)

    def __repr__(self) -> str:
        states, frames = self.mean.shape[:2]
        return (
            f"Moments({states} initial states, {self.members} members, {frames - 1} frames ahead "
            f"to t = {self.times[-1]:g}; observables: {', '.join(self.symbols)})"
        )

    def pool(self, others: Sequence["Moments"], disagreement: NDArray[np.float64]) -> "Moments":
        """The moments of all members together, with the arguments of `Forecast.pool`."""
        pooled = [self, *others]
        members = sum(each.members for each in pooled)
        share = [each.members / members for each in pooled]
        mean = sum(w * each.mean for w, each in zip(share, pooled, strict=True))
        squares = sum(
            (each.members - 1) * each.std**2 + each.members * (each.mean - mean) ** 2
            for each in pooled
        )
        known = [
            w * each.free for w, each in zip(share, pooled, strict=True) if each.free is not None
        ]
        return replace(
            self,
            mean=np.asarray(mean),
            std=np.sqrt(np.asarray(squares) / (members - 1)),
            members=members,
            free=np.sum(known, axis=0) if len(known) == len(pooled) else None,
            disagreement=disagreement,
        )

    def plot(self, *, states: int = 3) -> "Figure":
        """Draws the mean and one standard deviation on either side.

        Arguments:
            states: How many of the initial states to show, one row each.
        """
        band = (self.mean - self.std, self.mean + self.std)
        return _draw(self, band, "standard deviation", None, min(states, len(self.mean)))

    def save(self, path: str | Path) -> None:
        """Writes mean, std and labels to an .npz file, whole or not at all."""
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez(
                file,
                mean=self.mean,
                std=self.std,
                members=np.array(self.members),
                times=self.times,
                symbols=np.array(self.symbols),
                units=np.array(self.units),
                time_unit=np.array(self.time_unit),
                observed=np.array(self.observed),
            )


def _find_doubts(
    free: NDArray[np.float64] | None, disagreement: NDArray[np.float64] | None
) -> tuple[str, ...]:
    """Warnings of a forecast.

    Arguments:
        free: Fraction of the members inside the envelope, (G, H + 1), or None.
        disagreement: How far apart the means of several models are, (G,), or None.
    """
    lines = []
    if free is not None:
        outside, fractions = np.count_nonzero(free[:, 0] < 0.5), 1 - free[:, 1:].mean(axis=1)
        if outside:
            lines.append(
                f"{outside} of {len(free)} initial states lie outside of the training data: their "
                "forecasts are extrapolations"
            )
        if many := np.count_nonzero(fractions > MANY_HELD):
            lines.append(
                f"in {many} of {len(free)} forecasts more than {MANY_HELD:.0%} of the members ran "
                f"out of the training data and were held there (up to {fractions.max():.0%})"
            )
    if disagreement is not None and (apart := np.count_nonzero(disagreement > DISAGREEMENT)):
        lines.append(
            f"in {apart} of {len(disagreement)} forecasts the models disagree: their means are "
            f"more than {DISAGREEMENT:g} standard deviations of the training data apart (up to "
            f"{disagreement.max():.2g})"
        )
    return tuple(lines)


def _draw(
    forecast: Forecast | Moments,
    band: tuple[NDArray[np.float64], NDArray[np.float64]],
    name: str,
    truth: NDArray[np.float64] | None,
    rows: int,
) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = len(forecast.symbols)
    size = (1.2 + 3.0 * columns, 0.6 + 2.0 * rows)
    figure = Figure(figsize=size, layout="constrained")
    # A notebook asks any object for its picture by this name; no window system is involved.
    figure._repr_png_ = lambda: _render(FigureCanvasAgg(figure))  # type: ignore[attr-defined]
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True)
    low, high = band
    labels = [
        f"{s} / {u}" if u else s for s, u in zip(forecast.symbols, forecast.units, strict=True)
    ]
    for row in range(rows):
        for column, axis in enumerate(axes[row]):
            edges = (low[row, :, column], high[row, :, column])
            if truth is not None:
                paths = truth[row, :, :, column]
                times = forecast.times[: paths.shape[1]]
                axis.plot(times, paths.T, color="0.25", linewidth=0.8, alpha=0.6, zorder=1)
            axis.fill_between(forecast.times, *edges, color="C0", alpha=0.25, linewidth=0)
            axis.plot(forecast.times, forecast.mean[row, :, column], color="C0", linewidth=1.8)
            axis.set_title(labels[column] if row == 0 else "")
            axis.spines[["top", "right"]].set_visible(False)
        axes[row, 0].set_ylabel(f"initial state {row}")
    for axis in axes[-1]:
        axis.set_xlabel(f"time / {forecast.time_unit}" if forecast.time_unit else "time")
    said = f"mean and {name} of the forecast" + ("" if truth is None else "; truth in gray")
    said = "\n".join([said, *forecast.warnings])
    figure.suptitle(said, fontsize="medium", x=0.01, ha="left")
    return figure


def _render(canvas: Any) -> bytes:  # noqa: ANN401
    from io import BytesIO

    buffer = BytesIO()
    canvas.print_png(buffer)
    return buffer.getvalue()
