r"""Binary mixing: two types of Lennard-Jones particles in a square box with reflecting walls.

Equal numbers of particles of types 1 and 2, of unit mass, interact by truncated and shifted
Lennard-Jones potentials and start from a pattern in which each type has one half of the box
(`patterns`). Positions and types are the microstate. Every run draws its own velocities at the
given temperature and then follows Newton's equations, so the velocities are all its randomness.

Particles of one type within a given reach of each other are connected. With L_a the size of the
largest connected cluster of type a and C_a the number of clusters, the macrostate is
    S = (L_1 + L_2) / N,    K = (C_1 + C_2) / N.

References:
    The paper's appendix on the binary mixing experiment.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from ..description import Description, Observable
from ..errors import InputError
from ..microstates import Particles
from ..system import InitialState, Simulated, check_words, whole_steps
from ..threads import map_threads
from .bounds import MOST_FRAMES, Positive, refuse_work
from .devices import Device, DeviceSystem, gpu
from .kernels.clusters import find_clusters
from .kernels.equilibration import Bath, equilibrate, minimise
from .kernels.lennard_jones import Schedule, run_trajectories
from .kernels.neighbours import SKIN
from .kernels.pair_forces import Fluid, pair_table
from .patterns import FAMILIES, draw_owner, place

__all__ = ["Mixing"]

OfPairs = tuple[Positive, Positive, Positive]

# Random patterns could be arranged up to 0.88 without fail; the liquid freezes near 0.9.
_DENSEST = 0.8
_TOLERANCE = 1e-9
# Neighbours are looked for in cells of about the cutoff, of which there is a table.
_WIDEST = 2048
# Microstates observed by one thread at a time, a trajectory of the paper's at least.
_OBSERVED = 1024

_OBSERVABLES = (
    Observable(name="largest clusters", symbol="S", lower=0, upper=1),
    Observable(name="number of clusters", symbol="K", lower=0, upper=1),
)

Recorder = Callable[[int, NDArray[np.floating[Any]]], None]
"""Takes the number of a run and its positions at all frames, (F, N, 2)."""


def _load_gpu_kernel() -> Callable[..., None]:
    from .kernels_cuda.lennard_jones import run_trajectories as run

    return run


class Mixing(DeviceSystem):
    """Two types of Lennard-Jones particles and the patterns that they start from.

    Lengths, energies and times are in reduced Lennard-Jones units.

    Arguments:
        particles: Particles of each type.
        box: Edge of the box.
        epsilon: Depths of the potentials of pairs 11, 22 and 12.
        sigma: Their lengths.
        cutoff: Distance beyond which particles do not interact.
        temperature: Temperature of the equilibration and of the velocities drawn.
        dt: Time step.
        interval: Time between two frames, a multiple of `dt`.
        frames: Number of frames, the initial one included.
        patterns: Families of patterns; initial microstate i of a split is of family i modulo
            their number.
        equilibration: Steps for which a pattern is equilibrated.
        friction: Rate at which the heat bath of the equilibration renews velocities.
        reach: Largest distance of connected particles of one type.

    Example:
        >>> system = Mixing(particles=16, box=8.0, frames=3, equilibration=100)
        >>> state = system.arrange("half-plane", np.random.default_rng(0))
        >>> system.observe(state).shape
        (2,)
    """

    particles: int = Field(default=256, ge=1, le=10_000)
    box: Positive = 32.0
    epsilon: OfPairs = (0.5, 0.6, 0.7)
    sigma: OfPairs = (1.0, 0.9, 0.9)
    cutoff: Positive = 2.5
    temperature: Positive = 1.0
    dt: Positive = 0.002
    interval: Positive = 0.4
    frames: int = Field(default=501, ge=2, le=MOST_FRAMES)
    patterns: tuple[str, ...] = Field(default=tuple(FAMILIES), max_length=1000)
    equilibration: int = Field(default=5000, ge=0, le=10**9)
    friction: Positive = 1.0
    reach: Positive = 2.5

    devices: ClassVar[Mapping[str, Device]] = {
        "cpu": Device("mixing-numba-1", 1, np.float64, run_trajectories),
        # Four blocks of 512 threads fill each of the 132 multiprocessors of an H200.
        "cuda": gpu("mixing-cuda-1", 4 * 132, np.float32, _load_gpu_kernel),
    }

    @field_validator("patterns")
    @classmethod
    def _refuse_unknown_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in patterns if name not in FAMILIES]
        if unknown or not patterns:
            what = repr(unknown[0]) if unknown else "empty"
            raise InputError(f"`patterns` is {what}; choose from {', '.join(FAMILIES)}")
        return patterns

    @model_validator(mode="after")
    def _refuse_broken_interval(self) -> Self:
        steps = whole_steps(self.interval, self.dt) * (self.frames - 1) + self.equilibration
        refuse_work(
            2.0 * self.particles * steps,
            "steps of a particle",
            "take a longer `dt`, fewer `frames` or less `equilibration`",
        )
        return self

    @model_validator(mode="after")
    def _refuse_void(self) -> Self:
        width = self.box / (self.cutoff + SKIN)
        if width > _WIDEST:
            raise InputError(
                f"`box` is {self.box} and `cutoff` is {self.cutoff}; the box may be at most "
                f"{_WIDEST} times as wide as cutoff + {SKIN}: take a smaller box"
            )
        return self

    @model_validator(mode="after")
    def _refuse_crowd(self) -> Self:
        density = self.particles * (self.sigma[0] ** 2 + self.sigma[1] ** 2) / self.box**2
        if density > _DENSEST:
            raise InputError(
                f"`particles` is {self.particles}, which in a `box` of {self.box} is a density of "
                f"{density:.3g} in units of sigma; at most {_DENSEST} fit: take fewer, or a "
                "larger box"
            )
        return self

    @property
    def description(self) -> Description:
        return Description(
            system="mixing",
            parameters=self.model_dump(mode="json"),
            microstate=self._kind,
            observables=_OBSERVABLES,
            interval=self.interval,
            frames=self.frames,
        )

    def initial(self, generator: np.random.Generator) -> InitialState:
        family = self.patterns[generator.integers(len(self.patterns))]
        return InitialState(self.arrange(family, generator), family)

    def initial_states(
        self, split: str, generators: Sequence[np.random.Generator], *, start: int = 0
    ) -> list[InitialState]:
        families = [
            self.patterns[(start + i) % len(self.patterns)] for i in range(len(generators))
        ]
        pairs = zip(families, generators, strict=True)
        arranged = map_threads(lambda pair: self.arrange(*pair), pairs)
        return [InitialState(x, family) for x, family in zip(arranged, families, strict=True)]

    def arrange(self, family: str, generator: np.random.Generator) -> NDArray[np.uint16]:
        """Draws an equilibrated microstate with a pattern of a family.

        Particles are placed at random in the half of their type, moved apart, and brought to the
        temperature while each stays in its half.

        Arguments:
            family: Name of the family, one of `FAMILIES`.
            generator: Source of all that is random.

        Returns:
            The microstate in stored form, (N, 3).
        """
        owner = draw_owner(family, generator)
        types = np.repeat(np.arange(2, dtype=np.uint8), self.particles)
        positions = self.box * place(owner, types, generator)
        words = generator.integers(0, 2**64, 4, dtype=np.uint64)
        bath = Bath(self.temperature, self.dt, self.equilibration, self.friction)
        positions = minimise(positions, types, self._fluid, owner)
        positions = equilibrate(positions, types, words, self._fluid, owner, bath)
        return self._kind.encode(positions, types + 1)

    def simulate(self, microstates: NDArray[Any], words: NDArray[np.uint64]) -> Simulated:
        initial = self._check_stack(microstates)
        words = check_words(words, (len(initial), 4))
        frames = np.empty((len(initial), self.frames, *self._kind.shape), self._kind.dtype)
        macrostates = np.empty((*frames.shape[:2], len(_OBSERVABLES)))

        def record(run: int, positions: NDArray[np.floating[Any]]) -> None:
            frames[run] = self._kind.encode(positions, initial[run, :, -1])
            macrostates[run] = self.observe(frames[run])

        self._run(initial, words, record)
        return Simulated(frames, macrostates)

    def ensemble(
        self, microstates: NDArray[Any], words: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        initial = self._check_stack(microstates)
        words = check_words(words, (len(initial), -1, 4))
        members = words.shape[1]
        macrostates = np.empty((len(initial) * members, self.frames, len(_OBSERVABLES)))

        def record(run: int, positions: NDArray[np.floating[Any]]) -> None:
            frames = self._kind.encode(positions, initial[run // members, :, -1])
            macrostates[run] = self.observe(frames)

        self._run(np.repeat(initial, members, axis=0), words.reshape(-1, 4), record)
        return macrostates.reshape(len(initial), members, *macrostates.shape[1:])

    def observe(self, microstates: NDArray[Any]) -> NDArray[np.float64]:
        """The observables S and K, of any number of particles."""
        stored = np.ascontiguousarray(self._kind.check(microstates, "`microstates`"))
        flat = stored.reshape(-1, *stored.shape[-2:])
        found = np.empty((len(flat), 2, 2), np.int64)
        reach = self.reach * 2**16 / self.box

        def find(first: int) -> None:
            block = slice(first, first + _OBSERVED)
            find_clusters(flat[block], 2, reach, found[block])

        map_threads(find, range(0, len(flat), _OBSERVED))
        there = np.count_nonzero(stored[..., -1], axis=-1)
        return found.sum(axis=1).reshape(*stored.shape[:-2], 2) / there[..., None]

    def faults(self, macrostates: NDArray[np.float64]) -> str | None:
        if not np.isfinite(macrostates).all():
            return "an observable is not finite"
        least = 2 / self._kind.count - _TOLERANCE
        if (macrostates < least).any() or (macrostates > 1 + _TOLERANCE).any():
            return (
                f"observables range from {macrostates.min():.6g} to {macrostates.max():.6g}, "
                f"outside of [{2 / self._kind.count:.6g}, 1]"
            )
        # All clusters of a type but the largest have one particle at least.
        most = macrostates.sum(axis=-1).max()
        if most > 1 + 2 / self._kind.count + _TOLERANCE:
            return f"S + K is {most:.6g}, and cannot exceed 1 + 2 / N"
        return None

    @property
    def _kind(self) -> Particles:
        return Particles(count=2 * self.particles, types=2, box=self.box)

    @property
    def _fluid(self) -> Fluid:
        epsilon, sigma = (
            np.array([[p[0], p[2]], [p[2], p[1]]]) for p in (self.epsilon, self.sigma)
        )
        return Fluid(pair_table(epsilon, sigma, self.cutoff), self.cutoff, self.box)

    def _run(
        self, initial: NDArray[np.uint16], words: NDArray[np.uint64], record: Recorder
    ) -> None:
        """Runs a trajectory from each microstate (n, N, 3), and records them on all cores."""
        positions, types = self._kind.decode(initial)
        for first in range(0, len(initial), self.batch):
            block = slice(first, first + self.batch)
            done = self._integrate(positions[block], types[block] - 1, words[block], first)
            runs = range(first, first + len(done))
            map_threads(lambda pair: record(*pair), zip(runs, done, strict=True))

    def _integrate(
        self,
        positions: NDArray[np.float64],
        types: NDArray[np.integer[Any]],
        words: NDArray[np.uint64],
        first: int,
    ) -> NDArray[np.floating[Any]]:
        """Runs the kernel: positions at all frames, (n, F, N, 2), from those at t = 0.

        Messages call the first run number `first`.
        """
        schedule = Schedule(self.temperature, self.dt, whole_steps(self.interval, self.dt))
        out = np.empty((len(positions), self.frames, *positions.shape[1:]), self.device.dtype)
        energies = np.empty(out.shape[:2])
        self.device.run(positions, types, words, self._fluid, schedule, out, energies, first)
        return out

    def _check_stack(self, microstates: NDArray[Any]) -> NDArray[np.uint16]:
        stored = self._kind.check(microstates, "`microstates`")
        shape = self._kind.shape
        if stored.ndim != 3 or stored.shape[1:] != shape or not stored[..., -1].all():
            raise InputError(
                f"`microstates` has shape {stored.shape}; a simulation starts from {shape[0]} "
                f"particles, none absent: stack microstates along one axis, (n, {shape[0]}, 3)"
            )
        return stored
