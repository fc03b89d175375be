"""Chains of beads, stored by coordinates and seen as pictures.

A picture of a chain is what a microscope that looks along z would give. Bead i at (x_i, y_i, z_i)
is a Gaussian blob, wider where it is out of focus,
    I(x, y) = sum_i exp(-((x - x_i)^2 + (y - y_i)^2) / (2 s_i^2)) / (2 pi s_i^2),
    s_i = max(|z_i - mean z| / 5, 1).
A pixel is one bead diameter; of W columns, column c is at x = c - W // 2, and rows likewise. The
picture is divided by its maximum and rounded to 8 bits.

A Gaussian is a product of one in x and one in y, so that I is the matrix product of all rows'
factors with all columns', summed over beads: 30 million operations for 300 beads on 100 x 500
pixels, against 15 million exponentials where every bead meets every pixel.

References:
    The paper's appendix on the polymer extension experiment.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ..errors import InputError
from .base import INK, Microstate, Symmetry

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Chain", "render"]

_DEPTH = 5.0
"""Diameters out of focus by which a blob widens by one pixel."""


_BRIGHTEST = 255


def render(coordinates: Tensor, *, height: int, width: int) -> Tensor:
    """Renders chains as gray pictures.

    Arguments:
        coordinates: Beads, (..., B, 3), in diameters.
        height: Rows of the picture, in y.
        width: Columns of the picture, in x.

    Returns:
        Intensities k / 255 with whole k, (..., height, width).

    Example:
        >>> picture = render(torch.zeros(1, 3), height=3, width=5)
        >>> (255 * picture).int()
        tensor([[ 21,  94, 155,  94,  21],
                [ 35, 155, 255, 155,  35],
                [ 21,  94, 155,  94,  21]], dtype=torch.int32)
    """
    r = coordinates.to(torch.promote_types(coordinates.dtype, torch.float32))
    x, y, z = r.unbind(dim=-1)
    width_of = ((z - z.mean(dim=-1, keepdim=True)).abs() / _DEPTH).clamp_min(1)
    precision = 0.5 / width_of.square()
    # The factor 1 / pi of all blobs goes with the division by the maximum.
    rows = _blobs(y, precision, height) * precision.unsqueeze(-1)
    light = rows.mT @ _blobs(x, precision, width)
    brightest = light.amax(dim=(-2, -1), keepdim=True).clamp_min(torch.finfo(light.dtype).tiny)
    return (light / brightest * _BRIGHTEST).round() / _BRIGHTEST


def _blobs(centre: Tensor, precision: Tensor, size: int) -> Tensor:
    """One factor of the blobs, exp(-precision (pixel - centre)^2): (..., B, size)."""
    pixels = torch.arange(size, dtype=centre.dtype, device=centre.device) - size // 2
    return (pixels - centre.unsqueeze(-1)).square().mul(-precision.unsqueeze(-1)).exp()


# Coordinates in single precision leave a mean of some 1e-5; one that was never removed is larger.
_CENTRED = 1e-2


# Rods of such coordinates are off by some 1e-5, and published ones may be rounded further; other
# units or another order of the numbers are off by far more.
_ROD = 0.05


class Chain(Microstate):
    """A chain of beads in three dimensions, relative to its centre of mass.

    Stored as (beads, 3) numbers of 32 bits, in units of a bead's diameter; consecutive beads
    touch. The input is the picture of the chain seen along z, (B, 1, height, width), made on the
    device of the batch by `render`: a store of pictures would be some fourteen times as
    large.

    Arguments:
        beads: Number of beads.
        height: Pixels of the picture in y, one diameter each.
        width: Pixels in x.
    """

    kind: Literal["chain"] = "chain"
    beads: int = Field(ge=2)
    height: int = Field(gt=0)
    width: int = Field(gt=0)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.beads, 3)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def in_words(self) -> str:
        return f"chains of {self.beads} beads, seen as pictures"

    def check(self, stored: NDArray[Any], name: str) -> NDArray[Any]:
        self._check_shape(stored, self.shape, name)
        if stored.dtype.kind not in "iuf":
            raise InputError(f"{name} holds {stored.dtype}; it must hold coordinates of beads")
        coordinates = np.asarray(stored, dtype=self.dtype)
        if not np.isfinite(coordinates).all():
            raise InputError(f"{name} must be finite; it holds NaN or infinity")
        self._check_rods(coordinates, name)
        off = np.abs(coordinates.mean(axis=-2, dtype=np.float64)).max(initial=0.0)
        if off > _CENTRED:
            raise InputError(
                f"{name} has a chain whose centre of mass is off the origin by {off:.3g}: "
                "subtract the mean over its beads"
            )
        return coordinates

    def network_input(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        return render(stored, height=self.height, width=self.width).unsqueeze(1).to(dtype)

    def summarise(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        """Extension and root mean square of the coordinates along each axis."""
        beads = stored.astype(np.float64)
        spread = np.sqrt((beads**2).mean(axis=-2))
        return np.concatenate([np.ptp(beads, axis=-2), spread], axis=-1)

    @property
    def symmetries(self) -> frozenset[Symmetry]:
        return frozenset({"flip"})

    def transformed(
        self, stored: Tensor, symmetries: Collection[Symmetry], generator: torch.Generator
    ) -> Tensor:
        if "flip" not in symmetries:
            return stored
        signs = 1 - 2 * torch.randint(2, (len(stored), 1, 1, 3), generator=generator)
        return stored * signs.to(stored)

    @classmethod
    def draw(cls, axis: "Axes", stored: NDArray[Any]) -> None:
        from matplotlib.collections import EllipseCollection

        # Seen along z, as the networks see it; beads in front hide those behind.
        beads = stored[np.argsort(stored[:, 2]), :2]
        circles = EllipseCollection(
            *(1.0, 1.0, 0.0),
            units="xy",
            offsets=beads,
            offset_transform=axis.transData,
            facecolors=INK,
            edgecolors="white",
            linewidths=0.2,
        )
        axis.add_collection(circles)
        reach = np.abs(beads).max() + 1.0
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")

    def _check_rods(self, coordinates: NDArray[Any], name: str) -> None:
        off = np.abs(np.linalg.norm(np.diff(coordinates, axis=-2), axis=-1) - 1)
        if off.max(initial=0.0) > _ROD:
            bead = int(off.argmax()) % (self.beads - 1)
            raise InputError(
                f"{name} has a rod whose length is off by {off.max():.3g}, between beads {bead} "
                f"and {bead + 1}; consecutive beads must be one diameter apart within {_ROD}: "
                "give x, y and z in diameters, bead after bead along the chain"
            )
