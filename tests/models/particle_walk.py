"""A system for tests with particles: two types that wander in a box, some of them missing."""

import numpy as np

from tampl.description import Description, Observable
from tampl.microstates import Particles
from tampl.system import InitialState, Simulated, System


class ParticleWalk(System):
    count: int = 6
    frames: int = 5
    stride: float = 0.3

    @property
    def kind(self):
        return Particles(count=self.count, types=2, box=4.0)

    @property
    def description(self):
        return Description(
            system="particle-walk",
            parameters=self.model_dump(mode="json"),
            microstate=self.kind,
            observables=(
                Observable(name="mean place", symbol="M"),
                Observable(name="mean place of type 1", symbol="A"),
            ),
            interval=1.0,
            frames=self.frames,
        )

    @property
    def kernel(self):
        return "particle-walk-numpy-1"

    def initial(self, generator):
        positions = generator.uniform(0, 4, (self.count, 2))
        types = generator.integers(0, 3, self.count)
        types[:2] = 1, 2
        return InitialState(self.kind.encode(positions, types), f"{(types > 0).sum()} particles")

    def simulate(self, microstates, words):
        pairs = zip(microstates, words, strict=True)
        x = np.stack([self._run(start, word) for start, word in pairs])
        return Simulated(x, self.observe(x))

    def observe(self, microstates):
        positions, types = self.kind.decode(microstates)
        place = positions[..., 0]
        groups = (types > 0, types == 1)
        return np.stack([(place * g).sum(axis=-1) / g.sum(axis=-1) for g in groups], axis=-1)

    def faults(self, macrostates):
        return "a place outside of the box" if (macrostates > 4).any() else None

    def _run(self, start, words):
        generator = np.random.default_rng([int(word) for word in words])
        positions, types = self.kind.decode(start)
        x = [start]
        for _ in range(1, self.frames):
            positions = positions + self.stride * generator.normal(size=positions.shape)
            positions = np.clip(positions, 0, 4)
            x.append(self.kind.encode(positions, types))
        return np.stack(x)
