r"""Where matter is: density in a region, number of particles, structure factor.

The structure factor of N particles at r_j is S(k) = |sum_j exp(i k.r_j)|^2 / N. On a grid it is
that of the field phi of N sites (1 for a site in the chosen state and 0 elsewhere, or the gray
level of a pixel) about its mean, S(k) = |sum_j (phi_j - mean phi) exp(i k.r_j)|^2 / N. The wave
vectors are k = 2 pi (n_1 / L_1, n_2 / L_2, ...) with whole n, not all zero, and S(k) is averaged
over shells of width 2 pi / max L around the lengths |k| = 2 pi / max L, 4 pi / max L, ...
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from ..description import Observable
from ..errors import InputError
from ..microstates import Image, Lattice, Microstate, Particles
from .base import Interval, ObservableMap, Observer
from .lattices import refuse_unknown_state
from .points import AXES, Boxed, read_boxed, refuse_unknown_type

__all__ = ["Density", "MeanWavenumber", "ParticleNumber", "StructureFactorPeak"]

_GRIDS = (Lattice, Image)
_BRIGHTEST = 255


class Density(ObservableMap):
    """Density in a region: particles per volume, fraction of sites, or mean gray level.

    Attributes:
        x: The region along x, as fractions of the edge, 0 to 1; by default all of it.
        y: The same along y. On a grid x counts columns, and y rows.
        z: The same along z.
        state: The state of counted sites; for lattices.
        type: The type of counted particles; by default any.
        unit: Unit of lengths; for particles.
    """

    name: Literal["density"] = "density"
    x: Interval = (0.0, 1.0)
    y: Interval = (0.0, 1.0)
    z: Interval = (0.0, 1.0)
    state: NonNegativeInt = 1
    type: PositiveInt | None = None
    unit: str = ""
    kinds: ClassVar = (Lattice, Image, Particles)

    @model_validator(mode="after")
    def _refuse_empty_region(self) -> "Density":
        for axis in AXES:
            low, high = getattr(self, axis)
            if not 0 <= low < high <= 1:
                raise InputError(
                    f"`{axis}` is {low:g}..{high:g}; give a range within 0..1, in units of the "
                    "edge, as in density:x=0..0.5"
                )
        return self

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or "rho"
        if isinstance(kind, Particles):
            mark = {1: "", 2: "²", 3: "³"}.get(kind.dim, f"^{kind.dim}")
            unit = f"1/{self.unit}{mark}" if self.unit else ""
            return (Observable(name="number density", symbol=symbol, unit=unit, lower=0),)
        name = "density" if isinstance(kind, Lattice) else "brightness"
        return (Observable(name=name, symbol=symbol, lower=0, upper=1),)

    def begin(self, kind: Microstate) -> Observer:
        if isinstance(kind, _GRIDS):
            rows, columns = (
                self._choose_sites(axis, size)
                for axis, size in (("y", kind.height), ("x", kind.width))
            )
            field = _read_field(kind, self.state)
            return lambda stored: field(stored)[:, rows][:, :, columns].mean(axis=(1, 2))
        assert isinstance(kind, Particles)
        refuse_unknown_type(self.type, kind)
        low, high = np.array([getattr(self, axis) for axis in AXES[: kind.dim]]).T

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            boxed = read_boxed(kind, stored)
            place = boxed.positions / boxed.box[:, None]
            inside = ((place >= low) & (place < high)).all(axis=2) & boxed.chosen(self.type)
            return inside.sum(axis=1) / ((high - low) * boxed.box).prod(axis=1)

        return observe

    def _choose_sites(self, axis: str, size: int) -> NDArray[np.intp]:
        """The sites whose centre is in the region."""
        low, high = getattr(self, axis)
        centre = (np.arange(size) + 0.5) / size
        chosen = np.flatnonzero((centre >= low) & (centre < high))
        if not len(chosen):
            raise InputError(
                f"`{axis}` is {low:g}..{high:g}, which holds the centre of none of {size} sites: "
                "give a wider range"
            )
        return chosen


class ParticleNumber(ObservableMap):
    """Number of particles.

    Attributes:
        type: The type of counted particles; by default any.
    """

    name: Literal["particle-number"] = "particle-number"
    type: PositiveInt | None = None
    kinds: ClassVar = (Particles,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        return (Observable(name="number of particles", symbol=self.symbol or "N", lower=0),)

    def begin(self, kind: Microstate) -> Observer:
        assert isinstance(kind, Particles)
        refuse_unknown_type(self.type, kind)
        return lambda stored: read_boxed(kind, stored).chosen(self.type).sum(axis=1)


class StructureFactorPeak(ObservableMap):
    """Largest value of the structure factor averaged over shells of wave vectors.

    Attributes:
        state: The state that is seen; for lattices.
        type: The type of particles that is seen; by default any.
        shells: Number of shells of wave vectors; for particles.
    """

    name: Literal["structure-factor-peak"] = "structure-factor-peak"
    state: NonNegativeInt = 1
    type: PositiveInt | None = None
    shells: PositiveInt = Field(default=16, le=64)
    kinds: ClassVar = (Lattice, Image, Particles)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or "Smax"
        return (Observable(name="peak of the structure factor", symbol=symbol, lower=0),)

    def begin(self, kind: Microstate) -> Observer:
        shells = _choose_shells(self, kind)
        return lambda stored: shells(stored)[1].max(axis=1)


class MeanWavenumber(ObservableMap):
    """Mean length of the wave vectors, weighted with the structure factor of their shells.

    <k> = sum_k |k| S(k) / sum_k S(k); 2 pi / <k> is the usual measure of the size of domains.

    Attributes:
        state: The state that is seen; for lattices.
        type: The type of particles that is seen; by default any.
        shells: Number of shells of wave vectors; for particles.
        unit: Unit of lengths; for particles.
    """

    name: Literal["mean-wavenumber"] = "mean-wavenumber"
    state: NonNegativeInt = 1
    type: PositiveInt | None = None
    shells: PositiveInt = Field(default=16, le=64)
    unit: str = ""
    kinds: ClassVar = (Lattice, Image, Particles)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        length = {Lattice: "site", Image: "pixel"}.get(type(kind), self.unit)
        unit = f"1/{length}" if length else ""
        symbol = self.symbol or "k"
        return (Observable(name="mean wavenumber", symbol=symbol, unit=unit, lower=0),)

    def begin(self, kind: Microstate) -> Observer:
        shells = _choose_shells(self, kind)

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            k, factor = shells(stored)
            total = factor.sum(axis=1)
            # A uniform frame has no structure: its wave is as long as can be.
            flat = total <= 1e-12
            mean = (k * factor).sum(axis=1) / np.where(flat, 1.0, total)
            return np.where(flat, 0.0, mean)

        return observe


Shells = Callable[[NDArray[Any]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Takes frames (B, *shape) and gives the lengths of the wave vectors of the shells and the mean
structure factor in each, both (B, shells)."""


