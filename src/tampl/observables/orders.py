r"""Order of directions: phases, nematic and hexatic order.

A vector of angles theta_j has the order |<exp(i n theta)>| for an n-fold symmetry (n = 1: the
synchrony of Kuramoto's oscillators, n = 2: lines in the plane). Directions u_j in d dimensions
have the nematic tensor Q = <(d u u^T - 1) / (d - 1)>; its largest eigenvalue is the nematic order.
A particle in the plane with neighbours in the directions theta_jk has psi_j = <exp(6 i theta_jk)>.

References:
    Kuramoto, Chemical Oscillations, Waves, and Turbulence (1984); de Gennes and Prost, The Physics
    of Liquid Crystals (1993); Nelson and Halperin, Phys. Rev. B 19 (1979) 2457.
"""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from scipy.spatial import KDTree

from ..description import Observable
from ..errors import InputError
from ..microstates import Chain, Microstate, Particles, Vector
from .base import ObservableMap, Observer
from .points import read_boxed, read_points, refuse_unknown_type

__all__ = ["HexaticOrder", "NematicOrder", "PhaseOrder"]


class PhaseOrder(ObservableMap):
    """Order of a vector of angles in radians: 0 where they are spread evenly, 1 where they agree.

    |(1 / N) sum_j exp(i fold theta_j)|.

    Attributes:
        fold: The number of directions that count as the same.
    """

    name: Literal["phase-order"] = "phase-order"
    fold: PositiveInt = 1
    kinds: ClassVar = (Vector,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        return (Observable(name="phase order", symbol=self.symbol or "r", lower=0, upper=1),)

    def begin(self, kind: Microstate) -> Observer:
        return lambda stored: np.abs(np.exp(1j * self.fold * stored).mean(axis=1))


class NematicOrder(ObservableMap):
    """Nematic order of the rods of a chain, or of directions in a vector: 1 along one axis.

    The largest eigenvalue of <(d u u^T - 1) / (d - 1)>, in d = 2 or 3 dimensions.

    Attributes:
        dim: Coordinates of a direction; for vectors, which hold u1x, u1y, ..., of any length.
    """

    name: Literal["nematic-order"] = "nematic-order"
    dim: int = Field(default=3, ge=2, le=3)
    kinds: ClassVar = (Chain, Vector)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        return (Observable(name="nematic order", symbol=self.symbol or "S", lower=0, upper=1),)

    def begin(self, kind: Microstate) -> Observer:
        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            u = read_points(kind, stored, self.dim)
            if isinstance(kind, Chain):
                u = np.diff(u, axis=1)
            length = np.linalg.norm(u, axis=2, keepdims=True)
            if not length.all():
                raise InputError(
                    "a direction has length zero; `nematic-order` needs vectors of directions"
                )
            u /= length
            d = u.shape[2]
            q = (d * np.einsum("fna,fnb->fab", u, u) / u.shape[1] - np.eye(d)) / (d - 1)
            return np.linalg.eigvalsh(q)[:, -1]

        return observe


class HexaticOrder(ObservableMap):
    """Bond-orientational order of particles in the plane: 1 for a triangular crystal.

    |(1 / N) sum_j psi_j|; psi_j is the mean of exp(i fold theta_jk) over nearest neighbours k.

    Attributes:
        fold: The symmetry.
        neighbours: How many nearest neighbours each particle has.
        type: The type of particles that are seen; by default any.
    """

    name: Literal["hexatic-order"] = "hexatic-order"
    fold: PositiveInt = 6
    neighbours: PositiveInt = 6
    type: PositiveInt | None = None
    kinds: ClassVar = (Particles,)

    def describe(self, kind: Microstate) -> tuple[Observable, ...]:
        symbol = self.symbol or f"psi{self.fold}"
        return (Observable(name="hexatic order", symbol=symbol, lower=0, upper=1),)

    def begin(self, kind: Microstate) -> Observer:
        assert isinstance(kind, Particles)
        refuse_unknown_type(self.type, kind)
        if kind.dim != 2:
            raise InputError(
                f"`hexatic-order` is one of particles in the plane; these are in {kind.dim} "
                "dimensions: choose another observable"
            )

        def observe(stored: NDArray[Any]) -> NDArray[np.float64]:
            boxed = read_boxed(kind, stored)
            edges = np.where(boxed.periodic, boxed.box, 0.0)
            parts = zip(boxed.positions, boxed.chosen(self.type), edges, strict=True)
            return np.array([self._observe_frame(r[there], box) for r, there, box in parts])

        return observe

    def _observe_frame(self, r: NDArray[np.float64], box: NDArray[np.float64]) -> float:
        if len(r) <= self.neighbours:
            raise InputError(
                f"`neighbours` is {self.neighbours}, and a frame has {len(r)} particles; "
                "hexatic-order needs more of them"
            )
        _, nearest = KDTree(r, boxsize=box).query(r, k=self.neighbours + 1)
        # A particle is its own nearest neighbour, except where another one is at the same place.
        apart = r[nearest[:, 1:]] - r[:, None]
        edges = np.where(box > 0, box, np.inf)
        apart -= np.where(box > 0, box * np.round(apart / edges), 0.0)
        angle = np.arctan2(apart[..., 1], apart[..., 0])
        return float(np.abs(np.exp(1j * self.fold * angle).mean()))
