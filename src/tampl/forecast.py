r"""Ensembles of macroscopic trajectories from initial microstates: the paper's Algorithm 2.

Base noise is drawn on the CPU from one stream per initial microstate, so a forecast has the same
noise whatever the device and however many microstates are forecast at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .errors import InputError
from .files import replacing
from .models import MacroModel
from .progress import bar
from .seeding import torch_generator

__all__ = ["Forecast", "forecast"]

ROWS = 8192
"""Ensemble members carried through the networks at once; larger gains nothing on two CPU cores."""

ENCODED = 512
"""Microstates encoded at once, which bounds the memory of a deterministic model's forecast."""


@dataclass(frozen=True)
class Forecast:
    """An ensemble of macroscopic trajectories for each initial microstate.

    Attributes:
        samples: Macrostates in physical units, (G, N, H + 1, m), the first at t = 0.
        times: Times of the frames, (H + 1,).
        symbols: Symbols of the m observables.
        units: Their units.
    """

    samples: NDArray[np.float64]
    times: NDArray[np.float64]
    symbols: tuple[str, ...]
    units: tuple[str, ...]

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

    def quantiles(self, q: Sequence[float] = (0.05, 0.5, 0.95)) -> NDArray[np.float64]:
        """Quantiles over the ensemble, (len(q), G, H + 1, m)."""
        return np.quantile(self.samples, q, axis=1)

    def save(self, path: Path) -> None:
        """Writes samples, mean, std, quantiles and labels to an .npz file, whole or not at all."""
        q = (0.05, 0.5, 0.95)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(
                file,
                samples=self.samples,
                mean=self.mean,
                std=self.std,
                quantile_levels=np.array(q),
                quantiles=self.quantiles(q),
                times=self.times,
                symbols=np.array(self.symbols),
                units=np.array(self.units),
            )

    @classmethod
    def load(cls, path: Path) -> "Forecast":
        """Reads what `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            return cls(
                samples=file["samples"],
                times=file["times"],
                symbols=tuple(file["symbols"].tolist()),
                units=tuple(file["units"].tolist()),
            )


def forecast(
    model: MacroModel,
    microstates: NDArray[Any],
    *,
    horizon: int,
    members: int = 64,
    seed: int = 0,
    macrostates: NDArray[Any] | None = None,
    progress: bool = True,
) -> Forecast:
    """Forecasts the observables of a system from its microstates at t = 0.

    Arguments:
        model: A trained model, on the device to use.
        microstates: One microstate in stored form, or several stacked, (G, *shape). Particles may
            be more or fewer than the model was trained on.
        horizon: Number H of frames ahead.
        members: Trajectories per microstate; a deterministic model gives one.
        seed: Governs the ensemble.
        macrostates: Macrostates at t = 0 in physical units, (G, m); only a model without encoder
            needs them.
        progress: Whether to show a bar.

    Example:
        >>> forecast(model, lattice, horizon=40, members=64, seed=1).mean  # doctest: +SKIP
    """
    if horizon < 1 or members < 1:
        raise InputError(f"`horizon` is {horizon}, `members` is {members}; both must be positive")
    kind = model.description.microstate
    states = kind.check(np.asarray(microstates), "`microstates`")
    if states.ndim > len(kind.shape) + 1:
        raise InputError(f"`microstates` has shape {states.shape}; stack them along one axis only")
    # The kind says how many axes a microstate has; sets of particles may be of any size.
    states = states.reshape(-1, *states.shape[-len(kind.shape) :])
    if not len(states):
        raise InputError("`microstates` is empty; give one microstate at least")
    start = _macrostates_at_start(model, macrostates, len(states))
    members = members if model.stochastic else 1
    per_chunk = max(1, min(ENCODED, ROWS // members))
    chunks = range(0, len(states), per_chunk)
    samples = np.empty((len(states), members, horizon + 1, len(model.description.observables)))
    with bar("forecasting", len(chunks), visible=progress) as advance:
        for first in chunks:
            chunk = slice(first, first + per_chunk)
            z = _encode(model, states[chunk], start[chunk])
            noise = _noise(model, z, horizon, members, seed=seed, first=first)
            samples[chunk] = _rollout(model, z, noise)
            advance("")
    observables = model.description.observables
    return Forecast(
        samples=samples,
        times=model.description.interval * np.arange(horizon + 1, dtype=np.float64),
        symbols=tuple(observable.symbol for observable in observables),
        units=tuple(observable.unit for observable in observables),
    )


def _macrostates_at_start(
    model: MacroModel, macrostates: NDArray[Any] | None, count: int
) -> NDArray[np.float64]:
    shape = (count, len(model.description.observables))
    if not model.needs_macrostates:
        return np.zeros(shape)  # nobody looks at them
    start = np.asarray(() if macrostates is None else macrostates, dtype=np.float64)
    if start.shape != shape or not np.isfinite(start).all():
        raise InputError(
            f"`macrostates` has shape {start.shape}; the model starts from the macrostates at "
            f"t = 0, finite numbers of shape {shape} for these microstates"
        )
    return start


@torch.inference_mode()
def _encode(model: MacroModel, states: NDArray[Any], macrostates: NDArray[Any]) -> Tensor:
    device = model.y_mean.device
    # Copies, because torch takes no array that is read-only or runs backwards.
    both = (torch.from_numpy(array.copy()).to(device) for array in (states, macrostates))
    return model.encode(*both)


def _noise(
    model: MacroModel, z: Tensor, horizon: int, members: int, *, seed: int, first: int
) -> Tensor:
    shape = (horizon, members, model.transition.noise_dim)
    streams = (torch_generator(seed, "forecast", first + g) for g in range(len(z)))
    drawn = [torch.randn(shape, generator=stream) for stream in streams]
    return torch.stack(drawn, dim=1).to(z.device, z.dtype)


@torch.inference_mode()
def _rollout(model: MacroModel, z: Tensor, noise: Tensor) -> NDArray[np.float64]:
    """Macrostates (G, N, H + 1, m) from latent states (G, d) and noise (H, G, N, noise_dim)."""
    groups, members = noise.shape[1:3]
    rows = z.repeat_interleave(members, dim=0)
    y = torch.stack(list(model.rollout(rows, noise.flatten(1, 2))), dim=1)
    return y.unflatten(0, (groups, members)).cpu().numpy()
