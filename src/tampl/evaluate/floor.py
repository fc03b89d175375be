r"""The score of a perfect model: what is left when only the noise of finite ensembles remains.

Two independent ensembles of N members of the same process differ by chance. With s^2 the unbiased
variance over members and kappa the mean kernel over distinct members,

    E[RMSE^2] = mean_{g,t,j} 2 s^2 / N,        E[MMD^2] = (2 / N) (1 - kappa),

both computed from the references alone; no second ensemble is simulated. The root of E[RMSE^2] is
given as RMSE: over many microstates, times and features the two differ by less than their noise.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .metrics import Score, Standardizer, distinct_kernel_mean, standardized_future

__all__ = ["FLOOR", "floor"]

FLOOR = "floor"
"""The key of the floor among scores: the one baseline that others exceed, and first of them."""


def floor(reference: NDArray[Any], normalization: Standardizer) -> Score:
    """Expected score of a perfect model with as many members as the references.

    Arguments:
        reference: Simulated ensemble (G, N, F, m) in physical units, frame t = 0 included.
        normalization: The training data's statistics.
    """
    reference = np.asarray(reference)
    if reference.ndim != 4 or 0 in reference.shape or min(reference.shape[1:3]) < 2:
        raise InputError(
            f"`reference` has shape {reference.shape}; the floor needs an ensemble (G, N, F, m) "
            "of at least two members, with the frame t = 0 and at least one more"
        )
    members = reference.shape[1]
    truth = standardized_future(reference, normalization)
    variance = truth.var(axis=1, ddof=1).mean()
    kappa = distinct_kernel_mean(truth)
    return Score(float(np.sqrt(2.0 * variance / members)), 2.0 * (1.0 - kappa) / members)
