r"""Polymer extension: a chain of beads and rigid rods unfolds in planar elongational flow.

The beads of a chain touch and exclude each other; rods of length one join neighbours. In the units
of rod, thermal energy and friction of a bead, the chain follows Brownian dynamics in the flow
(e x, -e y, 0), see `kernels.rods`. It starts as a coil at equilibrium and stretches along x,
sooner or later according to how it is folded. The macrostate is its extension,
    X = max_i x_i - min_i x_i.

References:
    The paper's appendix on the polymer extension experiment; Chen et al., "Constructing custom
    thermodynamics using deep learning", Nat. Comput. Sci. 4 (2024) 66, for the data.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ..description import Description, Observable
from ..errors import InputError
from ..microstates import Chain
from ..system import InitialState, Simulated, check_words, whole_steps
from ..threads import map_threads
from .bounds import MOST_FRAMES, Positive, Rate, refuse_work
from .devices import Device, DeviceSystem, gpu
from .extension import extension
from .kernels.coils import sample_coils
from .kernels.rods import Motion, StepCounts, check_steps, place_beads, run_chains
from .regimes import BEADS, NAMES, load_regimes

__all__ = ["Polymer"]

Run = Callable[..., None]

_SLACK = 1e-3


def _checked(run: Callable[..., StepCounts]) -> Run:
    """A kernel that raises `InputError` where steps could not be solved, see `check_steps`."""

    def complete(
        rods: NDArray[np.float64],
        words: NDArray[np.uint64],
        motion: Motion,
        every: int,
        out: NDArray[np.float32],
    ) -> None:
        check_steps(run(rods, words, motion, every, out), every * (out.shape[1] - 1), motion.dt)

    return complete


def _load_gpu_kernel() -> Run:
    from .kernels_cuda.rods import run_chains as run

    return _checked(run)


class Polymer(DeviceSystem):
    """A bead-rod chain in planar elongational flow.

    Lengths are in rods, which are diameters of a bead; times in bead friction times rod squared
    over thermal energy.

    Arguments:
        beads: Number of beads.
        flow: Strength e of the flow.
        dt: Time step; a run with one that is too long fails at its end, see `check_steps`.
        interval: Time between two frames, a multiple of `dt`.
        frames: Number of frames, the initial one included.
        height: Rows of the picture that networks see.
        width: Its columns, enough for the stretched chain.
        regimes: Whether the test split has the three fixed configurations of `regimes`, which are
            of 300 beads, instead of coils.

    Example:
        >>> system = Polymer(beads=12, flow=0.5, interval=0.1, frames=3, width=16, regimes=False)
        >>> coil = system.initial(np.random.default_rng(0)).microstate
        >>> coil.shape, coil.dtype
        ((12, 3), dtype('float32'))
    """

    beads: int = Field(default=BEADS, ge=3, le=5000)
    flow: Rate = 1.24e-3
    dt: Positive = 1e-3
    interval: Positive = 10.0
    frames: int = Field(default=1001, ge=2, le=MOST_FRAMES)
    height: int = Field(default=100, ge=1, le=10_000)
    width: int = Field(default=500, ge=1, le=10_000)
    regimes: bool = True

    devices: ClassVar[Mapping[str, Device]] = {
        "cpu": Device("polymer-numba-1", 1, np.float32, _checked(run_chains)),
        # Four blocks of 300 threads fill each of the 132 multiprocessors of an H200.
        "cuda": gpu("polymer-cuda-1", 4 * 132, np.float32, _load_gpu_kernel),
    }

    @model_validator(mode="after")
    def _refuse_broken_interval(self) -> Self:
        steps = whole_steps(self.interval, self.dt) * (self.frames - 1)
        refuse_work(
            1.0 * self.beads * steps, "steps of a bead", "take a longer `dt`, or fewer `frames`"
        )
        return self

    @model_validator(mode="after")
    def _refuse_narrow_picture(self) -> Self:
        # However a chain is folded, no bead is further from the centre of mass than half of it.
        if self.width < self.beads:
            raise InputError(
                f"`width` is {self.width}; a stretched chain of {self.beads} beads needs as many "
                "pixels"
            )
        return self

    @model_validator(mode="after")
    def _refuse_other_regimes(self) -> Self:
        if self.regimes and self.beads != BEADS:
            raise InputError(
                f"`regimes` is true and `beads` is {self.beads}; the fixed configurations have "
                f"{BEADS} beads: choose regimes = false"
            )
        return self

    @property
    def description(self) -> Description:
        return Description(
            system="polymer",
            parameters=self.model_dump(mode="json"),
            microstate=self._kind,
            observables=(
                Observable(
                    name="extension", symbol="X", unit="rods", lower=0, upper=self.beads - 1
                ),
            ),
            interval=self.interval,
            frames=self.frames,
        )

    @property
    def memoryless(self) -> bool:
        return True  # Brownian dynamics has no velocities

    def initial(self, generator: np.random.Generator) -> InitialState:
        """Draws a self-avoiding coil at equilibrium without flow, in any direction."""
        words = generator.integers(0, 2**64, (1, 4), dtype=np.uint64)
        coil = place_beads(sample_coils(words, self.beads))
        return InitialState(coil[0].astype(np.float32), "coil")

    def initial_states(
        self, split: str, generators: Sequence[np.random.Generator], *, start: int = 0
    ) -> list[InitialState]:
        # Whatever the split: that the file is missing is said before coils are drawn.
        chains = load_regimes() if self.regimes else {}
        if split != "test" or not chains:
            return map_threads(self.initial, generators)
        stop = start + len(generators)
        if stop > len(NAMES):
            raise InputError(
                f"`data.test` is {stop} or more; the fixed configurations are {len(NAMES)}, "
                f"{', '.join(NAMES)}: set it to that, or choose `system.regimes = false`"
            )
        return [InitialState(chains[name], name) for name in NAMES[start:stop]]

    def simulate(self, microstates: NDArray[Any], words: NDArray[np.uint64]) -> Simulated:
        initial = self._check_stack(microstates)
        frames = self._run(initial, check_words(words, (len(initial), 4)))
        return Simulated(frames, self.observe(frames))

    def ensemble(
        self, microstates: NDArray[Any], words: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        initial = self._check_stack(microstates)
        words = check_words(words, (len(initial), -1, 4))
        starts = np.repeat(initial, words.shape[1], axis=0)
        flat = words.reshape(-1, 4)
        # A block of coordinates is in memory at a time.
        blocks = [slice(k, k + self.batch) for k in range(0, len(flat), self.batch)]
        found = [self.observe(self._run(starts[block], flat[block])) for block in blocks]
        return np.concatenate(found).reshape(*words.shape[:2], self.frames, 1)

    def observe(self, microstates: NDArray[Any]) -> NDArray[np.float64]:
        return extension(self._kind.check(microstates, "`microstates`"))[..., None]

    def faults(self, macrostates: NDArray[np.float64]) -> str | None:
        if not np.isfinite(macrostates).all():
            return "an extension is not finite"
        longest = self.beads - 1
        if (macrostates < 0).any() or (macrostates > longest + _SLACK).any():
            return (
                f"extensions range from {macrostates.min():.6g} to {macrostates.max():.6g}, "
                f"outside of [0, {longest}]"
            )
        return None

    @property
    def _kind(self) -> Chain:
        return Chain(beads=self.beads, height=self.height, width=self.width)

    def _run(self, initial: NDArray[np.float32], words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Runs a trajectory from each chain: coordinates at all frames, (n, F, B, 3)."""
        every = whole_steps(self.interval, self.dt)
        out = np.empty((len(initial), self.frames, *self._kind.shape), np.float32)
        for first in range(0, len(initial), self.batch):
            block = slice(first, first + self.batch)
            motion = Motion(self.flow, self.dt)
            try:
                self.device.run(_rods(initial[block]), words[block], motion, every, out[block])
            except InputError as error:
                raise InputError(f"trajectories from {first} on: {error}") from error
        # What the kernel strung together again differs by rounding.
        out[:, 0] = initial
        return out

    def _check_stack(self, microstates: NDArray[Any]) -> NDArray[np.float32]:
        stored = self._kind.check(microstates, "`microstates`")
        if stored.ndim != 3:
            raise InputError(
                f"`microstates` has shape {stored.shape}; stack chains along one axis, "
                f"(n, {self.beads}, 3)"
            )
        return stored


def _rods(coordinates: NDArray[np.float32]) -> NDArray[np.float64]:
    """Rods of length one between beads, (n, B, 3) to (n, B - 1, 3)."""
    rods = np.diff(coordinates.astype(np.float64), axis=1)
    return rods / np.linalg.norm(rods, axis=-1, keepdims=True)
