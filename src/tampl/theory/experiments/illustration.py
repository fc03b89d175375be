r"""The two-dimensional illustration of Theorem 1, swept over the weight of the reconstruction.

One latent coordinate must choose between u, which y = c u is read from, and n, which is
irrelevant. The eigenvalues that compete are

    (lambda_cur c^2 + lambda_rec) variance_u    and    lambda_rec variance_n,

and past the threshold the best encoder holds n alone: its current loss is all of c^2 variance_u.

Reference: Theorem 1 of the paper and its two-dimensional illustration.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linear import LinearSystem, Weights, norm2, reconstruction_loss
from ..selection import kept_variance, select, two_dimensional_system, two_dimensional_threshold

__all__ = ["Illustration", "run_selection"]

POINTS = 240
"""Even: at the threshold itself, between two points, both coordinates are as good."""

DECADES = 1.5
"""How far the sweep goes to either side of the threshold."""


@dataclass(frozen=True, eq=False)
class Illustration:
    """What is selected at each weight `rec` (points,).

    Attributes:
        system: The system.
        cur: The weight of the current loss.
        threshold: The weight above which n is selected; infinite where it never is.
        rec: The weights of the reconstruction.
        eigenvalues: The competing eigenvalues, of u and of n, (points, 2).
        kept: The fraction of the variance of y that the selected coordinate determines.
        l_cur: The current loss of the selected encoder with its best readout.
        l_rec: Its reconstruction loss with its best decoder.
    """

    system: LinearSystem
    cur: float
    threshold: float
    rec: np.ndarray
    eigenvalues: np.ndarray
    kept: np.ndarray
    l_cur: np.ndarray
    l_rec: np.ndarray

    def summary(self) -> dict[str, Any]:
        """The threshold, and what is kept of the task to either side of it."""
        ends = {
            side: {
                "lambda_rec": float(self.rec[at]),
                "kept": float(self.kept[at]),
                "l_cur": float(self.l_cur[at]),
                "l_rec": float(self.l_rec[at]),
            }
            for side, at in (("below", 0), ("above", -1))
        }
        variances = np.diagonal(self.system.Sigma).tolist()
        return {
            "c": float(self.system.C[0, 0]),
            "variance_u": variances[0],
            "variance_n": variances[1],
            "lambda_cur": self.cur,
            "threshold": self.threshold,
            **ends,
        }


def run_selection(
    c: float = 1.0, *, variance_u: float = 1.0, variance_n: float = 4.0, cur: float = 1.0
) -> Illustration:
    """Sweeps the weight of the reconstruction around its threshold, or around one without it.

    Arguments:
        c: The coefficient of the observable y = c u.
        variance_u: The variance of the coordinate the observable is read from.
        variance_n: The variance of the irrelevant coordinate.
        cur: The weight of the current loss.
    """
    system = two_dimensional_system(c, variance_u=variance_u, variance_n=variance_n)
    threshold = two_dimensional_threshold(c, variance_u=variance_u, variance_n=variance_n, cur=cur)
    centre = threshold if 0 < threshold < np.inf else 1.0
    rec = centre * np.logspace(-DECADES, DECADES, POINTS)
    chosen = [
        select(system, Weights(cur=cur, rec=weight), latent_dim=1) for weight in rec.tolist()
    ]
    encoders = np.stack([selection.B for selection in chosen])
    return Illustration(
        system,
        cur,
        threshold,
        rec,
        eigenvalues=np.stack([(cur * c**2 + rec) * variance_u, rec * variance_n], axis=-1),
        kept=kept_variance(system, encoders, system.C[0]),
        l_cur=np.array([norm2(s.D @ s.B - system.C, system.Sigma) for s in chosen]),
        l_rec=np.array([reconstruction_loss(system, s.B, s.G) for s in chosen]),
    )
