"""Where a system's trajectories are run: a kernel for the CPU, and perhaps one for a GPU."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from ..errors import InputError

__all__ = ["Device", "on_gpu", "refuse_absent_device"]

# Calls come from several threads: while one has the GPU, others observe and write.
_gpu = Lock()


@dataclass(frozen=True)
class Device:
    """A kernel and how it is best called.

    Attributes:
        kernel: Name and version of the kernel, which a store keeps.
        batch: How many trajectories to run at once.
        dtype: Precision of what it returns.
        run: The kernel itself.
    """

    kernel: str
    batch: int
    dtype: type[np.floating[Any]]
    run: Callable[..., None]


def on_gpu(load: Callable[[], Callable[..., None]]) -> Callable[..., None]:
    """A kernel that is loaded when it is first called, and has the GPU for itself."""

    def run(*arguments: Any) -> None:  # noqa: ANN401
        kernel = load()
        with _gpu:
            kernel(*arguments)

    return run


def refuse_absent_device(name: str, devices: dict[str, Device], *, system: str) -> None:
    """Raises `InputError` where `system` has no kernel for a device, or the device is not there.

    Arguments:
        name: Name of the device, such as "cuda".
        devices: The system's devices by name.
        system: Name of the system.
    """
    if name not in devices:
        raise InputError(
            f"`device` is {name!r}; {system} has kernels for {' and '.join(devices)}: choose one"
        )
    if name == "cuda":
        from .kernels_cuda.runtime import require_gpu

        require_gpu()
