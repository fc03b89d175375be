"""A system for the tests of the data layer: at each step one random site of a lattice flips."""

import numpy as np

from tampl.description import Description, Observable
from tampl.microstates import Lattice
from tampl.system import InitialState, Simulated, System


class LatticeWalk(System):
    size: int = 4
    frames: int = 5
    flips: int = 1

    @property
    def description(self):
        return Description(
            system="walk",
            parameters=self.model_dump(mode="json"),
            microstate=Lattice(height=self.size, width=self.size, states=2),
            observables=(
                Observable(name="filled", symbol="M"),
                Observable(name="top row", symbol="T"),
            ),
            interval=0.5,
            frames=self.frames,
        )

    @property
    def kernel(self):
        return "walk-numpy-1"

    def initial(self, generator):
        lattice = generator.integers(0, 2, (self.size, self.size), dtype=np.uint8)
        return InitialState(lattice, f"Σ={lattice.mean():.2f}")

    def simulate(self, microstates, words):
        pairs = zip(microstates, words, strict=True)
        x = np.stack([self._run(start, word) for start, word in pairs])
        return Simulated(x, self.observe(x))

    def observe(self, microstates):
        filled = microstates.mean(axis=(-2, -1))
        return np.stack([filled, microstates[..., 0, :].mean(axis=-1)], axis=-1)

    def faults(self, macrostates):
        return "a fraction above 1" if (macrostates > 1).any() else None

    def _run(self, start, words):
        generator = np.random.default_rng([int(word) for word in words])
        x = np.stack([start] * self.frames)
        for t in range(1, self.frames):
            site = generator.integers(0, self.size, (self.flips, 2))
            x[t] = x[t - 1]
            x[t, site[:, 0], site[:, 1]] ^= 1
        return x
