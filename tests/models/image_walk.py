"""A system for tests with pictures: a bright spot wanders over a dark one."""

import numpy as np

from tampl.description import Description, Observable
from tampl.microstates import Image
from tampl.system import InitialState, Simulated, System


class ImageWalk(System):
    height: int = 9
    width: int = 12
    frames: int = 5

    @property
    def kind(self):
        return Image(height=self.height, width=self.width)

    @property
    def description(self):
        return Description(
            system="image-walk",
            parameters=self.model_dump(mode="json"),
            microstate=self.kind,
            observables=(Observable(name="place", symbol="P"),),
            interval=1.0,
            frames=self.frames,
        )

    @property
    def kernel(self):
        return "image-walk-numpy-1"

    def initial(self, generator):
        return InitialState(self._picture(generator.uniform(0, 1, 2)), "spot")

    def simulate(self, microstates, words):
        x = np.stack([self._run(start, w) for start, w in zip(microstates, words, strict=True)])
        return Simulated(x, self.observe(x))

    def observe(self, microstates):
        light = microstates.sum(axis=-2, dtype=float)
        return (light @ np.arange(self.width) / light.sum(axis=-1))[..., None]

    def faults(self, macrostates):
        return None if (macrostates < self.width).all() else "a place out of the picture"

    def _picture(self, place):
        rows, columns = np.mgrid[: self.height, : self.width]
        squared = (rows - place[0] * self.height) ** 2 + (columns - place[1] * self.width) ** 2
        return np.round(255 * np.exp(-squared / 4)).astype(np.uint8)

    def _run(self, start, words):
        generator = np.random.default_rng([int(word) for word in words])
        return np.stack(
            [start, *(self._picture(generator.uniform(0, 1, 2)) for _ in range(1, self.frames))]
        )
