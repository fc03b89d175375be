"""The extension of a chain along the flow, and when it has unfolded."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNFOLDED", "extension", "unfolding_time"]

UNFOLDED = 0.95
"""Fraction of the mean stretched extension beyond which a chain counts as unfolded."""


def extension(coordinates: NDArray[np.floating]) -> NDArray[np.float64]:
    """The extension max x - min x of chains, (..., B, 3) to (...); NaN where a bead is.

    Example:
        >>> extension(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]))
        np.float64(1.0)
    """
    return np.ptp(coordinates[..., 0].astype(np.float64), axis=-1)


def unfolding_time(
    extensions: NDArray[np.floating], stretched: float, *, interval: float = 1.0
) -> NDArray[np.float64]:
    """The time of the first frame with an extension beyond 95 % of the stretched mean.

    Arguments:
        extensions: Extension in each frame, t = 0 first, (..., F).
        stretched: Mean extension of stretched chains.
        interval: Time between two frames.

    Returns:
        The times, (...); infinite where no frame is beyond.
    """
    beyond = extensions > UNFOLDED * stretched
    return np.where(beyond.any(axis=-1), interval * beyond.argmax(axis=-1), np.inf)
