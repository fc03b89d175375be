"""The SIRS epidemic on a periodic square lattice.

Each of L x L sites is susceptible (0), infected (1) or recovered (2). With n_I infected among its
four neighbours a susceptible site is infected at rate beta n_I / 4; an infected site recovers at
rate gamma; a recovered one is susceptible again at rate mu. Macrostates are the fractions
y = (S, I, R) of sites.

Initial microstates have no recovered sites and infected discs around K random centres: the
coverage L^2 sites nearest to any centre. Few large discs spread slowly, many small ones fast.

References:
    The paper's appendix on the SIRS experiment; `closures` gives the equations of its baselines.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ..description import Description, Observable, Total
from ..errors import InputError
from ..microstates import Lattice
from ..system import Closure, InitialState, Simulated, System, check_words
from .bounds import MOST_FRAMES, Positive, Rate, refuse_work
from .closures import mean_field, pair_approximation, pair_fractions
from .kernels.sirs import count_sites, run_chains

__all__ = ["SIRS"]

_OBSERVABLES = (
    Observable(name="susceptible", symbol="S", lower=0, upper=1),
    Observable(name="infected", symbol="I", lower=0, upper=1),
    Observable(name="recovered", symbol="R", lower=0, upper=1),
)
_TOLERANCE = 1e-9


class SIRS(System):
    """The SIRS model and the family of initial patterns it starts from.

    Arguments:
        size: Sites along an edge, L; below 3 a site would be its own or twice a neighbour.
        beta: Rate of infection with all four neighbours infected.
        gamma: Rate of recovery.
        mu: Rate of loss of immunity.
        interval: Time between two frames.
        frames: Number of frames, the initial one included.
        coverage: Fraction of sites infected at t = 0.
        clusters: Numbers of centres K to draw from; those above the number of infected sites are
            left out.

    Example:
        >>> system = SIRS(size=20, frames=3)
        >>> state = system.initial(np.random.default_rng(0))
        >>> system.observe(state.microstate)
        array([0.95, 0.05, 0.  ])
    """

    state_names: ClassVar[tuple[str, ...]] = ("susceptible", "infected", "recovered")

    size: int = Field(default=100, ge=3, le=10_000)
    beta: Rate = 8.0
    gamma: Rate = 1.0
    mu: Rate = 0.15
    interval: Positive = 0.5
    frames: int = Field(default=101, ge=2, le=MOST_FRAMES)
    coverage: float = Field(default=0.05, gt=0, lt=1)
    clusters: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(1, 2, 4, 8, 16, 64), max_length=1000
    )

    @model_validator(mode="after")
    def _check_clusters(self) -> Self:
        if not self._fitting:
            raise InputError(
                f"`clusters` is {self.clusters}; at least one must be at most the "
                f"{self._n_infected} sites infected at t = 0, so add a smaller one"
            )
        return self

    @model_validator(mode="after")
    def _refuse_work(self) -> Self:
        rate = max(self.beta + self.gamma, self.mu)
        work = self.size**2 * rate * self.interval * (self.frames - 1)
        refuse_work(work, "events", "take a smaller `interval`, or fewer `frames`")
        return self

    @property
    def description(self) -> Description:
        return Description(
            system="sirs",
            parameters=self.model_dump(mode="json"),
            microstate=Lattice(height=self.size, width=self.size, states=3),
            observables=_OBSERVABLES,
            interval=self.interval,
            frames=self.frames,
            totals=(Total(symbols=("S", "I", "R"), value=1.0),),
        )

    @property
    def kernel(self) -> str:
        return "sirs-numba-1"

    @property
    def memoryless(self) -> bool:
        return True  # a Markov chain on lattices

    def initial(self, generator: np.random.Generator) -> InitialState:
        clusters = int(generator.choice(self._fitting))
        return InitialState(self.pattern(clusters, generator), f"K={clusters}")

    def pattern(self, clusters: int, generator: np.random.Generator) -> NDArray[np.uint8]:
        """Draws a microstate whose infected sites are those nearest to `clusters` random centres.

        Arguments:
            clusters: Number K of distinct centres, at most the number of infected sites.
            generator: Source of the centres and of the order among equally near sites.

        Returns:
            The lattice, (L, L), with round(coverage L^2) sites infected, at least one.
        """
        if not 1 <= clusters <= self._n_infected:
            raise InputError(
                f"`clusters` is {clusters}; it must be from 1 to the {self._n_infected} sites "
                f"infected at t = 0 (coverage {self.coverage} of {self.size} x {self.size})"
            )
        centres = generator.choice(self.size**2, clusters, replace=False)
        # Squared distances are whole numbers, so ties are exact and the second key breaks them.
        order = np.lexsort((generator.random(self.size**2), self._measure_distances(centres)))
        sites = np.zeros(self.size**2, np.uint8)
        sites[order[: self._n_infected]] = 1
        return sites.reshape(self.size, self.size)

    def simulate(self, microstates: NDArray[Any], words: NDArray[np.uint64]) -> Simulated:
        lattices = self._check_stack(microstates)
        words = check_words(words, (len(lattices), 4))[:, None]
        counts, frames = self._run(lattices, words, keep_frames=True)
        shape = (len(lattices), self.frames, self.size, self.size)
        return Simulated(frames.reshape(shape), counts[:, 0] / self.size**2)

    def ensemble(
        self, microstates: NDArray[Any], words: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        lattices = self._check_stack(microstates)
        words = check_words(words, (len(lattices), -1, 4))
        counts, _ = self._run(lattices, words, keep_frames=False)
        return counts / self.size**2

    def observe(self, microstates: NDArray[Any]) -> NDArray[np.float64]:
        lattices = self.description.microstate.check(microstates, "`microstates`")
        counts = count_sites(np.ascontiguousarray(lattices).reshape(-1, self.size**2))
        return counts.reshape(*lattices.shape[:-2], 3) / self.size**2

    def faults(self, macrostates: NDArray[np.float64]) -> str | None:
        if not np.isfinite(macrostates).all():
            return "a fraction is not finite"
        if (macrostates < -_TOLERANCE).any() or (macrostates > 1 + _TOLERANCE).any():
            return (
                f"fractions range from {macrostates.min():.6g} to {macrostates.max():.6g}, "
                "outside of [0, 1]"
            )
        excess = np.abs(macrostates.sum(axis=-1) - 1)
        if (excess > _TOLERANCE).any():
            return f"S + I + R differs from 1 by up to {excess.max():.3g}"
        return None

    def closures(self) -> Mapping[str, Closure]:
        rates = {"beta": self.beta, "gamma": self.gamma, "mu": self.mu}
        times = self.description.times

        def from_sites(microstates: NDArray[Any]) -> NDArray[np.float64]:
            return mean_field(self.observe(self._check_stack(microstates)), times, **rates)

        def from_pairs(microstates: NDArray[Any]) -> NDArray[np.float64]:
            pairs = pair_fractions(self._check_stack(microstates))
            return pair_approximation(pairs, times, **rates)

        return {"mean_field": from_sites, "pair": from_pairs}

    @property
    def _n_infected(self) -> int:
        return max(1, round(self.coverage * self.size**2))

    @property
    def _fitting(self) -> list[int]:
        return [K for K in self.clusters if K <= self._n_infected]

    def _measure_distances(self, centres: NDArray[np.int64]) -> NDArray[np.int64]:
        """Squared periodic distance of every site to the nearest of the centres, (L^2,)."""
        sites = np.arange(self.size**2)
        nearest = np.full(self.size**2, 2 * self.size**2)
        for centre in centres:
            rows = np.abs(sites // self.size - centre // self.size)
            columns = np.abs(sites % self.size - centre % self.size)
            rows, columns = (np.minimum(d, self.size - d) for d in (rows, columns))
            np.minimum(nearest, rows**2 + columns**2, out=nearest)
        return nearest

    def _check_stack(self, microstates: NDArray[Any]) -> NDArray[np.uint8]:
        """Returns microstates of shape (n, L, L), row by row in memory, or raises `InputError`."""
        lattices = self.description.microstate.check(microstates, "`microstates`")
        if lattices.ndim != 3:
            raise InputError(
                f"`microstates` has shape {lattices.shape}; stack them along one axis, "
                f"(n, {self.size}, {self.size})"
            )
        return np.ascontiguousarray(lattices)

    def _run(
        self, lattices: NDArray[np.uint8], words: NDArray[np.uint64], *, keep_frames: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Runs the kernel: counts (n, M, F, 3) and lattices (n, M, F, N), with F = 0 if unkept."""
        runs = words.shape[:2]
        counts = np.empty((*runs, self.frames, 3), np.int64)
        kept = self.frames if keep_frames else 0
        frames = np.empty((*runs, kept, self.size**2), np.uint8)
        rates = np.array([self.beta, self.gamma, self.mu])
        flat = lattices.reshape(len(lattices), self.size**2)
        run_chains(flat, words, rates, self.interval, counts, frames)
        return counts, frames
