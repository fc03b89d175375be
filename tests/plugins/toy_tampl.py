"""A package from outside: a kind of microstate, an encoder, a method and a system of its own.

Rings of coupled rotors: a microstate is n angles, and the observable is their mean direction.
"""

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from tampl.description import Description, Observable
from tampl.errors import InputError
from tampl.methods import Method
from tampl.microstates import Microstate
from tampl.models import EncoderSpec, Modules
from tampl.system import InitialState, Simulated, System
from tampl.training import Losses, Stage, Turn


class Ring(Microstate):
    """Angles on a ring; networks see their cosines and sines, (B, 2, n)."""

    kind: Literal["ring"] = "ring"
    size: int = Field(gt=1)

    @property
    def shape(self):
        return (self.size,)

    @property
    def dtype(self):
        return np.dtype(np.float32)

    def check(self, stored, name):
        self._check_shape(stored, self.shape, name)
        if not np.isfinite(stored).all():
            raise InputError(f"{name} must be finite")
        return np.asarray(stored, np.float32)

    def network_input(self, stored, dtype):
        return torch.stack([stored.cos(), stored.sin()], dim=-2).to(dtype)

    @classmethod
    def draw(cls, axis, stored):
        axis.scatter(np.arange(len(stored)), stored % (2 * np.pi), s=4)


class RingEncoderSpec(EncoderSpec):
    """The mean over the ring of a circular convolution, then a linear layer."""

    name: Literal["ring-encoder"] = "ring-encoder"
    width: int = Field(8, gt=0)

    def build(self, microstate, latent_dim):
        if not isinstance(microstate, Ring):
            raise InputError("the encoder `ring-encoder` takes rings")
        convolution = nn.Conv1d(2, self.width, 3, padding="same", padding_mode="circular")
        layers = (convolution, nn.SiLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        return nn.Sequential(*layers, nn.Linear(self.width, latent_dim))


class Detached(Method):
    """Joint training towards a detached next encoding."""

    title: ClassVar[str] = "Detached"
    color: ClassVar[str | None] = "#117733"
    weight: float = 0.1

    def modules(self, spec, description):
        return Modules.build(spec, description)

    def turns(self, training):
        stage = Stage(
            name="detached",
            moves=("encoder", "readout", "transition"),
            needs=frozenset({"x", "x_next", "y"}),
            loss=self._loss,
            draw=lambda modules, count, generator: modules.transition.draw(count, generator),
            optimiser=training.averaged,
        )
        return (Turn((stage,), training.epochs),)

    def _loss(self, modules, batch):
        z = modules.encoder(batch["x"])
        with torch.no_grad():
            z_next = modules.encoder(batch["x_next"])
        current = (modules.readout(z) - batch["y"]).square().sum(dim=-1).mean()
        transition = modules.transition.loss(z, z_next, batch.noise)
        return Losses(current + self.weight * transition, {"cur": current, "tr": transition})


class Rotors(System):
    """Noisy rotors that follow their neighbours."""

    size: int = Field(12, gt=1)
    frames: int = Field(6, gt=1)

    @property
    def description(self):
        return Description(
            system="rotors",
            parameters=self.model_dump(mode="json"),
            microstate=Ring(size=self.size),
            observables=(Observable(name="direction", symbol="m", unit="rad"),),
            interval=0.5,
            frames=self.frames,
            time_unit="s",
        )

    @property
    def kernel(self):
        return "rotors-numpy-1"

    def initial(self, generator):
        angles = generator.normal(size=self.size) + generator.uniform(-1, 1)
        return InitialState(angles.astype(np.float32), "random")

    def simulate(self, microstates, words):
        x = np.stack([self._run(a, w) for a, w in zip(microstates, words, strict=True)])
        return Simulated(x, self.observe(x))

    def observe(self, microstates):
        return np.asarray(microstates, np.float64).mean(axis=-1, keepdims=True)

    def _run(self, angles, words):
        generator = np.random.default_rng(words.tolist())
        path = [angles]
        for _ in range(self.frames - 1):
            mean = (np.roll(path[-1], 1) + np.roll(path[-1], -1)) / 2
            noise = 0.1 * generator.normal(size=self.size)
            path.append((path[-1] + 0.3 * (mean - path[-1]) + noise).astype(np.float32))
        return np.stack(path)
