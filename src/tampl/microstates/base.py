"""What every kind of microstate knows about itself, and the symmetries that it may have.

Symmetries are applied as random motions of whole trajectories. A trajectory moved by a symmetry of
the dynamics is as good a trajectory as the original, and where the observables do not change under
it, its macrostates are the same. Which of these hold for a system is physics: a recipe says so.

    shift       by whole sites along each axis of a periodic lattice, by any vector along the
                periodic axes of a box of particles
    flip        mirror images along each axis
    transpose   the two axes of a plane change places

Together they generate rotations by quarter turns.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError
from ..frozen import Frozen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["INK", "Microstate", "Symmetry", "coins", "move_sites"]

INK = "#262626"
"""Of strokes and beads in pictures of microstates."""

Symmetry = Literal["shift", "flip", "transpose"]


def coins(count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Heads or tails, (count, 1), drawn by a generator on the CPU."""
    return torch.randint(2, (count, 1), generator=generator).bool().to(device)


def move_sites(
    stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
) -> Tensor:
    """Moves the sites of trajectories, all frames of one alike.

    Arguments:
        stored: Planes of sites, (n, F, H, W).
        symmetries: What the motions are made of; `transpose` needs H = W.
        generator: Of the random motions, on the CPU.
    """
    (runs, frames, height, width), device = stored.shape, stored.device
    row, column = (
        _draw_sources(runs, size, symmetries, generator, device) for size in (height, width)
    )
    site = row[:, :, None] * width + column[:, None, :]
    if "transpose" in symmetries:
        site = torch.where(coins(runs, generator, device)[..., None], site.transpose(1, 2), site)
    # Frames share the indices of their trajectory, which `expand` does not copy.
    index = site.flatten(1)[:, None].expand(runs, frames, height * width)
    return stored.flatten(2).gather(2, index).view_as(stored)


def _draw_sources(
    runs: int,
    size: int,
    symmetries: Collection[Symmetry],
    generator: torch.Generator,
    device: torch.device,
) -> Tensor:
    """From where each of the sites along an axis is taken, (n, size)."""
    source = torch.arange(size, device=device).expand(runs, size)
    if "flip" in symmetries:
        source = torch.where(coins(runs, generator, device), size - 1 - source, source)
    if "shift" in symmetries:
        by = torch.randint(size, (runs, 1), generator=generator)
        source = (source + by.to(device)) % size
    return source


class Microstate(Frozen, ABC):
    """What every kind of microstate knows about itself; a kind is plain data, such as its size.

    A subclass has a field `kind` with its name, by which stores and models find it again.
    """

    kind: str

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one microstate in stored form."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored form."""

    @abstractmethod
    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        """Returns `stored` of shape (..., *shape) in the stored type, or raises `InputError`.

        Arguments:
            stored: Microstates in stored form, with any leading axes.
            name: What the message calls them, e.g. the file they came from.
        """

    @abstractmethod
    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        """Turns a batch in stored form (B, *shape) into what the encoder takes."""

    @property
    def in_words(self) -> str:
        """What a reader calls such microstates, in the plural, with their size."""
        return f"{self.kind} microstates of shape {self.shape}"

    @property
    def standardised(self) -> bool:
        """Whether a model standardises the stored form with the statistics of its training set."""
        return False

    def summarise(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """A few numbers by which microstates unlike those of a training set are found, (n, q).

        An encoder keeps what matters for the observables and may send a microstate that it has
        never seen to a familiar latent state. By default there are none.

        Arguments:
            stored: Microstates in stored form, (n, *shape).
        """
        return np.empty((len(stored), 0))

    @property
    def symmetries(self) -> frozenset[Symmetry]:
        """The symmetries that can be asked of `transformed`; none by default."""
        return frozenset()

    def transformed(
        self, stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
    ) -> Tensor:
        """Trajectories in stored form, (n, F, *shape), each moved by a random symmetry.

        Arguments:
            stored: The trajectories; all frames of one are moved alike.
            symmetries: What the motions are made of, some of `self.symmetries`.
            generator: Of the random motions, on the CPU.
        """
        return stored

    @classmethod
    def draw(cls, axis: "Axes", stored: NDArray[Any]) -> None:
        """Draws one microstate in stored form on Matplotlib axes.

        By default numbers on a plane are a picture and all others a curve.
        """
        if stored.ndim == 2:
            axis.imshow(stored, cmap="gray", interpolation="none")
            axis.set(xticks=[], yticks=[])
        else:
            axis.plot(stored.ravel(), color=INK, linewidth=0.9)
            axis.margins(x=0)

    def show(self, axis: "Axes", stored: NDArray[Any]) -> None:
        """Draws one microstate with what its kind knows beside the stored form, as a box's edges.

        By default this is `draw`, which sees the stored form alone.
        """
        self.draw(axis, stored)

    def _check_shape(self, stored: NDArray[Any], shape: tuple[int, ...], name: str) -> None:
        if stored.shape[-len(shape) :] != shape:
            raise InputError(
                f"{name} has shape {stored.shape}; a microstate of this system has shape {shape}, "
                "several are stacked along the first axis"
            )
