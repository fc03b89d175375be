"""numba's CUDA target, importable beside every NumPy 2.

NumPy 2.5 removed three names that numba-cuda 0.30 looks up while it is imported; they are aliases
of names that stayed. With NUMBA_ENABLE_CUDASIM=1 a simulator in Python runs the kernels.
"""

import os

import numpy as np

from ...errors import InputError

__all__ = ["cuda", "require_gpu"]

for _removed, _kept in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
    if _removed not in vars(np):
        setattr(np, _removed, getattr(np, _kept))

# A batch may be small; numba would warn at each launch that it leaves the GPU idle.
os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")

from numba import cuda  # noqa: E402  The names must be there first.


def require_gpu() -> None:
    """Raises `InputError` where no kernel can run."""
    if not cuda.is_available():
        raise InputError(
            "`device` is 'cuda', which is not available here; it needs an NVIDIA GPU with its "
            "driver and `pip install 'tampl[cuda]'`: choose cpu otherwise"
        )