def _choose_shells(chosen: StructureFactorPeak | MeanWavenumber, kind: Microstate) -> Shells:
    if isinstance(kind, _GRIDS):
        field = _read_field(kind, chosen.state)
        return lambda stored: _average_grids(field(stored).astype(np.float64))
    assert isinstance(kind, Particles)
    refuse_unknown_type(chosen.type, kind)
    return lambda stored: _average_particles(read_boxed(kind, stored), chosen.type, chosen.shells)


def _average_grids(field: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    _, height, width = field.shape
    field = field - field.mean(axis=(1, 2), keepdims=True)
    power = np.abs(np.fft.fft2(field)) ** 2 / (height * width)
    longest = max(height, width)
    if longest < 2:
        raise InputError("a grid of one site has no structure factor; choose another observable")
    length = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)) * longest
    shell = np.rint(length).astype(int).ravel()
    shells = longest // 2  # beyond are the corners, where the grid has no whole shells
    kept = (shell >= 1) & (shell <= shells)
    count = np.bincount(shell[kept], minlength=shells + 1)[1:]
    mean = np.stack(
        [
            np.bincount(shell[kept], weights=frame.ravel()[kept], minlength=shells + 1)[1:] / count
            for frame in power
        ]
    )
    k = 2 * np.pi / longest * np.arange(1, shells + 1)
    return np.broadcast_to(k, mean.shape), mean


def _average_particles(
    boxed: Boxed, kind: int | None, shells: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    parts = zip(boxed.positions, boxed.chosen(kind), boxed.box, strict=True)
    mean = np.stack([_average_set(r[there], box, shells) for r, there, box in parts])
    k = 2 * np.pi / boxed.box.max(axis=1, keepdims=True) * np.arange(1, shells + 1)
    return k, mean


def _average_set(
    positions: NDArray[np.float64], box: NDArray[np.float64], shells: int
) -> NDArray[np.float64]:
    """The structure factor of points (N, dim) in each shell, (shells,)."""
    if not len(positions):
        return np.zeros(shells)
    most = np.floor(shells * box / box.max() + 1e-9).astype(int)
    # S(-k) = S(k): along the last axis only half of the vectors are needed.
    whole = [np.arange(-n, n + 1) for n in most[:-1]] + [np.arange(most[-1] + 1)]
    waves = [
        np.exp(2j * np.pi / edge * np.outer(n, r))
        for n, r, edge in zip(whole, positions.T, box, strict=True)
    ]
    *others, last = waves
    joined = np.ones((1, len(positions)), complex)
    for wave in others:
        joined = (joined[:, None] * wave).reshape(-1, len(positions))
    power = (np.abs(joined @ last.T) ** 2 / len(positions)).ravel()
    grid = np.meshgrid(*whole, indexing="ij")
    scaled = [n * (box.max() / edge) for n, edge in zip(grid, box, strict=True)]
    shell = np.rint(np.sqrt(sum(n**2 for n in scaled))).astype(int).ravel()
    weight = np.where(grid[-1].ravel() > 0, 2.0, 1.0) * ((shell >= 1) & (shell <= shells))
    total, count = (
        np.bincount(shell, weights=w, minlength=shells + 1)[1 : shells + 1]
        for w in (weight * power, weight)
    )
    return total / count


def _read_field(kind: Lattice | Image, state: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """How a frame is seen as a field: 1 in the chosen state, or gray levels from 0 to 1."""
    if isinstance(kind, Image):
        return lambda stored: stored / _BRIGHTEST
    refuse_unknown_state(state, kind)
    return lambda stored: stored == state
